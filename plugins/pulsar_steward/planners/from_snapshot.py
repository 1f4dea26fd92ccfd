"""The scene that planners are given, from a finished and diagnosed snapshot."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from pulsar_steward.model.bundles import TC_NAMESPACE
from pulsar_steward.planners.scene import BrokerFact, Scene, TcBundle
from pulsar_steward.planners.settings.from_snapshot import defaults_of, namespace_facts

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from pulsar_steward.policy.schema import Policy
    from pulsar_steward.snapshots.read import Snapshot


def scene_of(snapshot: Snapshot, policy: Policy, moved_at: Mapping[str, datetime]) -> Scene:
    """What a snapshot shows of what planners look at.

    Args:
        snapshot: Diagnosed already.
        policy: The cluster's thresholds and limits.
        moved_at: When a bundle (``tenant/ns/range``) was last moved by Steward.

    Raises:
        SnapshotError: If the snapshot cannot be read or was not diagnosed.
    """
    meta = snapshot.meta()
    system, findings = snapshot.namespace(TC_NAMESPACE), snapshot.findings()
    return Scene(
        cluster=meta.cluster,
        snapshot_id=meta.snapshot_id,
        taken_at=meta.taken_at,
        unread=meta.unread,
        brokers=tuple(BrokerFact(broker=row.broker, read=row.read) for row in snapshot.brokers()),
        tcs_by_bundle=meta.tcs_by_bundle,
        tc_bundles=_tc_bundles(snapshot),
        tc_allowed=system.allowed_brokers if system else None,
        namespaces=namespace_facts(snapshot, findings),
        defaults=defaults_of(snapshot),
        findings=findings,
        moved_at=dict(moved_at),
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
