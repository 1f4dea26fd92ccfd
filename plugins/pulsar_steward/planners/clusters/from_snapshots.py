"""Members of a logical cluster, and their namespaces, from the newest snapshot of each.

Functions of a snapshot raise `SnapshotError` if a table cannot be read.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.checks.delayed.partition_ceiling import COUNTED, MAX_TOPICS
from pulsar_steward.checks.delayed.waiting import brokers_by_host, host_of
from pulsar_steward.checks.resources.bookies import DIRECTORY
from pulsar_steward.decoding import decode
from pulsar_steward.errors import SnapshotError
from pulsar_steward.model.setting import OF_TOPICS, TOGETHER
from pulsar_steward.model.system import System
from pulsar_steward.model.tables import KAFKA_PARTITIONS, TOPICS
from pulsar_steward.model.topics import OWN_TENANT
from pulsar_steward.model.units import DAY, HOUR, counted
from pulsar_steward.planners.clusters.model import FORECAST, Amounts, Holding, Resource
from pulsar_steward.pulsar.own_settings import NamespaceDocument
from pulsar_steward.snapshots.rows import NamespaceRow, SnapshotMeta

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pulsar_steward.model.tables import Table
    from pulsar_steward.policy.schema import Policy
    from pulsar_steward.snapshots.read import Snapshot

KAFKA_OF_TOPICS = ("auto.leader.rebalance.enable", "min.insync.replicas")
"""Settings of Kafka's brokers, of those that are kept, by which topics are treated."""

KAFKA_TRANSACTIONS = "__transaction_state"

GROWTH_SPAN = timedelta(days=1)
"""Time over which growth is measured, as far as snapshots go back."""

LEAST_GROWTH_SECONDS = 6 * HOUR
"""Least time between two snapshots for a growth; the load of fewer hours follows the time of day."""

_PERSISTENT = "starts_with(topic, 'persistent://')"

_NAMESPACE = "coalesce(namespace, namespace_of(topic))"

_LOADED = f"""
select {_NAMESPACE} as namespace, count(*) as topics, (count(*) filter ({_PERSISTENT}))::bigint as persistent,
    coalesce(sum(subscriptions) filter ({_PERSISTENT}), 0)::bigint as subscriptions,
    coalesce(sum(storage_bytes), 0)::bigint as stored_bytes,
    coalesce(sum(round_even(coalesce(throughput_in_bytes, 0), 0)
        + round_even(coalesce(throughput_out_bytes, 0), 0)), 0)::bigint as bytes_per_second
from topics group by all
"""

_NAMESPACES = "select namespace, allowed_brokers, policies_json from namespaces"

_BROKERS = "select broker, cpu_percent, processors, pulsar_version from brokers where read"

# Of Kafka, a partition counts as a topic; its own topics are those of offsets and transactions.
_KAFKA_TOPICS = "select topic, count(*) as partitions from kafka_partitions group by all"

_KAFKA_TOTALS = """
select (select count(*) from kafka_brokers where listed) as brokers,
    (select count(*) from kafka_groups) as groups,
    (select coalesce(avg(len(replicas)), 1) from kafka_partitions) as replicas,
    (select count(*) from configuration) as settings
"""

_FULLEST_DISK = f"""
select max(value) as percent from metrics where source_kind = 'bookie' and regexp_matches(series, '{DIRECTORY}')
"""


class _Loaded(msgspec.Struct, frozen=True, kw_only=True):
    namespace: str
    topics: int
    persistent: int
    subscriptions: int
    stored_bytes: int
    bytes_per_second: int


class _KafkaTopic(msgspec.Struct, frozen=True):
    topic: str
    partitions: int


class _KafkaTotals(msgspec.Struct, frozen=True, kw_only=True):
    brokers: int
    groups: int
    replicas: float
    settings: int


class _Broker(msgspec.Struct, frozen=True, kw_only=True):
    broker: str
    cpu_percent: float | None
    processors: float | None
    pulsar_version: str | None


class _Counted(msgspec.Struct, frozen=True):
    nodes: int | None


class _Disk(msgspec.Struct, frozen=True):
    percent: float | None


