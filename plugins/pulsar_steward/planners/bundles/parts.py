"""The parts of split bundles with the load of each, and the limits by which they are too large."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.checks.placement.bundle_load import FEW_BUNDLES
from pulsar_steward.model.bundles import FULL_RANGE, BundleRange, halves_by_topic_count
from pulsar_steward.model.topics import partitioned_topic
from pulsar_steward.model.units import MEGABYTE, counted, throughput_in_words
from pulsar_steward.planners.bundles.facts import BrokerLimits, Busy, Load, NamespaceToSplit, PlacedBundle, TopicFact
from pulsar_steward.policy.schema import Policy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsar_steward.planners.bundles.facts import SplitCandidate


class BundlePart(msgspec.Struct, frozen=True, kw_only=True):
    """A bundle, or a part of one after splits.

    Attributes:
        range: Its hash range.
        bundle: The bundle of the snapshot that contains it, or that it is.
        owner: The owner of that bundle, ``host:webport``.
        positions: Hash positions of all its topics, loaded or not, rising.
        topics: Its loaded topics, by position.
        load: The load of these topics.
    """

    range: BundleRange
    bundle: str
    owner: str
    positions: tuple[int, ...]
    topics: tuple[TopicFact, ...]
    load: Load


def part_of(suspect: SplitCandidate, owner: str, positions: tuple[int, ...]) -> BundlePart:
    """A whole bundle as a part."""
    return BundlePart(
        range=BundleRange.parse(suspect.bundle),
        bundle=suspect.bundle,
        owner=owner,
        positions=positions,
        topics=suspect.topics,
        load=suspect.load,
    )


def halves_of(part: BundlePart) -> tuple[BundlePart, BundlePart] | None:
    """The halves that ``topic_count_equally_divide`` makes of a part; None: it would divide nothing."""
    ranges = halves_by_topic_count(part.range, part.positions)
    if ranges is None:
        return None
    lower, upper = (_half(part, each) for each in ranges)
    return (lower, upper) if lower.positions and upper.positions else None


def placed(part: BundlePart, whole: PlacedBundle) -> PlacedBundle:
    """A part as a bundle on its owner: its mean and its peak are those of the whole, by its share of the load now.

    Both are estimates: a part whose topics peak at another time than the rest exceeds its share. No bound below the
    whole's own peak is known, as earlier snapshots were not summed up by part.
    """
    share = {field: (getattr(part.load, field), getattr(whole.now, field)) for field in Load.__struct_fields__}

    def of(load: Load) -> Load:
        return Load(
            **{
                field: min(getattr(load, field), getattr(load, field) * mine // all_now) if all_now else 0
                for field, (mine, all_now) in share.items()
            }
        )

    return msgspec.structs.replace(
        whole, bundle=str(part.range), mean=of(whole.mean), peak=of(whole.peak), now=part.load, whole=part.bundle
    )


def load_of(topics: Sequence[TopicFact]) -> Load:
    """The load of several topics together."""
    return Load(
        topics=len(topics),
        bytes=sum(topic.bytes for topic in topics),
        messages=sum(topic.messages for topic in topics),
        producers=sum(topic.producers for topic in topics),
        consumers=sum(topic.consumers for topic in topics),
    )


def _half(part: BundlePart, half: BundleRange) -> BundlePart:
    end = half.upper + 1 if half.upper == FULL_RANGE else half.upper
    positions = part.positions[bisect_left(part.positions, half.lower) : bisect_left(part.positions, end)]
    first, last = (bisect_left(part.topics, bound, key=lambda topic: topic.position) for bound in (half.lower, end))
    topics = part.topics[first:last]
    return BundlePart(
        range=half, bundle=part.bundle, owner=part.owner, positions=positions, topics=topics, load=load_of(topics)
    )


class Measure(msgspec.Struct, frozen=True):
    """A quantity that a bundle may have too much of.

    Attributes:
        name: Its name in notes.
        of_bundle: Function from a bundle's load to the amount.
        of_topic: Function from a topic to the amount.
        words: Function from an amount to text.
    """

    name: str
    of_bundle: Callable[[Load], int]
    of_topic: Callable[[TopicFact], int]
    words: Callable[[int], str]


TOPICS = Measure("topics", lambda load: load.topics, lambda _: 1, lambda count: counted(count, "topic"))
THROUGHPUT = Measure("throughput", lambda load: load.bytes, lambda topic: topic.bytes, throughput_in_words)
MESSAGES = Measure(
    "messages", lambda load: load.messages, lambda topic: topic.messages, lambda amount: f"{amount:,} messages/s"
)
CLIENTS = Measure(
    "clients", lambda load: load.clients, lambda topic: topic.clients, lambda amount: counted(amount, "client")
)


class Excess(msgspec.Struct, frozen=True):
    """A quantity of a bundle that is too large: its amount, and the smallest amount that is too much."""

    measure: Measure
    amount: int
    limit: int

    @property
    def ratio(self) -> float:
        """The amount as a multiple of the limit."""
        return self.amount / max(self.limit, 1)

    @property
    def words(self) -> str:
        """Both figures as text."""
        return f"{self.measure.words(self.amount)}, of which {self.measure.words(self.limit)} are too many in one"


class BundleLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of the bundles of one namespace; they depend on the number of bundles, which grows with each split.

    Attributes:
        crowd: The namespace.
        by_topics: True if it has findings of `bundle-topic-skew`.
        hot: Its bundles with findings of `hot-bundle`, as ranges.
        busy: The load that hot bundles are compared with.
        brokers: Brokers' own limits, by broker.
        policy: The namespace's policy, for topics.
        cluster: The cluster's policy, for the rest.
    """

    crowd: NamespaceToSplit
    by_topics: bool
    hot: frozenset[str]
    busy: Busy
    brokers: dict[str, BrokerLimits]
    policy: Policy
    cluster: Policy

    def topics(self, more: int) -> int:
        """Number of topics from which `bundle-topic-skew` warns, with `more` bundles more."""
        skew = self.policy.bundle_topic_skew
        bundles = self.crowd.bundles + more
        # With few bundles, a multiple of the mean of the others: most * (bundles - 1) >= times * (topics - most).
        parts = bundles - 1 + skew.warning_times_mean if 1 < bundles <= FEW_BUNDLES else bundles
        by_mean = -(-skew.warning_times_mean * self.crowd.topics // parts)
        return int(min(skew.warning_topics_per_bundle, by_mean))

    def excesses(self, part: BundlePart, more: int) -> tuple[Excess, ...]:
        """All excesses of a part, the worst first, once splits have added so many bundles (`more`) to the snapshot."""
        limits = [(TOPICS, self.topics(more))] if self._too_many_to_leave(part) else []
        if part.bundle in self.hot:
            limits += self._hot(part.owner, more)
        found = [
            Excess(measure, amount, least)
            for measure, limit in limits
            if (amount := measure.of_bundle(part.load)) >= (least := self._with_room(limit))
        ]
        return tuple(sorted(found, key=lambda excess: -excess.ratio))

    def _too_many_to_leave(self, part: BundlePart) -> bool:
        return self.by_topics and part.load.topics >= self.cluster.bundle_split_remedy.least_topics

    def _with_room(self, limit: int) -> int:
        return max(1, limit * (100 - self.cluster.bundle_split_remedy.room_percent) // 100)

    def _hot(self, owner: str, more: int) -> list[tuple[Measure, int]]:
        """The limits of `hot-bundle`: far over the mean of busy bundles, or over the broker's split threshold."""
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
    """A topic with so much of a bundle's load that a split cannot help."""

    topic: str
    share_percent: int

    @property
    def base(self) -> str:
        """The partitioned topic of a partition; else the topic itself."""
        return partitioned_topic(self.topic)


def dominant(part: BundlePart, measure: Measure, percent: int) -> Dominant | None:
    """The topic with so many percent of a part; None: there is none, or too many topics, which a split helps."""
    total = measure.of_bundle(part.load)
    if measure is TOPICS or not part.topics or not total:
        return None
    hottest = min(part.topics, key=lambda topic: (-measure.of_topic(topic), topic.topic))
    share = measure.of_topic(hottest) * 100 // total
    return Dominant(hottest.topic, share) if share >= percent or len(part.topics) == 1 else None
