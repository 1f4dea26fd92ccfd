"""A broker's topics, subscriptions and worst clients as columns, with totals by bundle."""

from __future__ import annotations

from collections import Counter
from heapq import nsmallest
from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.collect.bundles import BundleSum
from pulsar_steward.collect.rows import Rows
from pulsar_steward.model.pulsar_versions import NONE, is_suspicious
from pulsar_steward.model.tables import CLIENT_VERSIONS, CLIENTS, SUBSCRIPTIONS, TOPICS
from pulsar_steward.model.topics import is_own_topic

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pulsar_steward.collect.arrow import TableBatch
    from pulsar_steward.collect.pending import Recent
    from pulsar_steward.pulsar.statistics import (
        ConsumerStatistics,
        PublisherStatistics,
        ReplicatorStatistics,
        SubscriptionStatistics,
        TopicStatistics,
    )

MAX_HOSTS = 1000
"""Maximum number of hosts that are counted for one version in a namespace of a broker."""

MAX_VERSIONS = 100
"""Maximum number of versions in a namespace of a broker, as clients may send anything; further ones count as one."""

MAX_VERSION_LENGTH = 100
NAMED_HOSTS = 5
OTHER = "(others)"


class _OfVersion:
    """Clients of one version in a namespace."""

    __slots__ = ("consumers", "example", "hosts", "producers", "suspicious")

    def __init__(self, version: str) -> None:
        self.producers = self.consumers = 0
        self.suspicious = is_suspicious(version)
        self.hosts: Counter[str] = Counter()
        self.example: tuple[str, str] | None = None

    def name(self, address: str, client: str, topic: str) -> None:
        """Counts the host of a client, and keeps the client as an example if it is the first by name."""
        host = address.removeprefix("/").rpartition(":")[0]
        if host in self.hosts or len(self.hosts) < MAX_HOSTS:
            self.hosts[host] += 1
        if self.example is None or (topic, client) < self.example:
            self.example = topic, client


class ClientVersions:
    """Rows of the table `client_versions` of one broker.

    Args:
        broker: ``host:webport``.
    """

    def __init__(self, broker: str) -> None:
        self._broker = broker
        self._namespaces: dict[str, dict[str, _OfVersion]] = {}

    def add(self, namespace: str, topics: Mapping[str, TopicStatistics], clients: ClientFigures) -> None:
        """Adds clients of topics, by the topics' full names; clients of system topics are the brokers' own."""
        versions = self._namespaces.setdefault(namespace, {})
        for version, count in clients.producer_versions.items():
            self._of(versions, version).producers += count
        for version, count in clients.consumer_versions.items():
            self._of(versions, version).consumers += count
        told = (*clients.producer_versions, *clients.consumer_versions)
        if suspicious := {each for each in told if self._of(versions, each).suspicious}:
            self._name(versions, suspicious, topics)

    def rows(self) -> Iterator[TableBatch]:
        """Yields the rows."""
        rows = Rows(CLIENT_VERSIONS)
        for namespace, versions in sorted(self._namespaces.items()):
            for version, seen in sorted(versions.items()):
                hosts = sorted(seen.hosts.items(), key=lambda item: (-item[1], item[0]))[:NAMED_HOSTS]
                topic, client = seen.example or (None, None)
                row = (
                    self._broker,
                    namespace,
                    version,
                    seen.producers,
                    seen.consumers,
                    len(seen.hosts) if seen.suspicious else None,
                    [host for host, _ in hosts],
                    topic,
                    client,
                )
                rows.add(*([value] for value in row))
        yield from rows.rest()

    def _name(
        self, versions: dict[str, _OfVersion], suspicious: set[str], topics: Mapping[str, TopicStatistics]
    ) -> None:
        """Counts hosts of clients of suspicious versions, and keeps an example of each."""
        for name, topic in topics.items():
            if is_own_topic(name):
                continue
            for producer in topic.publishers:
                if (version := producer.client_version or NONE) in suspicious:
                    self._of(versions, version).name(producer.address or "", producer.producer_name or "", name)
            for subscription in topic.subscriptions.values():
                for consumer in subscription.consumers:
                    if consumer.client_version in suspicious:
                        self._of(versions, consumer.client_version).name(consumer.address, consumer.consumer_name, name)

    @staticmethod
    def _of(versions: dict[str, _OfVersion], told: str) -> _OfVersion:
        version = told[:MAX_VERSION_LENGTH]
        if version not in versions:
            if len(versions) >= MAX_VERSIONS:
                version = OTHER
            versions.setdefault(version, _OfVersion(version))
        return versions[version]


