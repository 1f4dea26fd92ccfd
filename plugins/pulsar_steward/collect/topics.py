"""A broker's topics, subscriptions and worst clients as columns, with totals by bundle."""

from __future__ import annotations

from heapq import nsmallest
from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.collect.client_versions import ClientVersions
from pulsar_steward.collect.clients import ClientFigures
from pulsar_steward.collect.first_clients import FirstClients
from pulsar_steward.collect.rows import Rows
from pulsar_steward.collect.sums import BundleSum
from pulsar_steward.model.tables import CLIENTS, SUBSCRIPTIONS, TOPICS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pulsar_steward.admin.statistics import (
        ConsumerStatistics,
        ReplicatorStatistics,
        SubscriptionStatistics,
        TopicStatistics,
    )
    from pulsar_steward.collect.arrow import TableBatch
    from pulsar_steward.collect.recent import Recent


class TopicRows:
    """Rows of the tables `topics`, `subscriptions` and `clients`, and a sum for each bundle.

    Args:
        broker: The owner, ``host:webport``.
        recent: Recognises clients that connected recently.
        most_clients: Consumers of one subscription that are listed, at most.
    """

    def __init__(self, broker: str, recent: Recent, most_clients: int) -> None:
        self._broker = broker
        self._recent = recent
        self._most_clients = most_clients
        self._topics = Rows(TOPICS)
        self._subscriptions = Rows(SUBSCRIPTIONS)
        self._clients = Rows(CLIENTS)
        self.versions = ClientVersions(broker)
        self.first_clients = FirstClients()
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
        backlog = [topic.backlog_size for topic in values]
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
            [topic.storage_size for topic in values],
            backlog,
            [_replication(topic.replication) if topic.replication else None for topic in values],
        )
        self.sums.setdefault((namespace, bundle), BundleSum()).add(count, producers, consumers, *rates, backlog)
        self.first_clients.add((namespace, bundle), clients.first_connected)
        self._add_subscriptions(namespace, topics, clients)
        self.versions.add(namespace, topics, clients)

    def full(self) -> Iterator[TableBatch]:
        """Yields and removes all full batches."""
        for rows in (self._topics, self._subscriptions, self._clients):
            yield from rows.full()

    def rest(self) -> Iterator[TableBatch]:
        """Yields and removes all rows that are left."""
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
            [value.unacked_messages for value in values],
            [value.blocked_subscription_on_unacked_msgs for value in values],
            [value.total_non_contiguous_deleted_messages_range for value in values],
            [value.number_of_entries_since_first_not_acked_message for value in values],
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
                each.client_version,
                each.connected_since,
                each.unacked_messages,
                each.available_permits,
                bool(each.blocked_consumer_on_unacked_msgs),
                each.msg_rate_out,
                each.message_ack_rate,
            )


def _replication(remote: dict[str, ReplicatorStatistics]) -> str:
    """Value of `replication_json` of a topic that is replicated, the clusters by name."""
    told = [
        {
            "cluster": name,
            "connected": each.connected,
            "backlog_entries": each.replication_backlog,
            "message_rate_out": each.msg_rate_out,
            "expired_rate": each.msg_rate_expired,
        }
        for name, each in sorted(remote.items())
    ]
    return msgspec.json.encode(told).decode()


def _badness(consumer: ConsumerStatistics) -> tuple[int, int, str, str]:
    """Sort key: the most unacknowledged messages first, then the fewest permits; names make the order deterministic."""
    return -(consumer.unacked_messages or 0), consumer.available_permits, consumer.consumer_name, consumer.address
