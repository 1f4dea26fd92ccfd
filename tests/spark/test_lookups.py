"""What is asked of Java once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from steward_spark.lookups import java_class, remember

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_columns_cost_no_lookup(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once a function was used, another column made with it asks Java for the column alone."""
    remember(spark)
    F.abs(F.col("a"))
    sent: list[str] = []
    gateway: Any = spark.sparkContext._gateway
    really = gateway._gateway_client.send_command

    def send(command: str, *rest: Any, **more: Any) -> Any:
        sent.append(command)
        return really(command, *rest, **more)

    monkeypatch.setattr(gateway._gateway_client, "send_command", send)

    F.abs(F.col("b"))

    # What looks for a class or a member begins with an r, a call with a c.
    assert sent
    assert not [command for command in sent if command[0] == "r"]


def test_a_class_is_found_by_its_full_name(spark: SparkSession) -> None:
    """Static members and constructors both work, also after remembering twice."""
    remember(spark)
    remember(spark)

    path = java_class(spark, "org.apache.hadoop.fs.Path")("/a/b")

    assert str(path.getName()) == "b"
    assert spark.range(3).where(F.col("id") > 0).count() == 2
