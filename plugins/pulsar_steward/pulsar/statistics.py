"""Typed reader of a broker's topic statistics: ``GET /admin/v2/broker-stats/topics``.

The document nests namespace → bundle → domain → topic and has about 800 bytes per topic, 80 MB for a broker with
100,000 topics. At first only the two outer levels are decoded. Each bundle's topics are decoded when they are needed,
those of a very large bundle 1,000 at a time, and only the used fields of each topic and client.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.decoding import decoder
from pulsar_steward.errors import BrokenAnswer
from pulsar_steward.model.bundles import BundleRange, position_of
from pulsar_steward.pulsar.body import decoded
from pulsar_steward.pulsar.figures import Figure, Rate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pulsar_steward.pulsar.body import Body

PATH = "/admin/v2/broker-stats/topics"


class PublisherStatistics(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """One connected producer."""

    connected_since: str = ""
    producer_name: str | None = None
    address: str | None = None
    client_version: str | None = None


class ConsumerStatistics(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """One connected consumer; brokers report unacknowledged messages for shared subscriptions only."""

    connected_since: str = ""
    available_permits: Figure = 0
    unacked_messages: Figure | None = None
    blocked_consumer_on_unacked_msgs: bool | None = None
    consumer_name: str = ""
    address: str = ""
    client_version: str = ""
    msg_rate_out: Rate = 0.0
    message_ack_rate: Rate = 0.0
    avg_messages_per_entry: Figure = 0


class SubscriptionStatistics(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """One subscription of a loaded topic.

    Fields without a default are reported by every broker for every topic: a document without them is rejected instead
    of counting as 0. Some figures are reported only for persistent topics, or for some types of subscriptions: they are
    None if they are missing.
    """

    consumers: list[ConsumerStatistics]
    type: str
    msg_backlog: Figure
    unacked_messages: Figure | None = None
    blocked_subscription_on_unacked_msgs: bool = False
    total_non_contiguous_deleted_messages_range: Figure | None = None
    number_of_entries_since_first_not_acked_message: Figure | None = None
    msg_rate_out: Rate = 0.0
    message_ack_rate: Rate = 0.0
    msg_rate_redeliver: Rate = 0.0
    msg_rate_expired: Rate = 0.0


class ReplicatorStatistics(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Replication of a topic to one remote cluster, and from there: waiting entries, and messages per second.

    What comes from there is told while a producer of that cluster is connected (`inbound_connection`).
    """

    replication_backlog: Figure
    connected: bool | None = None
    msg_rate_in: Rate = None
    msg_rate_out: Rate = 0.0
    msg_rate_expired: Rate = 0.0
    replication_delay_in_seconds: Figure | None = None
    inbound_connection: str | None = None


