"""Steps that lead to a placement of transaction coordinators, the most helpful moves first.

So a batch does most of its work even if it stops half way, or if only its first steps are approved.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import chain
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.model.bundles import BY_TOPIC_COUNT, TC_NAMESPACE
from pulsar_steward.model.step import SplitBundle, Step, UnloadBundle
from pulsar_steward.model.units import counted
from pulsar_steward.planners.snapshot_facts import guarded
from pulsar_steward.planners.tc.assignment import gain
from pulsar_steward.planners.tc.parts import CoordinatorPart

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

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
    placement: CoordinatorAssignment, loads: Mapping[str, int], planning: PlanningFacts
) -> tuple[Step, ...]:
    """First all splits, then all moves, each with the results of all guards.

    Args:
        placement: The placement to reach.
        loads: Coordinators of every broker in the snapshot.
        planning: The facts for the guards.
    """
    splits = ((split.part, _split_step(split)) for split in placement.splits)
    moves = ((move.part, _move_step(move)) for move in moves_in_order(loads, placement))
    return tuple(
        guarded(step, planning, whole=part.bundle, place_in_run=number)
        for number, (part, step) in enumerate(chain(splits, moves), start=1)
    )


def loads_after(loads: Mapping[str, int], steps: Iterable[Step]) -> dict[str, int]:
    """Coordinators of every broker after these steps."""
    after = dict(loads)
    for step in steps:
        if isinstance(step.change, UnloadBundle):
            after[step.change.source] -= step.touched.coordinators
            after[step.change.target] += step.touched.coordinators
    return after


def moves_in_order(loads: Mapping[str, int], placement: CoordinatorAssignment) -> Iterator[PartMove]:
    """A move for each part that does not end at home.

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


def _split_step(split: PartSplit) -> Step:
    part = split.part
    lower, upper = split.halves
    return Step(
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
        touched=part.touched,
        undo_note=NO_WAY_BACK,
    )


def _move_step(move: PartMove) -> Step:
    """The step that moves a part, without results of guards."""
    part, home, target = move.part, move.part.home, move.target
    count = len(part.coordinators)
    return Step(
        change=UnloadBundle(namespace=TC_NAMESPACE, bundle=str(part.range), source=home, target=target),
        why=(
            f"{home} has {counted(move.source_load, 'transaction coordinator')}, {target} has {move.target_load}:"
            f" a restart of {home} stalls the transactions of all {move.source_load} at once"
        ),
        effect=(
            f"{home} goes from {move.source_load} to {counted(move.source_load - count, 'coordinator')},"
            f" {target} from {move.target_load} to {move.target_load + count}"
        ),
        touched=part.touched,
        undo=UnloadBundle(namespace=TC_NAMESPACE, bundle=str(part.range), source=target, target=home),
        undo_note=f"Unload it from {target} back to {home}: the same clients reconnect once more.",
    )


def _coordinators(part: CoordinatorPart) -> str:
    return counted(len(part.coordinators), "coordinator")