class Capacity(msgspec.Struct, frozen=True, kw_only=True):
    """Capacity of a cluster's brokers and stores.

    Attributes:
        brokers: Brokers that were read.
        lost: Those on the host with most of them, whose loss the others have to carry; of a single host, one.
        topics_per_broker: The most topics of one broker.
        topics: The most topics of the cluster.
        metadata_nodes: The most nodes of its metadata store; None: not known.
        millicpu: Thousandths of a processor of all brokers; None: not known.
        cpu_percent: The most of it that may be used.
        stored_bytes: Bytes of messages with which the fullest disk is at its limit; None: not known.
    """

    brokers: int
    lost: int
    topics_per_broker: int
    topics: int
    metadata_nodes: int | None
    millicpu: int | None
    cpu_percent: int
    stored_bytes: int | None

    def ceilings(self, removed: int = 0) -> Amounts:
        """Ceilings, with so many brokers fewer; those that are left have to carry the loss of a host."""
        left = self.brokers - removed
        carrying = max(left - self.lost, 1)
        found = {Resource.TOPICS: min(carrying * self.topics_per_broker, self.topics)}
        if self.metadata_nodes is not None:
            found[Resource.METADATA_NODES] = self.metadata_nodes
        if self.millicpu is not None:
            found[Resource.MILLICPU] = self.millicpu * self.cpu_percent * carrying // (100 * self.brokers)
        if self.stored_bytes is not None:
            found[Resource.STORED_BYTES] = self.stored_bytes
        return found


class MemberFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A member of a logical cluster; of Kafka, each topic is a namespace, and each partition a topic.

    Attributes:
        meta: Its snapshot.
        capacity: Capacity.
        own: Load that belongs to no namespace of users.
        holdings: Its namespaces, without Pulsar's own, by name.
        replication: Clusters that replicate each of them, by Pulsar's names; None: its policies name none.
        subscriptions: Subscriptions of the namespaces' loaded topics; of Kafka, consumer groups.
        coordinators: Transaction coordinators; of Kafka, each partition of `__transaction_state` is one.
        versions: Versions of its brokers.
        settings: Values of most brokers, of settings by which a topic is treated.
        unknown: Sentences on facts that are not known.
    """

    meta: SnapshotMeta
    capacity: Capacity
    own: Amounts
    holdings: tuple[Holding, ...]
    replication: dict[str, frozenset[str] | None]
    subscriptions: int
    coordinators: int
    versions: tuple[str, ...]
    settings: dict[str, str]
    unknown: tuple[str, ...]

    @property
    def name(self) -> str:
        """Its name in Steward."""
        return self.meta.cluster


def member_facts(snapshot: Snapshot, policy: Policy) -> MemberFacts:
    """Facts of a member, from its newest snapshot and one of the day before; `policy` is its own."""
    meta = snapshot.meta()
    return _of_kafka(snapshot, meta, policy) if meta.system is System.KAFKA else _of_pulsar(snapshot, meta, policy)


def _of_pulsar(snapshot: Snapshot, meta: SnapshotMeta, policy: Policy) -> MemberFacts:
    brokers = snapshot.select(_BROKERS, _Broker)
    loaded = {each.namespace: each for each in snapshot.select(_LOADED, _Loaded)}
    total = sum(each.bytes_per_second for each in loaded.values())
    stored = sum(each.stored_bytes for each in loaded.values())
    processors, used = _processors(brokers)
    loads = {name: _load(each, policy, used or 0, total) for name, each in loaded.items()}
    users = {name: load for name, load in loads.items() if not name.startswith(OWN_TENANT)}
    (zookeeper,), (disk,) = snapshot.select(COUNTED, _Counted), snapshot.select(_FULLEST_DISK, _Disk)
    everything = {it: sum(load[it] for load in loads.values()) for it in Resource}
    everything[Resource.MILLICPU] = used or 0
    everything[Resource.METADATA_NODES] = max(zookeeper.nodes or 0, everything[Resource.METADATA_NODES])
    growths = _growths(snapshot, meta, loads, lambda each: _loads_of(each, policy), TOPICS)
    rows = {row.namespace: row for row in snapshot.select(_NAMESPACES, NamespaceRow)}
    names = sorted(each for each in rows.keys() | users.keys() if not each.startswith(OWN_TENANT))
    documents = {name: _document(rows.get(name)) for name in names}
    said = {
        f"{counted(len(meta.unread), 'part')} could not be read: its load is a lower bound": meta.unread,
        "its brokers do not all report CPU and processors: no ceiling of CPU": used is None,
        "no bookie's disk was read (`collect.metrics_urls`): no ceiling of disks": not disk.percent,
        "namespaces that only other clusters serve were not kept yet": meta.served_elsewhere is None,
        "no whole snapshot was taken 6 h before or more, of the last day: no growth": growths is None,
    }
    return MemberFacts(
        meta=meta,
        capacity=Capacity(
            brokers=len(brokers),
            lost=_lost(brokers),
            topics_per_broker=_topics_per_broker(snapshot, policy),
            topics=policy.partition_ceiling.critical_topics_per_cluster,
            metadata_nodes=policy.partition_ceiling.critical_metadata_nodes,
            millicpu=processors if used is not None else None,
            cpu_percent=policy.cluster_placement.warning_cpu_percent_after_loss,
            stored_bytes=int(stored * policy.bookie_disk.warning_percent / disk.percent) if disk.percent else None,
        ),
        own={it: everything[it] - sum(load[it] for load in users.values()) for it in Resource},
        holdings=tuple(
            Holding(
                namespace=name,
                member=meta.cluster,
                load=users.get(name, {}),
                growth=None if growths is None else growths.get(name, {}),
                allowed=frozenset(document.allowed_clusters) if document and document.allowed_clusters else None,
                replicated_to=_replication(document) or frozenset(),
                pinned="brokers of its member could not be read"
                if meta.unread_brokers
                else _pinned(rows.get(name), document),
            )
            for name, document in documents.items()
        ),
        replication={name: _replication(document) for name, document in documents.items()},
        subscriptions=sum(loaded[name].subscriptions for name in users),
        coordinators=meta.coordinators,
        versions=tuple(sorted({each.pulsar_version for each in brokers if each.pulsar_version})),
        settings={key: value.strip() for key, value in snapshot.usual_settings([*TOGETHER, *OF_TOPICS]).items()},
        unknown=tuple(f"{meta.cluster}: {words}." for words, holds in said.items() if holds),
    )


def _of_kafka(snapshot: Snapshot, meta: SnapshotMeta, policy: Policy) -> MemberFacts:
    """Facts of a Kafka cluster, whose ceilings are of partitions, and of replicas on a broker.

    Replicas of a lost broker come to no other one: the others need no room for them.
    """
    loads, (totals,) = _kafka_loads(snapshot), snapshot.select(_KAFKA_TOTALS, _KafkaTotals)
    settings = snapshot.usual_settings(["zookeeper.connect", *KAFKA_OF_TOPICS])
    by_zookeeper, limits = bool(settings.pop("zookeeper.connect", None)), policy.kafka_partition_ceiling
    unknown_store = not totals.settings
    growths = _growths(snapshot, meta, loads, _kafka_loads, KAFKA_PARTITIONS)
    said = {
        f"{counted(len(meta.unread), 'part')} could not be read: its load is a lower bound": meta.unread,
        "no broker told its settings: the lower ceiling, of metadata in ZooKeeper, is taken": unknown_store,
        "no whole snapshot was taken 6 h before or more, of the last day: no growth": growths is None,
    }
    return MemberFacts(
        meta=meta,
        capacity=Capacity(
            brokers=totals.brokers,
            lost=0,
            topics_per_broker=int(limits.critical_replicas_per_broker / totals.replicas),
            topics=limits.critical_partitions_with_zookeeper
            if by_zookeeper or unknown_store
            else limits.critical_partitions_per_cluster,
            metadata_nodes=None,
            millicpu=None,
            cpu_percent=100,
            stored_bytes=None,
        ),
        own={it: sum(load.get(it, 0) for name, load in loads.items() if is_kafkas_own(name)) for it in Resource},
        holdings=tuple(
            Holding(
                namespace=name,
                member=meta.cluster,
                load=load,
                growth=None if growths is None else growths[name],
                pinned="Steward moves no topics of Kafka",
            )
            for name, load in sorted(loads.items())
            if not is_kafkas_own(name)
        ),
        replication={},
        subscriptions=totals.groups,
        coordinators=loads.get(KAFKA_TRANSACTIONS, {}).get(Resource.TOPICS, 0),
        versions=(),
        settings={key: value.strip() for key, value in settings.items()},
        unknown=tuple(f"{meta.cluster}: {words}." for words, holds in said.items() if holds),
    )


def _kafka_loads(snapshot: Snapshot) -> dict[str, Amounts]:
    """Load of each topic of Kafka."""
    return {each.topic: {Resource.TOPICS: each.partitions} for each in snapshot.select(_KAFKA_TOPICS, _KafkaTopic)}


def is_kafkas_own(topic: str) -> bool:
    """True if a topic of Kafka is a cluster's own, such as that of offsets: each cluster has one of the name."""
    return topic.startswith("__")


