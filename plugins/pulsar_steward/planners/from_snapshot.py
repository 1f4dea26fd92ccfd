"""The facts for planners, from a finished and diagnosed snapshot, and from the moves in the ledger."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.facts.load_manager import (
    USAGES_UNKNOWN,
    BrokerUsage,
    LoadManager,
    Traffic,
    one_load_manager,
    usage_of,
)
from pulsar_steward.facts.protocol import Bookies, versions_in
from pulsar_steward.facts.unknown import BOOKIES_UNKNOWN, Unknown
from pulsar_steward.ledger.past import circling_lately, moved_lately, raised_lately
from pulsar_steward.model.broker_defaults import SERIES, SETTINGS
from pulsar_steward.model.bundles import TC_NAMESPACE
from pulsar_steward.model.plan import Plan
from pulsar_steward.model.system import System
from pulsar_steward.planners.bundles.from_snapshot import bundle_facts
from pulsar_steward.planners.bundles.loads_from_snapshot import allowed_by_namespace, isolation_facts
from pulsar_steward.planners.partitions.from_snapshot import partitioned_facts
from pulsar_steward.planners.planning_facts import BrokerFact, PlanningFacts, TcBundle, subscription_facts
from pulsar_steward.planners.settings.from_snapshot import (
    backlog_caveats,
    clocks_differ_milliseconds,
    defaults_of,
    namespace_facts,
    quotas_are_checked,
    topic_facts,
)
from pulsar_steward.planners.unseen_names import unseen_names

if TYPE_CHECKING:
    from pulsar_steward.ledger.read import LedgerReader
    from pulsar_steward.model.cluster import NamedCluster
    from pulsar_steward.policy.schema import Policy
    from pulsar_steward.snapshots.read import Snapshot


class Moves(msgspec.Struct, frozen=True, kw_only=True):
    """Bundles that Steward moved recently, and the time when it raised the number of coordinators.

    Attributes:
        moved_at: Time of the last move of a bundle (``tenant/ns/range``), as far back as the cooldown.
        circling: Namespaces with bundles that moved away and back within the policy's time, with the bundles' ranges.
        coordinators_raised_at: Time of the last raise, as far back as the pause after a raise; None: none.
    """

    moved_at: dict[str, datetime] = {}
    circling: dict[str, tuple[str, ...]] = {}
    coordinators_raised_at: datetime | None = None


def moves_before(ledger: LedgerReader, cluster: NamedCluster, at: datetime, policy: Policy) -> Moves:
    """The moves in a cluster before a time, as far back as planners and guards need them.

    Raises:
        LedgerError: If the ledger cannot be read.
    """
    past = ledger.past(cluster)
    return Moves(
        moved_at=moved_lately(past, at, policy),
        circling=circling_lately(past, at, policy),
        coordinators_raised_at=max(raised_lately(past, at, policy), default=None),
    )


def planning_facts_of(snapshot: Snapshot, policy: Policy, moves: Moves) -> PlanningFacts:
    """The facts of a snapshot.

    Args:
        snapshot: The snapshot, already diagnosed.
        policy: The cluster's thresholds and limits.
        moves: Bundles that Steward moved recently.

    Raises:
        SnapshotError: If the snapshot cannot be read or was not diagnosed.
        ConfigurationError: If it is not of a Pulsar cluster.
    """
    meta = snapshot.meta()
    meta.require_pulsar()
    manager = load_manager_in(snapshot)
    findings, defaults, brokers = snapshot.findings(), defaults_of(snapshot), snapshot.brokers()
    allowed = allowed_by_namespace(snapshot, [TC_NAMESPACE])
    return PlanningFacts(
        cluster=meta.cluster,
        snapshot_id=meta.snapshot_id,
        taken_at=meta.taken_at,
        pulsar_cluster=meta.identity,
        unread=meta.unread,
        brokers=tuple(BrokerFact(broker=row.broker, read=row.read) for row in brokers),
        versions=versions_in({row.broker: row.pulsar_version for row in brokers if row.read}),
        tc_bundles=_tc_bundles(snapshot),
        tc_allowed=allowed.get(TC_NAMESPACE),
        namespaces=namespace_facts(snapshot, findings),
        topics=topic_facts(snapshot, findings),
        subscriptions=subscription_facts(snapshot, findings),
        partitioned=partitioned_facts(snapshot, findings, policy),
        defaults=defaults,
        load_manager=manager,
        usages=usages_in(snapshot, manager),
        isolation=isolation_facts(snapshot, findings),
        bundles=bundle_facts(snapshot, findings, defaults, policy),
        quotas_are_checked=quotas_are_checked(snapshot),
        bookies=Bookies(listed=meta.bookies) if meta.bookies else BOOKIES_UNKNOWN,
        backlog_caveats=backlog_caveats(snapshot),
        clocks_differ_milliseconds=clocks_differ_milliseconds(snapshot),
        findings=findings,
        unlisted={each.check_id: each.more_by_namespace for each in snapshot.verdicts() if each.more},
        moved_at=moves.moved_at,
        circling=moves.circling,
        coordinators_raised_at=moves.coordinators_raised_at,
        unseen=unseen_names(snapshot, policy),
        policy=policy,
    )


def plan_without_steps(snapshot: Snapshot, policy: Policy) -> Plan | None:
    """The plan for a cluster that Steward only looks at, which proposes nothing; None: planners are asked.

    Raises:
        SnapshotError: If the snapshot cannot be read.
    """
    meta = snapshot.meta()
    if meta.system is System.PULSAR:
        return None
    return Plan(
        cluster=meta.cluster,
        snapshot_id=meta.snapshot_id,
        taken_at=meta.taken_at,
        pulsar_cluster=meta.identity,
        policy_digest=policy.digest,
        batches=(),
        notes=(f"Of {meta.system.called} clusters Steward only tells: it proposes and changes nothing in them.",),
        unread=meta.unread or msgspec.UNSET,
    )


def load_manager_in(snapshot: Snapshot) -> LoadManager | Unknown:
    """The brokers' own load manager, as all brokers that were read report it.

    Raises:
        SnapshotError: If a table cannot be read.
    """
    told: dict[str, dict[str, str]] = {row.broker: {} for row in snapshot.brokers() if row.read}
    for row in snapshot.configuration(SETTINGS):
        if row.value is not None:
            told.setdefault(row.broker, {})[row.key] = row.value
    return one_load_manager(told.values())


_SAMPLES = """
    select source, series, coalesce(labels_json->>'feature', '') as feature, value
    from metrics where source_kind = 'broker' and series in (select unnest($series))"""


class _Sample(msgspec.Struct, frozen=True):
    source: str
    series: str
    feature: str
    value: float


def usages_in(snapshot: Snapshot, manager: LoadManager | Unknown) -> tuple[BrokerUsage, ...] | Unknown:
    """Usage of each broker that was read, as load shedding compares it; not read if shedding is off."""
    if isinstance(manager, Unknown) or not manager.sheds:
        return USAGES_UNKNOWN
    samples: dict[str, list[tuple[str, str, float]]] = defaultdict(list)
    for row in snapshot.select(_SAMPLES, _Sample, series=list(SERIES)):
        samples[row.source].append((row.series, row.feature, row.value))
    found = [usage_of(row.broker, samples[row.broker], manager) for row in snapshot.brokers() if row.read]
    known = tuple(each for each in found if each is not None)
    return known if known and len(known) == len(found) else USAGES_UNKNOWN


_OF_BUNDLES = """
    select owner, namespace || '/' || bundle as name,
        coalesce(throughput_in_bytes, 0) + coalesce(throughput_out_bytes, 0) as bytes,
        coalesce(message_rate_in, 0) + coalesce(message_rate_out, 0) as messages
    from bundles where owner is not null and not is_heartbeat(namespace) order by all"""


class _OwnedBundle(Traffic, frozen=True, kw_only=True):
    owner: str
    name: str


def traffic_in(snapshot: Snapshot) -> dict[str, dict[str, Traffic]]:
    """Traffic of each broker's bundles (``tenant/ns/range``), by broker and name, without heartbeats."""
    owned: dict[str, dict[str, Traffic]] = defaultdict(dict)
    for row in snapshot.select(_OF_BUNDLES, _OwnedBundle):
        owned[row.owner][row.name] = row
    return dict(owned)


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
