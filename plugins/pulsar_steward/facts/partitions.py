"""What a raise of the number of a topic's partitions meets: who consumes it in order, and which limits are near."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.model.subscription import HolderKind, kind_of_cursor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pulsar_steward.model.step import AddPartitions

MOST_OF_TOPIC, MOST_OF_NAMESPACE = "maxNumPartitionsPerPartitionedTopic", "maxTopicsPerNamespace"
"""Brokers' settings that limit partitions; 0 means no limit."""

SHARED = "Shared"
"""The one type of subscriptions whose consumers keep no order."""

IN_ORDER = {
    "Key_Shared": "keeps the order of keys",
    "Exclusive": "keeps the order of messages",
    "Failover": "keeps the order of messages",
    "None": "has no consumer, so that nobody can tell whether it keeps an order",
}
"""Types of subscriptions whose consumers may rely on an order, as brokers name them, with their reason."""

UNKNOWN_TYPE = "is of a type that is not known, so that nobody can tell whether it keeps an order"


class PartitionedTopic(msgspec.Struct, frozen=True, kw_only=True):
    """A topic with partitions.

    Attributes:
        partitions: Number of its partitions.
        subscriptions: Types of its subscriptions, by name; the one that keeps most order where partitions differ.
        clusters: Other clusters that serve its namespace, or that it is replicated to.
        apart: Subscriptions that some of its partitions lack; empty at planning.
        compacted: True if it is compacted, or has been.
        most_partitions: Most partitions of a topic by brokers' settings; 0: no limit.
        most_topics: Most topics of its namespace, by its policies or brokers' settings; 0: no limit.
        topics: Topics of its namespace, each partition counted; at planning, the loaded ones. 0 without a limit.
        statistics_seconds: Greatest age of the statistics that plans are made by.
        created: When the metadata store got its first partition, UTC; None: not known, as at planning.
    """

    partitions: int
    subscriptions: dict[str, str] = {}
    apart: tuple[str, ...] = ()
    clusters: tuple[str, ...] = ()
    compacted: bool = False
    most_partitions: int = 0
    most_topics: int = 0
    topics: int = 0
    statistics_seconds: int = 60
    created: datetime | None = None

    def against_order(self) -> Iterator[str]:
        """Reasons why consumers would notice that keys go to other partitions, or new partitions be missed."""
        for name, kind in sorted(self.subscriptions.items()):
            match kind_of_cursor(name):
                case HolderKind.READER:
                    yield f"reader {name} may not look for new partitions"
                case HolderKind.SUBSCRIPTION:
                    if kind != SHARED:
                        yield f"subscription {name} ({kind or 'no type'}) {IN_ORDER.get(kind, UNKNOWN_TYPE)}"
                    elif name in self.apart:
                        yield f"subscription {name} is not on every partition, and may be missed on new ones"
        if self.compacted:
            yield "it is compacted: the last value of a key would stay in its former partition for ever"
        if self.clusters:
            yield f"it is shared with {', '.join(self.clusters)}, whose brokers would get partitions as well"


def ordering(*kinds: str) -> str:
    """Of the types of a subscription on several partitions, the one that keeps most order."""
    known = [each for each in IN_ORDER if each in kinds]
    return next((each for each in (*known, *kinds) if each != SHARED), SHARED if kinds else "")


def partitions_unknown(change: AddPartitions, why: str = "they are not in the snapshot") -> Unknown:
    """Who uses the topic is not known."""
    return Unknown(f"who consumes the partitions of {change.topic} is not known: {why}")
