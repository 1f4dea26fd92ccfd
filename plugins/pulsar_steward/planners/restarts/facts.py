"""Facts about the restart of a broker, from a diagnosed snapshot; of tables that grow with topics only sums."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.facts.isolation import Isolation
from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.model.bundles import BundleRange, position_of
from pulsar_steward.model.finding import Finding, Verdict
from pulsar_steward.model.topics import namespace_of
from pulsar_steward.model.trouble import is_topic
from pulsar_steward.planners.bundles.loads_from_snapshot import isolation_of
from pulsar_steward.snapshots.rows import BrokerRow, FailoverRow, SnapshotMeta

if TYPE_CHECKING:
    from pulsar_steward.snapshots.read import Snapshot

_OWNERS = "select namespace, list(distinct owner) as owners from bundles where owner is not null group by namespace"

_BUNDLES = """
select namespace, bundle, owner from bundles where owner is not null and namespace in (select unnest($names::varchar[]))
"""

_SERVED = """
select broker, namespace, count(*) as topics, coalesce(sum(subscriptions), 0)::bigint as subscriptions
from topics where not is_heartbeat(namespace) group by broker, namespace
"""


class _Owners(msgspec.Struct, frozen=True):
    namespace: str
    owners: frozenset[str]


class _Bundle(msgspec.Struct, frozen=True):
    namespace: str
    bundle: str
    owner: str


class Served(msgspec.Struct, frozen=True):
    """Numbers of loaded topics of a namespace on a broker, and of their subscriptions."""

    broker: str
    namespace: str
    topics: int
    subscriptions: int


class RestartFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about restarts.

    Attributes:
        meta: The snapshot.
        brokers: All listed brokers, by id.
        away: Brokers that the snapshot before lists, and this one does not.
        before: Time of the snapshot before; None: there is none.
        findings: Findings by check, the worst first.
        verdicts: Verdicts by check.
        failovers: How long the topics of each broker would be away, by broker.
        coordinators: Number of transaction coordinators by broker.
        isolation: Isolation policies, with every broker's load.
        owners: Brokers that own a bundle of a namespace, by namespace.
        bundles: Bundles with their owners, of namespaces with a topic that has a finding.
        topics: Number of loaded topics without heartbeats, by broker that was read.
        served: What each broker serves, without brokers' heartbeats.
    """

    meta: SnapshotMeta
    brokers: dict[str, BrokerRow]
    away: tuple[str, ...] = ()
    before: datetime | None = None
    findings: dict[str, list[Finding]] = {}
    verdicts: dict[str, Verdict] = {}
    failovers: dict[str, FailoverRow] = {}
    coordinators: dict[str, int] = {}
    isolation: Isolation | Unknown
    owners: dict[str, frozenset[str]] = {}
    bundles: dict[str, tuple[tuple[BundleRange, str], ...]] = {}
    topics: dict[str, int] = {}
    served: tuple[Served, ...] = ()

    def is_about(self, subject: str, broker: str) -> bool:
        """True if a finding's subject is the broker, the cluster, or a topic or namespace that the broker serves."""
        if is_topic(subject):
            topic = subject.partition(" ")[0]
            place = position_of(topic)
            return any(place in each and owner == broker for each, owner in self.bundles.get(namespace_of(topic), ()))
        return subject in {broker, self.meta.cluster} or broker in self.owners.get(subject, ())


def restart_facts(snapshot: Snapshot) -> RestartFacts:
    """Facts of a diagnosed snapshot.

    Raises:
        ConfigurationError: If it is not of a Pulsar cluster.
        SnapshotError: If it cannot be read.
    """
    meta = snapshot.meta()
    meta.require_pulsar()
    findings: defaultdict[str, list[Finding]] = defaultdict(list)
    for finding in snapshot.findings(as_judged=True):
        findings[finding.check_id].append(finding)
    topics = (each.subject.partition(" ")[0] for found in findings.values() for each in found if is_topic(each.subject))
    bundles: defaultdict[str, list[tuple[BundleRange, str]]] = defaultdict(list)
    for row in snapshot.select(_BUNDLES, _Bundle, names=sorted(set(map(namespace_of, topics)))):
        bundles[row.namespace].append((BundleRange.parse(row.bundle), row.owner))
    brokers = {row.broker: row for row in snapshot.brokers()}
    earlier = snapshot.as_of(meta.taken_at)
    listed = {row.broker for row in earlier.brokers()} if earlier else set()
    return RestartFacts(
        meta=meta,
        brokers=brokers,
        away=tuple(sorted(listed - brokers.keys())),
        before=earlier.meta().taken_at if earlier else None,
        findings=dict(findings),
        verdicts={each.check_id: each for each in snapshot.verdicts()},
        failovers={each.broker: each for each in snapshot.failovers()},
        coordinators=Counter(row.broker for row in snapshot.coordinators() if row.broker is not None),
        isolation=isolation_of(snapshot),
        owners={row.namespace: row.owners for row in snapshot.select(_OWNERS, _Owners)},
        bundles={name: tuple(rows) for name, rows in bundles.items()},
        topics=snapshot.topics_by_broker(),
        served=tuple(snapshot.select(_SERVED, Served)),
    )
