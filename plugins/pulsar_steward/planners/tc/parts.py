"""The parts of a placement of transaction coordinators, and which of them may move to where."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.model.bundles import TC_NAMESPACE, BundleRange, halves_by_topic_count, position_of, tc_topic
from pulsar_steward.model.step import GuardedChange, Touched, UnloadBundle
from pulsar_steward.model.units import counted
from pulsar_steward.planners.base import Vetoed, enumerated
from pulsar_steward.planners.snapshot_facts import objections

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pulsar_steward.planners.planning_facts import PlanningFacts, TcBundle

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
    if len(part.coordinators) <= 1:  # one coordinator cannot be parted
        return None
    ranges = halves_by_topic_count(part.range, part.positions)
    if ranges is None:
        return None
    lower, upper = (
        msgspec.structs.replace(
            part,
            range=half,
            coordinators=tuple(number for number in part.coordinators if position_of(tc_topic(number)) in half),
            positions=tuple(position for position in part.positions if position in half),
        )
        for half in ranges
    )
    return PartSplit(part, (lower, upper)) if lower.positions and upper.positions else None


class Survey(msgspec.Struct, frozen=True, kw_only=True):
    """The start of the search.

    Attributes:
        loads: Coordinators of every broker, 0 included, in order of broker id.
        targets: Brokers that may take more, in order of id.
        movable: The parts without a guard's veto, in order of range.
        notes: Reasons why other parts stay, or are left out.
    """

    loads: dict[str, int]
    targets: tuple[str, ...]
    movable: tuple[CoordinatorPart, ...]
    notes: tuple[str, ...]


def survey(planning: PlanningFacts) -> Survey:
    """Sorts all coordinators of a snapshot: movable ones, ones that only count, and ones without a broker."""
    loads = dict.fromkeys(sorted(fact.broker for fact in planning.brokers), 0)
    targets = targets_of(planning)
    parts, homeless = _placed(planning.tc_bundles, loads)
    for part in parts:
        loads[part.home] += len(part.coordinators)
    held_back = Vetoed()
    movable = []
    for part in parts:
        # The target does not matter: the guards' objections are about the bundle.
        if target := next((broker for broker in targets if broker != part.home), None):
            move = UnloadBundle(namespace=TC_NAMESPACE, bundle=str(part.range), source=part.home, target=target)
            asked = GuardedChange(change=move, touched=part.touched)
            if held_back.holds(objections(asked, planning, whole=part.bundle), str(part.range)):
                continue
        movable.append(part)
    notes = []
    if homeless:
        coordinators = sum(len(bundle.coordinators) for bundle in homeless)
        named = enumerated([bundle.bundle for bundle in homeless])
        notes.append(
            f"{counted(coordinators, 'transaction coordinator is', 'transaction coordinators are')} left out of the"
            " balance, as no listed broker owns their"
            f" bundles of {TC_NAMESPACE}: {named}; a client's next lookup has them loaded."
        )
    keeps = f"bundles of {TC_NAMESPACE} where they are, though their coordinators count"
    return Survey(loads=loads, targets=targets, movable=tuple(movable), notes=(*notes, *held_back.notes(keeps)))


def targets_of(planning: PlanningFacts) -> tuple[str, ...]:
    """Brokers that responded, are not draining, and are allowed for the coordinators' namespace, in order."""
    draining = planning.policy.brokers.draining
    return tuple(
        sorted(
            fact.broker
            for fact in planning.brokers
            if fact.read
            and fact.broker not in draining
            and (planning.tc_allowed is None or fact.broker in planning.tc_allowed)
        )
    )


def _placed(bundles: Iterable[TcBundle], loads: Mapping[str, int]) -> tuple[list[CoordinatorPart], list[TcBundle]]:
    """The bundles of listed brokers by range, and bundles without such an owner."""
    parts: list[CoordinatorPart] = []
    homeless: list[TcBundle] = []
    for bundle in bundles:
        if not bundle.coordinators:
            continue
        if bundle.owner is not None and bundle.owner in loads:
            parts.append(part_of(bundle, bundle.owner))
        else:
            homeless.append(bundle)
    return sorted(parts, key=lambda part: part.range), sorted(homeless, key=lambda bundle: bundle.bundle)
