"""Tables as Arrow and as Spark have them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pulsar_steward.collect.arrow import BROKER_TABLES, answer_schema
from pulsar_steward.model.tables import COLLECTED, DIAGNOSED, Table
from pulsar_steward.snapshots.arrow import schema_of
from steward_spark.schemas import answer_ddl, spark_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("table", [*COLLECTED, *DIAGNOSED], ids=lambda table: table.name)
def test_spark_and_arrow_agree_on_a_table(spark: SparkSession, table: Table) -> None:
    """A table made by one is read by the other with the same columns and types."""
    made = spark.createDataFrame(schema_of(table).empty_table())

    assert made.schema == spark_schema(table)


def test_spark_and_arrow_agree_on_what_tasks_answer(spark: SparkSession) -> None:
    """The structs that workers yield are those that Spark was told."""
    made = spark.createDataFrame(answer_schema(BROKER_TABLES).empty_table())

    assert made.schema.simpleString() == spark.createDataFrame([], answer_ddl(BROKER_TABLES)).schema.simpleString()
