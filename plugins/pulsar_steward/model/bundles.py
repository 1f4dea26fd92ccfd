"""Bundles as ranges of a namespace's hash space, and the bundle of a topic.

A topic's position is the CRC-32 of its full name (measured against a real broker's ``topicHashPositions``). So the
bundle of a topic, and the result of a split, are computed without a call to the cluster.
"""

from __future__ import annotations

import re
import zlib
from bisect import bisect_right
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

FULL_RANGE = 0xFFFFFFFF
"""Last position of the hash space; the last bundle includes it, every other bundle excludes its upper boundary."""

CALM_LOAD_MANAGER = "ModularLoadManager"
"""Load manager under which clients stayed connected during a split without unload on 4.0.7 (docs/pulsar-behaviour.md).

Other load managers were not tried.
"""

HEARTBEAT = r"^(pulsar|sla-monitor)/([^/]+/)?[^/]+:\d+$"
"""Pattern of the namespaces in which brokers check themselves: each broker has its own, by name.

``sla-monitor/<cluster>/host:port`` is listed as owned only under `ExtensibleLoadManagerImpl`.
"""

_HEARTBEAT = re.compile(HEARTBEAT)

LOAD_BALANCER_TOPICS = "://pulsar/system/loadbalancer-"
"""Part of the names of the topics in which `ExtensibleLoadManagerImpl` keeps its state.

Its leader serves them, whoever owns their bundle: a lookup of such a topic loads nothing.
"""

TC_NAMESPACE = "pulsar/system"
TC_TOPIC = "persistent://pulsar/system/transaction_coordinator_assign"


class BundleRange(msgspec.Struct, frozen=True, order=True):
    """Half-open range of hash positions, ``0x00000000_0x10000000`` in Pulsar's notation."""

    lower: int
    upper: int

    @classmethod
    def parse(cls, text: str) -> BundleRange:
        """Parses a range in Pulsar's notation.

        Raises:
            ValueError: If the text is not two hexadecimal boundaries in ascending order.
        """
        lower, separator, upper = text.partition("_")
        if not separator:
            raise ValueError(f"{text!r} is not a bundle range: expected 0xLLLLLLLL_0xUUUUUUUU")
        parsed = cls(int(lower, 16), int(upper, 16))
        if not 0 <= parsed.lower < parsed.upper <= FULL_RANGE:
            raise ValueError(f"{text!r} is not a bundle range: the boundaries do not rise within 32 bits")
        return parsed

    def __str__(self) -> str:
        return f"0x{self.lower:08x}_0x{self.upper:08x}"

    def overlaps(self, other: BundleRange) -> bool:
        """True if the two ranges have a position in common."""
        return self.lower < other.upper and other.lower < self.upper

    def __contains__(self, position: int) -> bool:
        return self.lower <= position < self.upper or position == self.upper == FULL_RANGE


def is_heartbeat(namespace: str) -> bool:
    """True for a namespace in which a broker checks itself: it stays with that broker, and nobody else uses it."""
    return _HEARTBEAT.match(namespace) is not None


def position_of(topic: str) -> int:
    """Hash position of a topic's full name, such as ``persistent://tenant/ns/topic-partition-0``."""
    return zlib.crc32(topic.encode())


def tc_topic(coordinator: int) -> str:
    """Name of the topic whose bundle places the transaction coordinator with this id."""
    return f"{TC_TOPIC}-partition-{coordinator}"


def coordinators_in(bundles: Sequence[str], coordinators: int) -> int:
    """Number of a cluster's transaction coordinators that these bundles (``tenant/ns/range``) place."""
    names = (bundle.rpartition("/") for bundle in bundles)
    ranges = [BundleRange.parse(name) for namespace, _, name in names if namespace == TC_NAMESPACE]
    positions = [position_of(tc_topic(number)) for number in range(coordinators)]
    return sum(any(position in bundle for bundle in ranges) for position in positions)


def bundle_in_words(namespace: str, bundle: str) -> str:
    """A bundle with its namespace, unless that is the system namespace."""
    return bundle if namespace == TC_NAMESPACE else f"{namespace}/{bundle}"


def ranges_of(boundaries: Sequence[str]) -> tuple[BundleRange, ...]:
    """Bundles between a namespace's boundaries, as the admin API lists them (``["0x00000000", ...]``)."""
    positions = sorted(int(boundary, 16) for boundary in boundaries)
    return tuple(BundleRange(lower, upper) for lower, upper in pairwise(positions))


def range_holding(ranges: Sequence[BundleRange], position: int) -> BundleRange:
    """Range that contains a position, from a namespace's sorted ranges without gaps."""
    index = bisect_right(ranges, position, key=lambda bundle: bundle.lower) - 1
    return ranges[index]


BY_TOPIC_COUNT = "topic_count_equally_divide"
"""Steward's split algorithm: its halves can be computed beforehand, and it divides topics at any positions."""


def halves_by_topic_count(bundle: BundleRange, positions: Sequence[int]) -> tuple[BundleRange, BundleRange] | None:
    """Two ranges that ``topic_count_equally_divide`` makes of a bundle, or None if it would do nothing.

    Args:
        bundle: The bundle to be split.
        positions: The hash positions of all topics in it, transaction coordinators included.

    The broker cuts half way between the two middle topics, so topics at the same position cannot be divided.
    """
    ordered = sorted(positions)
    if len(ordered) <= 1:
        return None
    middle = len(ordered) // 2
    cut = (ordered[middle - 1] + ordered[middle]) // 2
    if not bundle.lower < cut < bundle.upper:
        return None
    return BundleRange(bundle.lower, cut), BundleRange(cut, bundle.upper)