class TopicRows:
    """Rows of the tables `topics`, `subscriptions` and `clients`, and a sum for each bundle.

    Args:
        broker: The owner, ``host:webport``.
        recent: Recognises clients that connected recently.
        most_clients: Maximum number of listed consumers for each subscription.
    """

    def __init__(self, broker: str, recent: Recent, most_clients: int) -> None:
        self._broker = broker
        self._recent = recent
        self._most_clients = most_clients
        self._topics = Rows(TOPICS)
        self._subscriptions = Rows(SUBSCRIPTIONS)
        self._clients = Rows(CLIENTS)
        self.versions = ClientVersions(broker)
        self.sums: dict[tuple[str, str], BundleSum] = {}

    def add(self, namespace: str, bundle: str, topics: dict[str, TopicStatistics]) -> None:
        """Adds topics of one bundle, by their full names."""
        count, values = len(topics), topics.values()
        clients = ClientFigures(topics, self._recent)
        subscriptions = [topic.subscriptions for topic in values]
        consumers_of = [each.consumers for named in subscriptions for each in named.values()]
        counts = iter(map(len, consumers_of))
        producers = [topic.producer_count for topic in values]
        consumers = [sum(islice(counts, len(named))) for named in subscriptions]
        rates = (
            [topic.msg_rate_in for topic in values],
            [topic.msg_rate_out for topic in values],
            [topic.msg_throughput_in for topic in values],
            [topic.msg_throughput_out for topic in values],
        )
        backlog = [topic.backlog_size or 0 for topic in values]
        self._topics.add(
            list(topics),
            [namespace] * count,
            [bundle] * count,
            [self._broker] * count,
            producers,
            consumers,
            [len(named) for named in subscriptions],
            *rates,
            [topic.pending_add_entries_count for topic in values],
            clients.recent_producers,
            [topic.storage_size or 0 for topic in values],
            backlog,
            [_replication(topic.replication) if topic.replication else None for topic in values],
        )
        self.sums.setdefault((namespace, bundle), BundleSum()).add(count, producers, consumers, *rates, backlog)
        self._add_subscriptions(namespace, topics, clients)
        self.versions.add(namespace, topics, clients)

    def full(self) -> Iterator[TableBatch]:
        """Yields and removes all full batches."""
        for rows in (self._topics, self._subscriptions, self._clients):
            yield from rows.full()

    def rest(self) -> Iterator[TableBatch]:
        """Yields and removes all remaining rows."""
        for rows in (self._topics, self._subscriptions, self._clients):
            yield from rows.rest()

    def _add_subscriptions(self, namespace: str, topics: dict[str, TopicStatistics], clients: ClientFigures) -> None:
        names = [name for topic in topics.values() for name in topic.subscriptions]
        owners = [name for name, topic in topics.items() for _ in topic.subscriptions]
        values = [value for topic in topics.values() for value in topic.subscriptions.values()]
        self._subscriptions.add(
            owners,
            [namespace] * len(names),
            names,
            [value.type for value in values],
            [len(value.consumers) for value in values],
            [value.msg_backlog for value in values],
            clients.messages_per_entry,
            [value.unacked_messages or 0 for value in values],
            [value.blocked_subscription_on_unacked_msgs for value in values],
            [value.total_non_contiguous_deleted_messages_range or 0 for value in values],
            [value.number_of_entries_since_first_not_acked_message or 0 for value in values],
            clients.blocked,
            clients.without_permits,
            clients.stuck,
            clients.recent,
            [value.msg_rate_out for value in values],
            [value.message_ack_rate for value in values],
            [value.msg_rate_redeliver for value in values],
            [value.msg_rate_expired for value in values],
        )
        worst = [
            client
            for topic, name, value in zip(owners, names, values, strict=True)
            if value.consumers and (value.msg_backlog or value.unacked_messages)
            for client in self._worst_clients((topic, namespace, name), value)
        ]
        if worst:
            self._clients.add(*zip(*worst, strict=True))

    def _worst_clients(
        self, subscription: tuple[str, str, str], statistics: SubscriptionStatistics
    ) -> Iterator[tuple[object, ...]]:
        """Rows of the table `clients` for the worst consumers of a subscription."""
        many = len(statistics.consumers) > 1
        consumers = nsmallest(self._most_clients, statistics.consumers, key=_badness) if many else statistics.consumers
        for each in consumers[: self._most_clients]:
            yield (
                *subscription,
                each.consumer_name,
                each.address.removeprefix("/"),
                each.connected_since,
                each.unacked_messages,
                each.available_permits,
                bool(each.blocked_consumer_on_unacked_msgs),
                each.msg_rate_out,
                each.message_ack_rate,
            )


