"""The parts of split bundles, with the load of each, computed before the approval."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.model.bundles import FULL_RANGE, BundleRange, halves_by_topic_count
from pulsar_steward.planners.bundles.facts import Load, TopicFact

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
        range=half,
        bundle=part.bundle,
        owner=part.owner,
        positions=positions,
        topics=topics,
        load=load_of(topics),
    )
