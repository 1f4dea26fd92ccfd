"""When a bundle is too large: below which figures the checks that found it warn no more, and some room left."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.checks.placement.bundle_topic_skew import FEW_BUNDLES
from pulsar_steward.planners.bundles.facts import MEGABYTE, BrokerLimits, Busy, CrowdedNamespace, Load, TopicFact
from pulsar_steward.policy.schema import Policy

if TYPE_CHECKING:
    from pulsar_steward.planners.bundles.parts import BundlePart

_PARTITION = re.compile(r"(.+)-partition-\d+")


class Measure(msgspec.Struct, frozen=True):
    """Something that a bundle may have too much of.

    Attributes:
        name: As people call it.
        of_bundle: A bundle's amount of it.
        of_topic: One topic's.
        words: An amount for a person.
    """

    name: str
    of_bundle: Callable[[Load], int]
    of_topic: Callable[[TopicFact], int]
    words: Callable[[int], str]


TOPICS = Measure("topics", lambda load: load.topics, lambda _: 1, lambda count: f"{count:,} topics")
THROUGHPUT = Measure(
    "throughput",
    lambda load: load.bytes,
    lambda topic: topic.bytes,
    lambda amount: f"{amount / MEGABYTE:,.1f} MB/s",
)
MESSAGES = Measure(
    "messages", lambda load: load.messages, lambda topic: topic.messages, lambda amount: f"{amount:,} messages/s"
)
CLIENTS = Measure(
    "clients", lambda load: load.clients, lambda topic: topic.clients, lambda amount: f"{amount:,} clients"
)


class Excess(msgspec.Struct, frozen=True):
    """What a piece has too much of.

    Attributes:
        measure: Of what.
        amount: How much it has.
        limit: From which amount on it is too much.
    """

    measure: Measure
    amount: int
    limit: int

    @property
    def ratio(self) -> float:
        """How many times too much."""
        return self.amount / max(self.limit, 1)

    @property
    def words(self) -> str:
        """Both figures."""
        return f"{self.measure.words(self.amount)}, of which {self.measure.words(self.limit)} are too many in one"


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """From when on a bundle of one namespace is too large; that depends on how many more bundles there are by then.

    Attributes:
        crowd: The namespace.
        by_topics: Whether its topics are found to crowd.
        hot: Bundles of it that are found hot.
        busy: What hot ones are compared with.
        brokers: Brokers' own limits, by broker.
        policy: The namespace's, for topics.
        cluster: The cluster's, for the rest.
    """

    crowd: CrowdedNamespace
    by_topics: bool
    hot: frozenset[str]
    busy: Busy
    brokers: dict[str, BrokerLimits]
    policy: Policy
    cluster: Policy

    def topics(self, more: int) -> int:
        """Topics from which on `bundle-topic-skew` warns, once there are so many bundles more."""
        skew = self.policy.bundle_topic_skew
        bundles = self.crowd.bundles + more
        # Of few bundles, so many times the mean of the others: most * (bundles - 1) >= times * (topics - most).
        parts = bundles - 1 + skew.warning_times_mean if 1 < bundles <= FEW_BUNDLES else bundles
        by_mean = -(-skew.warning_times_mean * self.crowd.topics // parts)
        return int(min(skew.warning_topics_per_bundle, by_mean))

    def excesses(self, piece: BundlePart, more: int) -> tuple[Excess, ...]:
        """What a piece has too much of, the worst first.

        Args:
            piece: A bundle, or part of one.
            more: How many bundles more there are than in the snapshot.
        """
        limits = [(TOPICS, self.topics(more))] if self._too_many_to_leave(piece) else []
        if piece.bundle in self.hot:
            limits += self._hot(piece.owner, more)
        found = [
            Excess(measure, amount, least)
            for measure, limit in limits
            if (amount := measure.of_bundle(piece.load)) >= (least := self._with_room(limit))
        ]
        return tuple(sorted(found, key=lambda excess: -excess.ratio))

    def _too_many_to_leave(self, piece: BundlePart) -> bool:
        return self.by_topics and piece.load.topics >= self.cluster.bundle_split_remedy.least_topics

    def _with_room(self, limit: int) -> int:
        return max(1, limit * (100 - self.cluster.bundle_split_remedy.room_percent) // 100)

    def _hot(self, owner: str, more: int) -> list[tuple[Measure, int]]:
        """The limits of `hot-bundle`: far over the mean of busy bundles, or over what the broker would split."""
        policy, busy, own = self.cluster.hot_bundle, self.busy, self.brokers.get(owner, BrokerLimits())
        by_bytes = policy.warning_times_mean * busy.bytes // max(busy.with_bytes + more, 1)
        by_clients = policy.warning_times_mean * busy.clients // max(busy.with_clients + more, 1)
        share, brokers = policy.minimum_broker_share_percent, 100 * max(busy.brokers, 1)
        hot_bytes = max(policy.minimum_throughput_megabytes * MEGABYTE, by_bytes, share * busy.all_bytes // brokers)
        hot_clients = max(policy.minimum_clients, by_clients, share * busy.all_clients // brokers)
        return [
            (THROUGHPUT, min(hot_bytes, own.bytes + 1) if own.bytes else hot_bytes),
            (CLIENTS, min(hot_clients, own.clients + 1) if own.clients else hot_clients),
            *([(MESSAGES, own.messages + 1)] if own.messages else []),
        ]


class Dominant(msgspec.Struct, frozen=True):
    """A topic that has so much of a bundle's load that a split cannot help."""

    topic: str
    share_percent: int

    @property
    def base(self) -> str:
        """The topic that it is a partition of; itself where it is none."""
        match = _PARTITION.fullmatch(self.topic)
        return match[1] if match else self.topic


def dominant(piece: BundlePart, measure: Measure, percent: int) -> Dominant | None:
    """The topic that dominates a piece; None: none does, or its number of topics is the trouble.

    Args:
        piece: A bundle, or part of one.
        measure: What there is too much of.
        percent: Share of one topic from which a split cannot help.
    """
    total = measure.of_bundle(piece.load)
    if measure is TOPICS or not piece.topics or not total:
        return None
    hottest = min(piece.topics, key=lambda topic: (-measure.of_topic(topic), topic.topic))
    share = measure.of_topic(hottest) * 100 // total
    return Dominant(hottest.topic, share) if share >= percent or len(piece.topics) == 1 else None
