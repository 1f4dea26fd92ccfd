"""Loads and resources of brokers that drain, and of those that are to take their bundles over, from snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pulsar_steward.model.bundles import TC_NAMESPACE
from pulsar_steward.planners.bundles.drain import PLANNER as BROKER_DRAIN
from pulsar_steward.planners.bundles.facts import DrainFacts, Usage
from pulsar_steward.planners.bundles.loads_from_snapshot import (
    allowed_by_namespace,
    broker_loads,
    bundles_over_time,
    placed_bundle,
    snapshots_looked_at,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pulsar_steward.model.finding import Finding
    from pulsar_steward.policy.schema import Policy
    from pulsar_steward.snapshots.read import Snapshot


def drain_facts(snapshot: Snapshot, findings: Iterable[Finding], policy: Policy) -> DrainFacts | None:
    """Bundles to drain, with their load in several snapshots; None: no finding asks for it, or the snapshot is partial.

    One snapshot is enough here: that a broker is to be emptied does not follow from its load.

    Raises:
        SnapshotError: If a table cannot be read.
    """
    if not BROKER_DRAIN.answered(findings) or snapshot.meta().unread:
        return None
    remedy = policy.bundle_balance_remedy
    bundles = bundles_over_time(snapshots_looked_at(snapshot, remedy.window_minutes, remedy.snapshots))
    read = [row for row in snapshot.brokers() if row.read]
    theirs = bundles.filter(pc.field("owner").isin(list(policy.brokers.draining)))
    held = {f"{TC_NAMESPACE}/{row.bundle}" for row in snapshot.coordinators() if row.bundle is not None}
    with_coordinators = pc.is_in(theirs["name"], value_set=pa.array(sorted(held), pa.string()))
    loaded = pc.or_(pc.greater(theirs["now_topics"], 0), with_coordinators)
    leaving = {each.name: each for each in map(placed_bundle, theirs.filter(loaded).sort_by("name").to_pylist())}
    idle = theirs.filter(pc.invert(loaded)).group_by("owner").aggregate([([], "count_all")]).to_pylist()
    return DrainFacts(
        brokers=tuple(broker_loads(bundles, [row.broker for row in read])),
        resources={row.broker: Usage(cpu=row.cpu_percent, direct_memory=row.direct_memory_percent) for row in read},
        leaving=leaving,
        idle={row["owner"]: row["count_all"] for row in sorted(idle, key=lambda row: str(row["owner"]))},
        allowed=allowed_by_namespace(snapshot, {each.namespace for each in leaving.values()}),
    )
