"""The facts that planners are given, from a finished and diagnosed snapshot."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from pulsar_steward.model.bundles import TC_NAMESPACE
from pulsar_steward.planners.bundles.from_snapshot import bundle_facts
from pulsar_steward.planners.planning_facts import BrokerFact, PlanningFacts, TcBundle
from pulsar_steward.planners.settings.from_snapshot import (
    clocks_differ_milliseconds,
    defaults_of,
    namespace_facts,
    quotas_are_checked,
    topic_facts,
)

if TYPE_CHECKING:
    from pulsar_steward.planners.moves import Moves
    from pulsar_steward.policy.schema import Policy
    from pulsar_steward.snapshots.read import Snapshot


def planning_facts_of(snapshot: Snapshot, policy: Policy, moves: Moves) -> PlanningFacts:
    """What a snapshot shows of what planners look at.

    Args:
        snapshot: Diagnosed already.
        policy: The cluster's thresholds and limits.
        moves: What Steward moved lately.

    Raises:
        SnapshotError: If the snapshot cannot be read or was not diagnosed.
    """
    meta = snapshot.meta()
    system, findings, defaults = snapshot.namespace(TC_NAMESPACE), snapshot.findings(), defaults_of(snapshot)
    return PlanningFacts(
        cluster=meta.cluster,
        snapshot_id=meta.snapshot_id,
        taken_at=meta.taken_at,
        pulsar_cluster=meta.identity,
        unread=meta.unread,
        brokers=tuple(BrokerFact(broker=row.broker, read=row.read) for row in snapshot.brokers()),
        tcs_by_bundle=meta.tcs_by_bundle,
        tc_bundles=_tc_bundles(snapshot),
        tc_allowed=system.allowed_brokers if system else None,
        namespaces=namespace_facts(snapshot, findings),
        topics=topic_facts(snapshot, findings),
        defaults=defaults,
        bundles=bundle_facts(snapshot, findings, defaults, policy),
        quotas_are_checked=quotas_are_checked(snapshot),
        clocks_differ_milliseconds=clocks_differ_milliseconds(snapshot),
        findings=findings,
        moved_at=moves.moved_at,
        circling=moves.circling,
        policy=policy,
    )


def _tc_bundles(snapshot: Snapshot) -> tuple[TcBundle, ...]:
    placed: dict[str, list[int]] = defaultdict(list)
    for row in snapshot.coordinators():
        if row.bundle is not None:
            placed[row.bundle].append(row.coordinator)
    return tuple(
        TcBundle(
            bundle=row.bundle,
            owner=row.owner,
            coordinators=tuple(placed[row.bundle]),
            positions=row.positions or (),
            producers=row.producers or 0,
            consumers=row.consumers or 0,
        )
        for row in snapshot.system_bundles()
        if row.bundle in placed
    )
