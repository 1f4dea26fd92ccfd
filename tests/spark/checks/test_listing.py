"""The worst rows, and the number of the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from steward_spark.checks.check import MOST_FINDINGS
from steward_spark.checks.common import listing
from steward_spark.checks.common.listing import worst

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    ("found", "many", "more"),
    [
        (0, 5_000, 0),
        (MOST_FINDINGS, 5_000, 0),
        (MOST_FINDINGS + 20, 5_000, 20),
        (MOST_FINDINGS + 20, MOST_FINDINGS + 20, 20),
        (MOST_FINDINGS + 20, MOST_FINDINGS + 19, 20),
    ],
)
def test_the_others_are_counted(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, found: int, many: int, more: int
) -> None:
    """The worst come first, however many there are, and whether the others were read or only counted."""
    monkeypatch.setattr(listing, "_MANY", many)

    rows, others = worst(spark.range(found), F.desc("id"))

    assert [row["id"] for row in rows] == list(range(found - 1, found - 1 - min(found, MOST_FINDINGS), -1))
    assert others == more