class TopicStatistics(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """One loaded topic; rates are messages or bytes per second, sizes are bytes (None: the topic stores nothing)."""

    subscriptions: dict[str, SubscriptionStatistics]
    publishers: list[PublisherStatistics]
    replication: dict[str, ReplicatorStatistics]
    producer_count: Figure
    msg_rate_in: Rate = 0.0
    msg_rate_out: Rate = 0.0
    msg_throughput_in: Rate = 0.0
    msg_throughput_out: Rate = 0.0
    pending_add_entries_count: Figure = 0
    storage_size: Figure | None = None
    backlog_size: Figure | None = None

    @property
    def keeps_unknown(self) -> bool:
        """True if a persistent topic's size or backlogs are not known.

        A figure below 0 also counts as unknown: the broker miscounted.
        """
        figures = [self.storage_size, self.backlog_size]
        figures += (each.replication_backlog for each in self.replication.values())
        for each in self.subscriptions.values():
            figures += (
                each.msg_backlog,
                each.total_non_contiguous_deleted_messages_range,
                each.number_of_entries_since_first_not_acked_message,
            )
        return any(figure is None or figure < 0 for figure in figures)

    @property
    def consumer_count(self) -> int:
        """Connected consumers of all subscriptions."""
        return sum(len(subscription.consumers) for subscription in self.subscriptions.values())

    @property
    def clients(self) -> int:
        """Connected producers, and consumers of all subscriptions."""
        return self.producer_count + self.consumer_count


class BundleStatistics(msgspec.Struct, frozen=True):
    """Loaded topics of one bundle by full name, of all domains; a very large bundle is given in several parts."""

    namespace: str
    bundle: str
    topics: dict[str, TopicStatistics]


_outer = decoder(dict[str, dict[str, msgspec.Raw]])
_inner = decoder(dict[str, dict[str, TopicStatistics]])
_names = decoder(dict[str, dict[str, msgspec.Raw]])
_topic = decoder(TopicStatistics)

LARGE_BUNDLE_BYTES = 32 << 20
"""Size from which a bundle's topics are not decoded all at once."""

UNREADABLE = (msgspec.DecodeError, ValueError, RecursionError)
"""Errors raised for a document of another shape, an invalid bundle range or a name that is no valid text."""

TOPICS_AT_ONCE = 1_000


def bundles_in(document: Body, broker: str, large: int = LARGE_BUNDLE_BYTES) -> Iterator[BundleStatistics]:
    """Yields every bundle in a document of `Reader.topic_statistics`, one at a time.

    Args:
        document: The body as the broker sent it.
        broker: ``host:webport``, named in errors.
        large: Size in bytes from which a bundle is given in several parts.

    Raises:
        BrokenAnswer: If the document, or the next bundle, cannot be read.
    """
    try:
        for namespace, bundles in decoded(document, _outer).items():
            for bundle, topics in bundles.items():
                BundleRange.parse(bundle)
                for part in _parts_of(topics, large):
                    yield BundleStatistics(namespace, bundle, part)
    except UNREADABLE as error:
        raise BrokenAnswer("GET", PATH, broker, f"the answer cannot be read: {error}") from error


def clients_by_bundle(document: Body, broker: str = "a broker") -> dict[str, int]:
    """Number of connected producers and consumers of every bundle (``tenant/ns/range``) with a loaded topic.

    Raises:
        BrokenAnswer: If the document cannot be read.
    """
    found: dict[str, int] = defaultdict(int)
    for bundle in bundles_in(document, broker):
        found[f"{bundle.namespace}/{bundle.bundle}"] += sum(topic.clients for topic in bundle.topics.values())
    return dict(found)


def loaded_topics(document: Body, namespace: str, broker: str) -> frozenset[str]:
    """Full names of a namespace's loaded topics in a document of `Reader.topic_statistics`.

    Raises:
        BrokenAnswer: If the document cannot be read.
    """
    try:
        bundles = decoded(document, _outer).get(namespace, {}).values()
        return frozenset(name for bundle in bundles for names in decoded(bundle, _names).values() for name in names)
    except UNREADABLE as error:
        raise BrokenAnswer("GET", PATH, broker, f"the answer cannot be read: {error}") from error


def is_of_topic(name: str, topic: str) -> bool:
    """True for the topic itself, or one of its partitions."""
    return name == topic or (name.startswith(f"{topic}-partition-") and name.rpartition("-")[2].isdigit())


def each_topic(
    document: Body, namespace: str, broker: str, topic: str | None = None
) -> Iterator[tuple[str, TopicStatistics]]:
    """Yields the loaded topics of a namespace by full name, or only one topic and its partitions.

    Args:
        document: The body as the broker sent it.
        namespace: ``tenant/namespace``.
        broker: ``host:webport``, named in errors.
        topic: The topic, or the partitioned topic; None: all.

    Raises:
        BrokenAnswer: If the document cannot be read.
    """
    try:
        for bundle in decoded(document, _outer).get(namespace, {}).values():
            for name, each in _topics_of(bundle).items():
                if topic is None or is_of_topic(name, topic):
                    yield name, each
    except UNREADABLE as error:
        raise BrokenAnswer("GET", PATH, broker, f"the answer cannot be read: {error}") from error


def topics_in(document: Body, namespace: str, wanted: BundleRange, broker: str) -> dict[str, TopicStatistics]:
    """Loaded topics of a bundle by full name, even if the document is older than a split and has the whole bundle.

    Raises:
        BrokenAnswer: If the document cannot be read.
    """
    try:
        bundles = decoded(document, _outer).get(namespace, {}).items()
        near = (topics for bundle, topics in bundles if BundleRange.parse(bundle).overlaps(wanted))
        found = (pair for topics in near for pair in _topics_of(topics).items())
        return {name: topic for name, topic in found if position_of(name) in wanted}
    except UNREADABLE as error:
        raise BrokenAnswer("GET", PATH, broker, f"the answer cannot be read: {error}") from error


def _parts_of(document: msgspec.Raw, large: int) -> Iterator[dict[str, TopicStatistics]]:
    if memoryview(document).nbytes < large:
        yield _topics_of(document)
        return
    for topics in decoded(document, _names).values():
        each = iter(topics.items())
        while part := dict(islice(each, TOPICS_AT_ONCE)):
            yield {name: decoded(topic, _topic) for name, topic in part.items()}


def _topics_of(document: msgspec.Raw) -> dict[str, TopicStatistics]:
    domains = list(decoded(document, _inner).values())
    if len(domains) == 1:
        return domains[0]
    return {name: topic for topics in domains for name, topic in topics.items()}
