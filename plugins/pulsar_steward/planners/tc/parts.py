"""The parts of a placement of transaction coordinators: bundles, and halves of split ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.model.bundles import BundleRange, halves_by_topic_count, position_of, tc_topic
from pulsar_steward.model.step import Touched

if TYPE_CHECKING:
    from pulsar_steward.planners.planning_facts import TcBundle

Rank = tuple[int, int, int, int]
"""Order and name of a part: coordinators, clients, lower and upper boundary."""


class CoordinatorPart(msgspec.Struct, frozen=True, kw_only=True):
    """A bundle of ``pulsar/system``, or a part of one after splits.

    Attributes:
        range: Its hash range.
        bundle: The bundle of the snapshot that contains it, or that it is.
        home: The owner of that bundle in the snapshot, ``host:webport``.
        coordinators: Ids of the transaction coordinators in it, rising.
        positions: Hash positions of all its topics, rising.
        producers: Connected producers; of a half, those of the whole bundle, as their division is not known.
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
        """Its place among parts, and its name: ranges are unique."""
        return len(self.coordinators), self.producers + self.consumers, self.range.lower, self.range.upper

    @property
    def touched(self) -> Touched:
        """Clients that a change of it disturbs."""
        return Touched(
            producers=self.producers,
            consumers=self.consumers,
            topics=len(self.positions),
            coordinators=len(self.coordinators),
        )


class PartSplit(msgspec.Struct, frozen=True):
    """A part and the two halves that a split makes of it; one half may have no coordinator."""

    part: CoordinatorPart
    halves: tuple[CoordinatorPart, CoordinatorPart]

    @property
    def placed(self) -> tuple[CoordinatorPart, ...]:
        """The halves with coordinators."""
        return tuple(half for half in self.halves if half.coordinators)


def part_of(bundle: TcBundle, home: str) -> CoordinatorPart:
    """A whole bundle as a part."""
    return CoordinatorPart(
        range=BundleRange.parse(bundle.bundle),
        bundle=bundle.bundle,
        home=home,
        coordinators=tuple(sorted(bundle.coordinators)),
        positions=tuple(sorted(bundle.positions)),
        producers=bundle.producers,
        consumers=bundle.consumers,
    )


def split_of(part: CoordinatorPart) -> PartSplit | None:
    """The halves that ``topic_count_equally_divide`` makes of a part; None: it would divide nothing."""
    if len(part.coordinators) < 2:  # noqa: PLR2004 - one coordinator cannot be parted
        return None
    ranges = halves_by_topic_count(part.range, part.positions)
    if ranges is None:
        return None
    lower, upper = (_half_of(part, half) for half in ranges)
    return PartSplit(part, (lower, upper)) if lower.positions and upper.positions else None


def _half_of(part: CoordinatorPart, half: BundleRange) -> CoordinatorPart:
    return msgspec.structs.replace(
        part,
        range=half,
        coordinators=tuple(number for number in part.coordinators if position_of(tc_topic(number)) in half),
        positions=tuple(position for position in part.positions if position in half),
    )
