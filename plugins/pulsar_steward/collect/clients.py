"""Figures of the clients of topics: by subscription, by topic, and by version."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pulsar_steward.model.client_versions import NONE
from pulsar_steward.model.topics import is_own_topic

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pulsar_steward.collect.recent import Recent
    from pulsar_steward.pulsar.statistics import ConsumerStatistics, PublisherStatistics, TopicStatistics


class ClientFigures:
    """Figures of the producers and consumers of some topics.

    Attributes:
        recent_producers: By topic, the number of producers that connected recently.
        producer_versions: Number of producers by version, for topics other than system topics.
        consumer_versions: The same for consumers.
        messages_per_entry: By subscription, the highest average among its consumers; None if unknown.
        blocked: By subscription, the number of consumers that get nothing because of too many unacknowledged messages.
        without_permits: By subscription, the number of consumers that have not asked for more.
        stuck: By subscription, the number of these (`without_permits`) that received and acknowledged nothing recently.
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
                if each.msg_rate_out <= 0 and each.message_ack_rate <= 0:
                    stuck += 1
        self.messages_per_entry.append(most or None)
        self.blocked.append(blocked)
        self.without_permits.append(without_permits)
        self.stuck.append(stuck)
        self.recent.append(newly)

    # ruff: enable[PLR1730]
