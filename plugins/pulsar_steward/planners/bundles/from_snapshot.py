"""Facts of business bundles with findings, read from a snapshot and earlier ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.model.bundles import CALM_LOAD_MANAGER
from pulsar_steward.planners.bundles.crowds_from_snapshot import broker_limits, busy_bundles, crowds_of
from pulsar_steward.planners.bundles.drain_from_snapshot import drain_facts
from pulsar_steward.planners.bundles.facts import BundleFacts
from pulsar_steward.planners.bundles.loads_from_snapshot import load_facts
from pulsar_steward.planners.bundles.risks_from_snapshot import risk_figures
from pulsar_steward.planners.bundles.split import troubles

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pulsar_steward.model.finding import Finding
    from pulsar_steward.model.setting import Setting, SettingName
    from pulsar_steward.policy.schema import Policy
    from pulsar_steward.snapshots.read import Snapshot


def bundle_facts(
    snapshot: Snapshot, findings: Iterable[Finding], defaults: Mapping[SettingName, Setting], policy: Policy
) -> BundleFacts:
    """Facts of the bundles with findings; without such findings nothing is read.

    Args:
        snapshot: The snapshot, already diagnosed.
        findings: Its findings.
        defaults: Settings in force if a namespace sets nothing.
        policy: The cluster's policy.

    Raises:
        SnapshotError: If a table cannot be read.
    """
    findings = tuple(findings)
    found = troubles(findings)
    crowds = crowds_of(snapshot, found, policy)
    load = load_facts(snapshot, findings, policy)
    drain = drain_facts(snapshot, findings, policy)
    owners = {suspect.owner for crowd in crowds for suspect in crowd.suspects if suspect.owner}
    named = {(crowd.namespace, suspect.bundle) for crowd in crowds for suspect in crowd.suspects}
    moving = (*(load.stays if load else ()), *(drain.leaving.values() if drain else ()))
    named |= {(stay.namespace, stay.bundle) for stay in moving}
    hot = any(trouble.hot for trouble in found.values())
    return BundleFacts(
        crowds=crowds,
        busy=busy_bundles(snapshot) if hot else BundleFacts().busy,
        limits=broker_limits(snapshot, owners) if hot else {},
        load=load,
        drain=drain,
        splits_keep_clients=bool(crowds) and CALM_LOAD_MANAGER in snapshot.meta().load_manager,
        risks=risk_figures(snapshot, named, defaults, policy.guards),
    )
