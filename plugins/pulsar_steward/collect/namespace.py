"""Live look at one namespace of a cluster, in a bounded number of calls; it loads no topic and changes nothing.

A cluster of B brokers gets up to 10 + 3 B calls, however many topics it has, and then one for each of `MAX_ASKED`.
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from pulsar_steward.decoding import decode
from pulsar_steward.errors import AdminError, NotFound
from pulsar_steward.facts.namespace_look import ClientGroup, LoadedTopic, NamespaceLook, Position, Replicating
from pulsar_steward.model.bundles import position_of, range_holding, ranges_of
from pulsar_steward.model.cluster import configuration_store_id, identity_of
from pulsar_steward.model.pulsar_versions import MIGRATES_NAMESPACES, release_of
from pulsar_steward.model.subscription import HolderKind, kind_of_cursor
from pulsar_steward.model.topics import SEGMENT, is_own_topic, partitioned_topic
from pulsar_steward.pulsar.owner import OwnerReader
from pulsar_steward.pulsar.reader import Reader
from pulsar_steward.pulsar.statistics import each_topic

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from pulsar_steward.pulsar.settings import AdminSettings
    from pulsar_steward.pulsar.statistics import TopicStatistics

MAX_ASKED = 100
"""Topics of a cluster that are asked one by one, for what no list or broker-wide document tells."""

REPLICATORS = "pulsar.repl."
"""Prefix of the names of other clusters' producers, which brokers before 4.0 list among the clients'."""

FIRST = frozenset({"earliest", "-1:-1:-1"})
"""Values of `replicationStartAt` with which a topic is replicated from its first message on, in lower case."""

T = TypeVar("T")


def serves(settings: AdminSettings, namespace: str) -> bool | None:
    """Whether a cluster serves a namespace, by its own policies; None: it has no such namespace.

    Raises:
        AdminError: If it cannot be read.
    """
    with Reader(settings) as reader:
        try:
            return identity_of(reader.runtime_configuration()).name in reader.clusters_of(namespace)
        except NotFound:
            return None


def partitions_of(settings: AdminSettings, topics: Iterable[str]) -> dict[str, int]:
    """Numbers of partitions of these topics, a call each; 0: not partitioned, or not there."""
    with Reader(settings) as reader:
        return {topic: reader.partitions(topic) for topic in topics}


def look_at(settings: AdminSettings, cluster: str, namespace: str) -> NamespaceLook:
    """A namespace as it is at a cluster now.

    Args:
        settings: How the cluster is reached.
        cluster: Its name in Steward.
        namespace: ``tenant/namespace``.

    Raises:
        AdminError: If the cluster does not answer, or its clusters, tenant or namespace cannot be read.
    """
    with ExitStack() as stack:
        return _Looking(settings, namespace, stack).all(cluster)


class _Looking:
    """One look: its readers, and what could not be read."""

    def __init__(self, settings: AdminSettings, namespace: str, stack: ExitStack) -> None:
        self._settings = settings
        self._namespace = namespace
        self._stack = stack
        self._reader = stack.enter_context(Reader(settings))
        self._configuration = self._reader.runtime_configuration()
        self._pulsar_name = identity_of(self._configuration).name
        self._unread: list[str] = []

    def all(self, cluster: str) -> NamespaceLook:
        """Makes all calls."""
        reader, version = self._reader, self._reader.version()
        clusters = reader.clusters()
        seconds = self._configuration.get("clusterMigrationCheckDurationSeconds", "")
        base = NamespaceLook(
            cluster=cluster,
            pulsar_name=self._pulsar_name,
            url=self._settings.bases[0],
            version=version,
            store=configuration_store_id(self._configuration) or "",
            keeps_positions=self._configuration.get("enableReplicatedSubscriptions", "true").lower() != "false",
            sends_all=self._configuration.get("replicationStartAt", "").lower() in FIRST,
            migration_seconds=int(seconds) if seconds.isdecimal() else 0,
            clusters=frozenset(clusters),
            tenant_clusters=reader.allowed_clusters(self._namespace.partition("/")[0]),
            policies=self._policies(),
        )
        own = self._tried("its own addresses", lambda: reader.address_of(self._pulsar_name))
        release = release_of(version)
        migration = self._tried(
            "Pulsar's own migration",
            lambda: reader.migration_of(
                self._pulsar_name, own_path=release is None or MIGRATES_NAMESPACES.is_in(*release)
            ),
        )
        found = msgspec.structs.replace(
            base,
            addresses={self._pulsar_name: (own.admin, own.service)} if own else {},
            migrated=bool(migration and migration.migrated),
            migrates_to=(migration and migration.migrated_cluster_url and migration.migrated_cluster_url.service) or "",
        )
        if base.policies is not None and base.serves:
            owners = self._owners()
            statistics = self._statistics(owners)
            if any(name.startswith(SEGMENT) for name in statistics):
                self._unread.append("its scalable topics: which there are, and where they stand, is not looked at")
            found = msgspec.structs.replace(
                found,
                topics=self._topics(),
                loaded=self._loaded(statistics, owners, base.policies),
                clients=_clients(statistics.values()),
            )
        return msgspec.structs.replace(found, unread=tuple(self._unread))

    def _policies(self) -> dict[str, Any] | None:
        try:
            return decode(self._reader.namespace_policies(self._namespace), dict[str, Any])
        except NotFound:
            return None

    def _topics(self) -> dict[str, int]:
        """Number of partitions of each topic, counted in the list of all; a partition may be missing there."""
        names = self._tried("its list of topics", lambda: self._reader.topics(self._namespace)) or ()
        whole = self._tried("its partitioned topics", lambda: self._reader.partitioned(self._namespace)) or ()
        counts = Counter(partitioned_topic(name) for name in names)
        partitioned = {*whole, *(partitioned_topic(name) for name in names if partitioned_topic(name) != name)}
        every = [each for each in (*partitioned, *counts) if not is_own_topic(each)]
        found = {name: counts[name] if name in partitioned else 0 for name in sorted(every)}
        unmade = [name for name in found if name in partitioned and not found[name]][:MAX_ASKED]
        told = self._tried("its numbers of partitions", lambda: partitions_of(self._settings, unmade)) if unmade else {}
        return {**found, **(told or {})}

    def _owners(self) -> dict[str, frozenset[str]]:
        """Bundles of the namespace, by the broker that owns them; a broker without any is left out."""
        brokers = self._tried("its list of brokers", self._reader.brokers) or ()
        owned = {broker: self._owned(broker) for broker in brokers}
        return {broker: bundles for broker, bundles in owned.items() if bundles}

    def _owned(self, broker: str) -> frozenset[str]:
        ask = self._stack.enter_context(self._reader.at(broker)).owned_bundles
        bundles = self._tried(f"what {broker} owns", lambda: ask(self._pulsar_name, broker)) or ()
        return frozenset(each for each in bundles if each.startswith(f"{self._namespace}/"))

    def _statistics(self, brokers: Collection[str]) -> dict[str, TopicStatistics]:
        found: dict[str, TopicStatistics] = {}
        for broker in brokers:
            told = self._tried(f"topics of {broker}", partial(self._of_broker, broker))
            found |= told or {}
        return found

    def _of_broker(self, broker: str) -> dict[str, TopicStatistics]:
        with self._reader.at(broker) as reader:
            document = reader.topic_statistics()
        return {name: each for name, each in each_topic(document, self._namespace, broker) if not is_own_topic(name)}

    def _loaded(
        self, statistics: Mapping[str, TopicStatistics], owners: Mapping[str, frozenset[str]], policies: dict[str, Any]
    ) -> dict[str, LoadedTopic]:
        persistent = {name: each for name, each in statistics.items() if name.startswith("persistent://")}
        flags = self._flags(persistent, owners, policies)
        return {
            name: LoadedTopic(
                positions={
                    subscription: Position(
                        entries=max(told.msg_backlog, 0),
                        consumers=len(told.consumers),
                        messages_per_entry=max((c.avg_messages_per_entry for c in told.consumers), default=0) or None,
                        replicated=flags.get(name, {}).get(subscription),
                    )
                    for subscription, told in topic.subscriptions.items()
                    if kind_of_cursor(subscription) is HolderKind.SUBSCRIPTION
                },
                replication={
                    remote: Replicating(
                        connected=told.connected,
                        entries=max(told.replication_backlog, 0),
                        rate_out=told.msg_rate_out,
                        delay_seconds=told.replication_delay_in_seconds if told.connected else None,
                        inbound=bool(told.inbound_connection),
                    )
                    for remote, told in topic.replication.items()
                },
            )
            for name, topic in sorted(persistent.items())
        }

    def _flags(
        self, topics: Mapping[str, TopicStatistics], owners: Mapping[str, frozenset[str]], policies: dict[str, Any]
    ) -> dict[str, dict[str, bool]]:
        """Whether positions go along, by topic and subscription: of the topics with most to read, up to `MAX_ASKED`."""
        held = {
            name: max(each.msg_backlog for each in topic.subscriptions.values())
            for name, topic in topics.items()
            if topic.subscriptions
        }
        wanted = sorted(held, key=lambda name: (-held[name], name))[:MAX_ASKED]
        ranges = ranges_of((policies.get("bundles") or {}).get("boundaries") or ("0x00000000", "0xffffffff"))
        bundle_of = {name: f"{self._namespace}/{range_holding(ranges, position_of(name))}" for name in wanted}
        found: dict[str, dict[str, bool]] = {}
        for broker, bundles in owners.items():
            if asked := [name for name in wanted if bundle_of[name] in bundles]:
                # A broker that no longer owns a bundle would load it: it is asked once more right before.
                still = self._owned(broker)
                with OwnerReader(self._settings, broker) as owner:
                    for name in (each for each in asked if bundle_of[each] in still):
                        told = self._tried(name, partial(owner.statistics, name))
                        if told is not None:
                            found[name] = {each: told.subscriptions[each].is_replicated for each in told.subscriptions}
        return found

    def _tried(self, what: str, ask: Callable[[], T]) -> T | None:
        """Result of a call; None: it failed, which is noted."""
        try:
            return ask()
        except AdminError as error:
            self._unread.append(f"{what}: {error}")
            return None


def _clients(topics: Iterable[TopicStatistics]) -> tuple[ClientGroup, ...]:
    producers: Counter[tuple[str, str]] = Counter()
    consumers: Counter[tuple[str, str]] = Counter()
    for topic in topics:
        for producer in topic.publishers:
            if not (producer.producer_name or "").startswith(REPLICATORS):
                producers[_host(producer.address), producer.client_version or ""] += 1
        for subscription in topic.subscriptions.values():
            for consumer in subscription.consumers:
                consumers[_host(consumer.address), consumer.client_version] += 1
    groups = [
        ClientGroup(host=host, version=version, producers=producers[host, version], consumers=consumers[host, version])
        for host, version in {*producers, *consumers}
    ]
    return tuple(sorted(groups, key=lambda each: (-each.producers - each.consumers, each)))


def _host(address: str | None) -> str:
    return (address or "").removeprefix("/").rpartition(":")[0]
