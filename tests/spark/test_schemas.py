"""Tables as Arrow and as Spark have them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pulsar_steward.collect.arrow import BROKER_TABLES, answer_schema
from steward_spark.reading import answer_ddl

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_spark_and_arrow_agree_on_what_tasks_answer(spark: SparkSession) -> None:
    made = spark.createDataFrame(answer_schema(BROKER_TABLES).empty_table())
    assert made.schema.simpleString() == spark.createDataFrame([], answer_ddl(BROKER_TABLES)).schema.simpleString()
