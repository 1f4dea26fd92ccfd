"""The worst rows of a frame, and how many are left out: nothing that grows with the topics leaves Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steward_spark.checks.check import MOST_FINDINGS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row

_MANY = 5_000
"""Rows that are quicker to read than to count."""


def worst(frame: DataFrame, *order: Column) -> tuple[list[Row], int]:
    """The first `MOST_FINDINGS` rows in that order, and the number of further ones.

    Rows are only counted apart where there are many of them: nearly all checks pay for one pass.
    """
    rows = frame.orderBy(*order).limit(_MANY + 1).collect()
    found = len(rows) if len(rows) <= _MANY else frame.count()
    return rows[:MOST_FINDINGS], max(0, found - MOST_FINDINGS)
