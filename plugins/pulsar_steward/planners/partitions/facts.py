"""Facts of topics that are too much for the partitions they have."""

from __future__ import annotations

import msgspec

from pulsar_steward.facts.partitions import PartitionedTopic


class Partition(msgspec.Struct, frozen=True):
    """Load of a partition: bytes in and out per second, and clients."""

    index: int
    bytes: int
    producers: int
    consumers: int


class PartitionedFact(msgspec.Struct, frozen=True, kw_only=True):
    """A partitioned topic with findings about one of its partitions, or about a bundle that one of them dominates.

    Attributes:
        topic: Full name of the partitioned topic.
        namespace: ``tenant/namespace``.
        named_by: Subjects of these findings, each with the full name of the partition.
        partitions: Its loaded partitions, by index.
        state: What a raise of their number meets.
    """

    topic: str
    namespace: str
    named_by: dict[str, str]
    partitions: tuple[Partition, ...]
    state: PartitionedTopic
