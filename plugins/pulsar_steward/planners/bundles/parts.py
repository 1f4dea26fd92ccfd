"""The pieces that bundles are split into, with what each will carry, worked out before anybody is asked."""

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
    """A bundle, or what splits will make of one.

    Attributes:
        range: Its hash range.
        bundle: The bundle of the snapshot that it is, or is cut from.
        owner: Who owns that bundle, ``host:webport``.
        positions: Of all its topics, loaded or not, rising.
        topics: Its loaded topics, by position.
        load: What these carry.
        made_by: The step that makes it; None: it is there.
    """

    range: BundleRange
    bundle: str
    owner: str
    positions: tuple[int, ...]
    topics: tuple[TopicFact, ...]
    load: Load
    made_by: str | None = None


def piece_of(suspect: SplitCandidate, owner: str, positions: tuple[int, ...]) -> BundlePart:
    """A whole bundle."""
    return BundlePart(
        range=BundleRange.parse(suspect.bundle),
        bundle=suspect.bundle,
        owner=owner,
        positions=positions,
        topics=suspect.topics,
        load=suspect.load,
    )


def halves_of(piece: BundlePart, made_by: str) -> tuple[BundlePart, BundlePart] | None:
    """What ``topic_count_equally_divide`` makes of a piece, or None where it would part nothing."""
    ranges = halves_by_topic_count(piece.range, piece.positions)
    if ranges is None:
        return None
    lower, upper = (_part(piece, each, made_by) for each in ranges)
    return (lower, upper) if lower.positions and upper.positions else None


def load_of(topics: Sequence[TopicFact]) -> Load:
    """What topics carry together."""
    return Load(
        topics=len(topics),
        bytes=sum(topic.bytes for topic in topics),
        messages=sum(topic.messages for topic in topics),
        producers=sum(topic.producers for topic in topics),
        consumers=sum(topic.consumers for topic in topics),
    )


def _part(piece: BundlePart, part: BundleRange, made_by: str) -> BundlePart:
    end = part.upper + 1 if part.upper == FULL_RANGE else part.upper
    positions = piece.positions[bisect_left(piece.positions, part.lower) : bisect_left(piece.positions, end)]
    first, last = (bisect_left(piece.topics, bound, key=_position) for bound in (part.lower, end))
    topics = piece.topics[first:last]
    return BundlePart(
        range=part,
        bundle=piece.bundle,
        owner=piece.owner,
        positions=positions,
        topics=topics,
        load=load_of(topics),
        made_by=made_by,
    )


def _position(topic: TopicFact) -> int:
    return topic.position
