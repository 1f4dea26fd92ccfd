"""Figures over time that `diagnose` recorded, if there is more than one point."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from pulsar_steward.model.measures import MEASURES
from pulsar_steward.report.checkup.measures.data import Trend, TrendPoint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsar_steward.snapshots.read import Snapshot
    from pulsar_steward.snapshots.rows import TrendRow

MAX_SUBJECTS = 10
"""Maximum number of lines for one measure (one per broker, for example): more cannot be distinguished."""

LEAST_POINTS = 2


def trends(snapshot: Snapshot) -> tuple[Trend, ...]:
    """Trends in the order of `MEASURES`; for each measure the subjects that changed most, by name."""
    made = [_trend(list(rows)) for _, rows in groupby(snapshot.trends(), key=lambda row: (row.measure, row.subject))]
    order = {measure: number for number, measure in enumerate(MEASURES)}
    several = sorted(
        (trend for trend in made if len(trend.points) >= LEAST_POINTS),
        key=lambda trend: (order.get(trend.measure, len(order)), trend.measure),
    )
    by_measure = groupby(several, key=lambda trend: trend.measure)
    return tuple(trend for _, each in by_measure for trend in _most_changed(list(each)))


def _trend(rows: Sequence[TrendRow]) -> Trend:
    first = rows[0]
    return Trend(
        measure=first.measure,
        meaning=MEASURES.get(first.measure, first.measure),
        subject=first.subject,
        points=tuple(TrendPoint(taken_at=row.taken_at, value=row.value) for row in rows),
    )


def _most_changed(trends: list[Trend]) -> list[Trend]:
    largest = sorted(trends, key=lambda trend: (-_span(trend), trend.subject))[:MAX_SUBJECTS]
    return sorted(largest, key=lambda trend: trend.subject)


def _span(trend: Trend) -> float:
    values = [point.value for point in trend.points]
    return max(values) - min(values)
