"""The worst rows of a frame, and how many are left out: nothing that grows with the topics leaves Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steward_spark.checks.check import MOST_FINDINGS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row


def worst(frame: DataFrame, *order: Column) -> tuple[list[Row], int]:
    """The first `MOST_FINDINGS` rows in that order, and the number of further ones.

    Rows are only counted where there are more than that: a healthy cluster pays for one pass.
    """
    rows = frame.orderBy(*order).limit(MOST_FINDINGS + 1).collect()
    more = frame.count() - MOST_FINDINGS if len(rows) > MOST_FINDINGS else 0
    return rows[:MOST_FINDINGS], more