def _replication(remote: dict[str, ReplicatorStatistics]) -> str:
    """Value of `replication_json` of a replicated topic, with the clusters by name."""
    told = [
        {
            "cluster": name,
            "connected": each.connected,
            "backlog_entries": each.replication_backlog,
            "message_rate_out": each.msg_rate_out,
            "expired_rate": each.msg_rate_expired,
            "delay_seconds": each.replication_delay_in_seconds if each.connected else None,
            "inbound": bool(each.inbound_connection),
            "message_rate_in": each.msg_rate_in if each.inbound_connection else None,
        }
        for name, each in sorted(remote.items())
    ]
    return msgspec.json.encode(told).decode()


def _badness(consumer: ConsumerStatistics) -> tuple[int, int, str, str]:
    """Sort key: the most unacknowledged messages first, then the fewest permits; names make the order deterministic."""
    return -(consumer.unacked_messages or 0), consumer.available_permits, consumer.consumer_name, consumer.address


class ClientFigures:
    """Figures of the producers and consumers of some topics.

    Attributes:
        recent_producers: By topic, the number of producers that connected recently.
        producer_versions: Number of producers by version, for topics other than system topics.
        consumer_versions: The same for consumers.
        messages_per_entry: By subscription, the highest average among its consumers; None if unknown.
        blocked: By subscription, the number of consumers that get nothing because of too many unacknowledged messages.
        without_permits: By subscription, the number of consumers that have not asked for more.
        stuck: By subscription, the number of its `without_permits` that received and acknowledged nothing lately.
        recent: By subscription, the number of consumers that connected recently.

    Args:
        topics: The topics by full name.
        recent: Recognises clients that connected recently.
    """

    def __init__(self, topics: Mapping[str, TopicStatistics], recent: Recent) -> None:
        self.recent_producers: list[int] = []
        self.messages_per_entry: list[int | None] = []
        self.blocked: list[int] = []
        self.without_permits: list[int] = []
        self.stuck: list[int] = []
        self.recent: list[int] = []
        self._recent = recent
        versions: tuple[list[str], list[str]] = ([], [])
        for name, topic in topics.items():
            own = "/__" in name and is_own_topic(name)
            of_producers, of_consumers = ([], []) if own else versions
            self._add_producers(topic.publishers, of_producers)
            for subscription in topic.subscriptions.values():
                self._add_consumers(subscription.consumers, of_consumers)
        self.producer_versions, self.consumer_versions = map(Counter, versions)

    # Comparisons instead of calls: nothing is as numerous as clients, and a call for each one of a million topics would
    # noticeably slow down collecting.
    # ruff: disable[PLR1730]

    def _add_producers(self, producers: Iterable[PublisherStatistics], versions: list[str]) -> None:
        """Adds the producers of a topic."""
        newly, limit = 0, self._recent.earliest
        for each in producers:
            since = each.connected_since
            if since >= limit and self._recent.holds(since):
                newly += 1
            versions.append(each.client_version or NONE)
        self.recent_producers.append(newly)

    def _add_consumers(self, consumers: Iterable[ConsumerStatistics], versions: list[str]) -> None:
        """Adds the consumers of a subscription."""
        most = blocked = without_permits = stuck = newly = 0
        limit = self._recent.earliest
        for each in consumers:
            since = each.connected_since
            if since >= limit and self._recent.holds(since):
                newly += 1
            versions.append(each.client_version)
            if each.avg_messages_per_entry > most:  # 0 or less if it has received nothing yet
                most = each.avg_messages_per_entry
            if each.blocked_consumer_on_unacked_msgs:
                blocked += 1
            if each.available_permits <= 0:
                without_permits += 1
                rate_out, ack_rate = each.msg_rate_out, each.message_ack_rate
                if rate_out is not None and rate_out <= 0 and ack_rate is not None and ack_rate <= 0:
                    stuck += 1
        self.messages_per_entry.append(most or None)
        self.blocked.append(blocked)
        self.without_permits.append(without_permits)
        self.stuck.append(stuck)
        self.recent.append(newly)

    # ruff: enable[PLR1730]
