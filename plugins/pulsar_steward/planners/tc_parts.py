"""The pieces that a placement of transaction coordinators is put together from: bundles, and halves of split ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.model.bundles import BundleRange, halves_by_topic_count, position_of, tc_topic
from pulsar_steward.model.step import Touched

if TYPE_CHECKING:
    from pulsar_steward.planners.planning_facts import TcBundle

Rank = tuple[int, int, int, int]
"""What orders pieces, and names one: coordinators, clients, lower and upper boundary."""


class CoordinatorPart(msgspec.Struct, frozen=True, kw_only=True):
    """A bundle of ``pulsar/system``, or what a split will make of one.

    Attributes:
        range: Its hash range.
        bundle: The bundle of the snapshot that it is, or is cut from.
        home: Who owns that bundle in the snapshot, ``host:webport``.
        coordinators: Ids of the transaction coordinators in it, rising.
        positions: Hash positions of all its topics, rising.
        producers: Connected producers; of a half, those of the whole bundle, as nobody knows how they divide.
        consumers: Connected consumers, likewise.
    """

    range: BundleRange
    bundle: str
    home: str
    coordinators: tuple[int, ...]
    positions: tuple[int, ...]
    producers: int
    consumers: int

    @property
    def rank(self) -> Rank:
        """Its place among pieces, and its name: ranges are unique."""
        return len(self.coordinators), self.producers + self.consumers, self.range.lower, self.range.upper


class Split(msgspec.Struct, frozen=True):
    """A piece and the two that a split makes of it; one of the halves may hold no coordinator."""

    piece: CoordinatorPart
    halves: tuple[CoordinatorPart, CoordinatorPart]

    @property
    def placed(self) -> tuple[CoordinatorPart, ...]:
        """The halves that hold coordinators."""
        return tuple(half for half in self.halves if half.coordinators)


def piece_of(bundle: TcBundle, home: str) -> CoordinatorPart:
    """A whole bundle as a piece."""
    return CoordinatorPart(
        range=BundleRange.parse(bundle.bundle),
        bundle=bundle.bundle,
        home=home,
        coordinators=tuple(sorted(bundle.coordinators)),
        positions=tuple(sorted(bundle.positions)),
        producers=bundle.producers,
        consumers=bundle.consumers,
    )


def split_of(piece: CoordinatorPart) -> Split | None:
    """What ``topic_count_equally_divide`` makes of a piece, or None where it would part nothing."""
    if len(piece.coordinators) < 2:  # noqa: PLR2004 - one coordinator cannot be parted
        return None
    ranges = halves_by_topic_count(piece.range, piece.positions)
    if ranges is None:
        return None
    lower, upper = (_part_of(piece, part) for part in ranges)
    return Split(piece, (lower, upper)) if lower.positions and upper.positions else None


def _part_of(piece: CoordinatorPart, part: BundleRange) -> CoordinatorPart:
    return msgspec.structs.replace(
        piece,
        range=part,
        coordinators=tuple(number for number in piece.coordinators if position_of(tc_topic(number)) in part),
        positions=tuple(position for position in piece.positions if position in part),
    )


def touched_by(piece: CoordinatorPart) -> Touched:
    """Whom a change of a piece disturbs."""
    return Touched(
        producers=piece.producers,
        consumers=piece.consumers,
        topics=len(piece.positions),
        coordinators=len(piece.coordinators),
    )
