"""Steps that lead to a placement of transaction coordinators, the most helpful moves first.

So a batch that stops half way, or of which only the first steps are approved, has done the better part of its work.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.model.bundles import BY_TOPIC_COUNT, TC_NAMESPACE
from pulsar_steward.model.numbering import step_id
from pulsar_steward.model.step import SplitBundle, Step, Touched, UnloadBundle
from pulsar_steward.model.units import counted
from pulsar_steward.planners.snapshot_facts import guarded
from pulsar_steward.planners.tc.assignment import gain
from pulsar_steward.planners.tc.parts import CoordinatorPart

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pulsar_steward.model.bundles import BundleRange
    from pulsar_steward.planners.planning_facts import PlanningFacts
    from pulsar_steward.planners.tc.assignment import CoordinatorAssignment
    from pulsar_steward.planners.tc.parts import PartSplit

NO_WAY_BACK = (
    "A split cannot be undone: Pulsar does not join bundles again. Who holds how many coordinators can be brought back"
    " by undoing the moves of the halves."
)


class PartMove(msgspec.Struct, frozen=True):
    """A part's move from its home to its one target, with the coordinators of both brokers right before.

    Attributes:
        part: The bundle or half that moves.
        target: The broker that gets it.
        source_load: Coordinators on the part's home before the move.
        target_load: Coordinators on the target before the move.
    """

    part: CoordinatorPart
    target: str
    source_load: int
    target_load: int


def steps_towards(
    placement: CoordinatorAssignment, loads: Mapping[str, int], planning: PlanningFacts, batch: str
) -> tuple[Step, ...]:
    """First every split, then every move, each with the results of all guards.

    Args:
        placement: The placement to reach.
        loads: Coordinators of every broker in the snapshot.
        planning: The facts that the guards look at.
        batch: The id of the batch that the steps are numbered in.
    """
    cut_by: dict[BundleRange, str] = {}
    steps: list[Step] = []
    for split in placement.splits:
        name = step_id(batch, len(steps) + 1)
        step = _split_step(split, name, _after(split.part, cut_by))
        steps.append(guarded(step, planning, whole=split.part.bundle, place_in_run=len(steps) + 1))
        cut_by.update((half.range, name) for half in split.halves)
    for move in moves_in_order(loads, placement):
        name = step_id(batch, len(steps) + 1)
        step = move_step(move, name, _after(move.part, cut_by))
        steps.append(guarded(step, planning, whole=move.part.bundle, place_in_run=len(steps) + 1))
    return tuple(steps)


def loads_after(loads: Mapping[str, int], steps: Iterable[Step]) -> dict[str, int]:
    """Coordinators of every broker once these steps are done."""
    after = dict(loads)
    for step in steps:
        if isinstance(step.change, UnloadBundle):
            after[step.change.source] -= step.touched.coordinators
            after[step.change.target] += step.touched.coordinators
    return after


def moves_in_order(loads: Mapping[str, int], placement: CoordinatorAssignment) -> Iterator[PartMove]:
    """A move for each part that ends elsewhere than at home.

    Args:
        loads: Coordinators of every broker before the first move.
        placement: The placement that was found.
    """
    now = dict(loads)
    waiting = _waiting(placement)
    while waiting:
        way = min(waiting, key=lambda way: (-_gain_of(waiting[way][-1], now, way), way))
        part = waiting[way].pop()
        if not waiting[way]:
            del waiting[way]
        source, target = way
        yield PartMove(part, target, now[source], now[target])
        now[source] -= len(part.coordinators)
        now[target] += len(part.coordinators)


def _waiting(placement: CoordinatorAssignment) -> dict[tuple[str, str], list[CoordinatorPart]]:
    """Parts by source and target, the heaviest last."""
    waiting: defaultdict[tuple[str, str], list[CoordinatorPart]] = defaultdict(list)
    for rank in sorted(placement.where):
        part, target = placement.parts[rank], placement.where[rank]
        if target != part.home:
            waiting[part.home, target].append(part)
    return dict(waiting)


def _gain_of(part: CoordinatorPart, loads: Mapping[str, int], way: tuple[str, str]) -> int:
    source, target = way
    return gain(len(part.coordinators), loads[source] - loads[target])


def _after(part: CoordinatorPart, cut_by: dict[BundleRange, str]) -> tuple[str, ...]:
    return (cut_by[part.range],) if part.range in cut_by else ()


def _split_step(split: PartSplit, name: str, after: tuple[str, ...]) -> Step:
    part = split.part
    lower, upper = split.halves
    return Step(
        step_id=name,
        change=SplitBundle(
            namespace=TC_NAMESPACE,
            bundle=str(part.range),
            owner=part.home,
            algorithm=BY_TOPIC_COUNT,
            halves=(str(lower.range), str(upper.range)),
        ),
        why=f"Whole bundles cannot even out the coordinators: {_coordinators(part)} of this one need to part",
        effect=(
            f"{part.home} still has both halves, {lower.range} with {_coordinators(lower)}"
            f" and {upper.range} with {_coordinators(upper)}"
        ),
        touched=_touched(part),
        undo_note=NO_WAY_BACK,
        after=after,
    )


def move_step(move: PartMove, name: str, after: tuple[str, ...] = ()) -> Step:
    """The step that moves a part, without results of guards.

    Args:
        move: The move.
        name: The step's id.
        after: Steps that have to be done first.
    """
    part, home, target = move.part, move.part.home, move.target
    count = len(part.coordinators)
    return Step(
        step_id=name,
        change=UnloadBundle(namespace=TC_NAMESPACE, bundle=str(part.range), source=home, target=target),
        why=(
            f"{home} has {counted(move.source_load, 'transaction coordinator')}, {target} has {move.target_load}:"
            f" a restart of {home} stalls the transactions of all {move.source_load} at once"
        ),
        effect=(
            f"{home} goes from {move.source_load} to {counted(move.source_load - count, 'coordinator')},"
            f" {target} from {move.target_load} to {move.target_load + count}"
        ),
        touched=_touched(part),
        undo=UnloadBundle(namespace=TC_NAMESPACE, bundle=str(part.range), source=target, target=home),
        undo_note=f"Unload it from {target} back to {home}: the same clients reconnect once more.",
        after=after,
    )


def _touched(part: CoordinatorPart) -> Touched:
    return Touched(
        producers=part.producers,
        consumers=part.consumers,
        topics=len(part.positions),
        coordinators=len(part.coordinators),
    )


def _coordinators(part: CoordinatorPart) -> str:
    return counted(len(part.coordinators), "coordinator")
