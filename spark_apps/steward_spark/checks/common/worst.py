"""The worst of many troubles as findings, and how many more there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steward_spark.checks.check import Judgement
from steward_spark.checks.common.listing import worst

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import Column, DataFrame, Row

    from pulsar_steward.model.finding import Finding

MOST_NAMES = 5
"""Names in a sentence before it only counts."""


def named(names: Sequence[str]) -> str:
    """The first few of them, and how many more there are."""
    words = ", ".join(names[:MOST_NAMES])
    return f"{words} and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else words


def worst_first(
    suspects: DataFrame,
    order: Sequence[Column],
    finding: Callable[[Row], Finding],
    quiet: Callable[[], str],
    missing: Callable[[], str | None],
) -> Judgement:
    """The worst suspects as findings; what to say of silence is only asked for where there is silence.

    Args:
        suspects: One row a trouble.
        order: The worst first, and nothing left to chance.
        finding: Makes a finding of a row.
        quiet: What was looked at, where nothing was found.
        missing: Why finding nothing means nothing; None where it does mean something.
    """
    rows, more = worst(suspects, *order)
    if not rows:
        return Judgement(quiet=quiet(), cannot_tell=missing())
    return Judgement(findings=tuple(finding(row) for row in rows), more=more)
