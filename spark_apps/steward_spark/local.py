"""Rows that are read into the driver, and are a part of whatever plan uses them from then on.

Spark filters and selects among them while it plans, knows how few they are, and joins with them without a shuffle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FEW = 20_000
"""Rows with which planning takes hardly longer; beyond, scanning them by two cores is quicker."""


def on_driver(frame: DataFrame) -> DataFrame:
    """The same rows, on the driver."""
    return _of_rows(frame, frame._jdf.collectAsList())  # noqa: SLF001 - through Python they would take ten times as long


def few_on_driver(frame: DataFrame) -> DataFrame | None:
    """The same rows, on the driver; None where there are more than `FEW`."""
    rows = frame.limit(FEW + 1)._jdf.collectAsList()  # noqa: SLF001 - as above
    return _of_rows(frame, rows) if rows.size() <= FEW else None


def _of_rows(frame: DataFrame, rows: Any) -> DataFrame:
    spark = frame.sparkSession
    return ClassicDataFrame(spark._jsparkSession.createDataFrame(rows, frame._jdf.schema()), spark)  # noqa: SLF001 - as above
