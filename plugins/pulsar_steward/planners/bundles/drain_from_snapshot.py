"""Loads and resources of draining brokers, and of the brokers that take over their bundles, from snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.model.bundles import TC_NAMESPACE
from pulsar_steward.planners.bundles.drain import PLANNER as BROKER_DRAIN
from pulsar_steward.planners.bundles.facts import DrainFacts, Usage
from pulsar_steward.planners.bundles.loads_from_snapshot import (
    allowed_by_namespace,
    broker_loads,
    bundles_of_owners,
    placed_bundles,
    snapshots_looked_at,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pulsar_steward.model.finding import Finding
    from pulsar_steward.policy.schema import Policy
    from pulsar_steward.snapshots.read import Snapshot


_THEIRS = "owner in (select unnest($draining::varchar[]))"

_LOADED = "(now_topics > 0 or (namespace = $coordinators and bundle in (select unnest($held::varchar[]))))"


def drain_facts(snapshot: Snapshot, findings: Iterable[Finding], policy: Policy) -> DrainFacts | None:
    """Bundles to drain, with their load in several snapshots; None: no finding needs it, or the snapshot is partial.

    One snapshot is enough here: the reason to empty a broker is not its load.

    Raises:
        SnapshotError: If a table cannot be read.
    """
    if not BROKER_DRAIN.answered(findings) or snapshot.meta().unread:
        return None
    remedy = policy.bundle_balance_remedy
    looked = snapshots_looked_at(snapshot, remedy.window_minutes, remedy.snapshots)
    read = [row for row in snapshot.brokers() if row.read]
    theirs = {
        "draining": policy.brokers.draining,
        "held": [row.bundle for row in snapshot.coordinators() if row.bundle is not None],
        "coordinators": TC_NAMESPACE,
    }
    leaving = {each.name: each for each in placed_bundles(looked, f"{_THEIRS} and {_LOADED}", **theirs)}
    return DrainFacts(
        brokers=tuple(broker_loads(looked, [row.broker for row in read])),
        resources={row.broker: Usage(cpu=row.cpu_percent, direct_memory=row.direct_memory_percent) for row in read},
        leaving=leaving,
        idle={row.owner: row.bundles for row in bundles_of_owners(looked, f"{_THEIRS} and not {_LOADED}", **theirs)},
        allowed=allowed_by_namespace(snapshot, {each.namespace for each in leaving.values()}),
    )
