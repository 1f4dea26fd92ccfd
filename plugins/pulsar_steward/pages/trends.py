"""Figures of the cluster over time, from the newest snapshot, as small lines."""

from __future__ import annotations

from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.model.measures import (
    CLUSTER_BACKLOG,
    CLUSTER_CONSUMERS,
    CLUSTER_PRODUCERS,
    CLUSTER_SUBSCRIPTIONS,
    CLUSTER_TOPICS,
    IN_BYTES,
)

if TYPE_CHECKING:
    from pulsar_steward.pages.sources import Sources
    from pulsar_steward.snapshots.read import Snapshot

TITLES = {
    CLUSTER_BACKLOG: "Backlog",
    CLUSTER_TOPICS: "Loaded topics",
    CLUSTER_SUBSCRIPTIONS: "Subscriptions",
    CLUSTER_PRODUCERS: "Producers",
    CLUSTER_CONSUMERS: "Consumers",
}


class FigureTrend(msgspec.Struct, frozen=True, kw_only=True):
    """One figure of the cluster over time, oldest first."""

    measure: str
    title: str
    in_bytes: bool
    times: tuple[datetime, ...]
    values: tuple[float, ...]


def cluster_trends(sources: Sources, snapshot: Snapshot) -> tuple[FigureTrend, ...]:
    """Trends of the whole cluster; empty if only one snapshot has figures.

    Raises:
        SnapshotError: If the snapshot cannot be read.
    """
    return sources.kept.get(("trends", snapshot.uri), lambda: _trends(snapshot))


def _trends(snapshot: Snapshot) -> tuple[FigureTrend, ...]:
    found = {}
    for measure, rows in groupby(snapshot.trends(), key=lambda row: row.measure):
        points = sorted((row.taken_at, row.value) for row in rows)
        if measure in TITLES and len(points) > 1:
            found[measure] = FigureTrend(
                measure=measure,
                title=TITLES[measure],
                in_bytes=measure in IN_BYTES,
                times=tuple(at for at, _ in points),
                values=tuple(value for _, value in points),
            )
    return tuple(found[measure] for measure in TITLES if measure in found)
