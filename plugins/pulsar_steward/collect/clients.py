"""Figures of the clients of topics: by subscription, by topic, and by version."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pulsar_steward.model.client_versions import NONE
from pulsar_steward.model.topics import is_own_topic

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pulsar_steward.admin.statistics import ConsumerStatistics, PublisherStatistics, TopicStatistics
    from pulsar_steward.collect.recent import Recent

_LAST = "~"
"""Sorts after every time."""


class ClientFigures:
    """Figures of the producers and consumers of some topics.

    Attributes:
        recent_producers: By topic, the number that connected recently.
        first_connected: When each topic's first client connected, as brokers write it; a topic without a client, or
            with one of an unknown time, has none.
        producer_versions: Number of producers by version, of topics that are not a namespace's own.
        consumer_versions: The same of consumers.
        messages_per_entry: By subscription, the highest average among its consumers; None if unknown.
        blocked: By subscription, the number that get nothing because of too many unacknowledged messages.
        without_permits: By subscription, the number that have not asked for more.
        stuck: Of these, the number that received and acknowledged nothing lately.
        recent: By subscription, the number that connected recently.

    Args:
        topics: The topics by full name.
        recent: Recognises clients that connected recently.
    """

    def __init__(self, topics: Mapping[str, TopicStatistics], recent: Recent) -> None:
        self.recent_producers: list[int] = []
        self.first_connected: list[str] = []
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
            first = self._add_producers(topic.publishers, of_producers)
            for subscription in topic.subscriptions.values():
                first = self._add_consumers(subscription.consumers, of_consumers, first)
            if first and first is not _LAST:
                self.first_connected.append(first)
        self.producer_versions, self.consumer_versions = map(Counter, versions)

    # Comparisons, as there are more clients than of anything else: a call for each one of a million topics would be
    # seen in the time that collecting takes.
    # ruff: disable[PLR1730]

    def _add_producers(self, producers: Iterable[PublisherStatistics], versions: list[str]) -> str:
        """Adds the producers of a topic; returns when the first of them connected."""
        first, newly, limit = _LAST, 0, self._recent.earliest
        for each in producers:
            since = each.connected_since
            if since < first:  # texts of one zone sort as their times do
                first = since
            if since >= limit and self._recent.holds(since):
                newly += 1
            versions.append(each.client_version or NONE)
        self.recent_producers.append(newly)
        return first

    def _add_consumers(self, consumers: Iterable[ConsumerStatistics], versions: list[str], first: str) -> str:
        """Adds the consumers of a subscription; returns when the first of them connected, or `first` if earlier."""
        most = blocked = without_permits = stuck = newly = 0
        limit = self._recent.earliest
        for each in consumers:
            since = each.connected_since
            if since < first:
                first = since
            if since >= limit and self._recent.holds(since):
                newly += 1
            versions.append(each.client_version)
            if each.avg_messages_per_entry > most:  # 0 or less for one that received nothing yet
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
        return first

    # ruff: enable[PLR1730]