def _document(row: NamespaceRow | None) -> NamespaceDocument | None:
    return decode(row.policies_json, NamespaceDocument) if row and row.policies_json else None


def _replication(document: NamespaceDocument | None) -> frozenset[str] | None:
    named = document.replication_clusters if document else None
    return None if named is None else frozenset(named)


def _pinned(row: NamespaceRow | None, document: NamespaceDocument | None) -> str | None:
    if row is None or document is None:
        return "its policies could not be read"
    if row.allowed_brokers is not None:
        return f"isolation policies leave it {counted(len(row.allowed_brokers), 'broker')} where it is"
    return None


def _load(loaded: _Loaded, policy: Policy, millicpu: int, total: int) -> Amounts:
    """Load of a namespace; the use of processors is divided by the bytes in and out, of which there are `total`."""
    limits = policy.partition_ceiling
    of_topics = loaded.persistent * limits.metadata_nodes_per_topic
    return {
        Resource.TOPICS: loaded.topics,
        Resource.METADATA_NODES: of_topics + loaded.subscriptions * limits.metadata_nodes_per_subscription,
        Resource.MILLICPU: millicpu * loaded.bytes_per_second // total if total else 0,
        Resource.STORED_BYTES: loaded.stored_bytes,
    }


def _processors(brokers: Iterable[_Broker]) -> tuple[int, int | None]:
    """Thousandths of a processor: all of them, and the used ones; brokers of one host have the same ones."""
    there: dict[str, int] = {}
    used: dict[str, int] = {}
    for each in brokers:
        if each.processors is None or each.cpu_percent is None:
            return 0, None
        host = host_of(each.broker)
        there[host] = max(there.get(host, 0), int(each.processors * 1000))
        used[host] = max(used.get(host, 0), int(each.processors * each.cpu_percent * 10))
    return sum(there.values()), sum(used.values())


def _lost(brokers: Iterable[_Broker]) -> int:
    hosts = brokers_by_host(each.broker for each in brokers)
    return max(map(len, hosts.values()), default=1) if len(hosts) > 1 else 1


def _topics_per_broker(snapshot: Snapshot, policy: Policy) -> int:
    values = [row.value for row in snapshot.configuration([MAX_TOPICS])]
    configured = [int(value) for value in values if value and value.strip().isdecimal() and int(value)]
    return min([*configured, int(policy.partition_ceiling.critical_topics_per_broker)])


def _loads_of(snapshot: Snapshot, policy: Policy) -> dict[str, Amounts]:
    """Load of each namespace, without the use of processors."""
    return {each.namespace: _load(each, policy, 0, 0) for each in snapshot.select(_LOADED, _Loaded)}


def _growths(
    snapshot: Snapshot,
    meta: SnapshotMeta,
    loads: Mapping[str, Amounts],
    loads_of: Callable[[Snapshot], Mapping[str, Amounts]],
    table: Table,
) -> dict[str, Amounts] | None:
    """Growth of each namespace in a day; None if no earlier snapshot tells, which has to have this table."""
    earlier = snapshot.as_of(meta.taken_at - GROWTH_SPAN)
    if earlier is None or not earlier.has(table.name) or meta.unread:
        return None
    try:
        then, before = earlier.meta(), loads_of(earlier)
    except SnapshotError:  # a damaged one
        return None
    seconds = int((meta.taken_at - then.taken_at).total_seconds())
    if then.unread or seconds < LEAST_GROWTH_SECONDS:
        return None
    return {
        name: {it: (load[it] - before.get(name, {}).get(it, 0)) * DAY // seconds for it in FORECAST if it in load}
        for name, load in loads.items()
    }
