"""The steps that lead to a placement of transaction coordinators, with all that a person should know of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.model.bundles import BY_TOPIC_COUNT, TC_NAMESPACE
from pulsar_steward.model.numbering import step_id
from pulsar_steward.model.step import SplitBundle, Step, UnloadBundle
from pulsar_steward.planners.snapshot_facts import guarded
from pulsar_steward.planners.tc_order import moves_in_order
from pulsar_steward.planners.tc_parts import touched_by

if TYPE_CHECKING:
    from pulsar_steward.model.bundles import BundleRange
    from pulsar_steward.planners.planning_facts import PlanningFacts
    from pulsar_steward.planners.tc_order import Move
    from pulsar_steward.planners.tc_parts import CoordinatorPart, Split
    from pulsar_steward.planners.tc_placement import CoordinatorAssignment
    from pulsar_steward.planners.tc_survey import Survey

NO_WAY_BACK = (
    "A split cannot be undone: Pulsar does not join bundles again. Who holds how many coordinators can be brought back"
    " by undoing the moves of the halves."
)


def steps_towards(
    board: CoordinatorAssignment, before: Survey, planning: PlanningFacts, batch: str
) -> tuple[Step, ...]:
    """First every split, then every move, each under all guards.

    Args:
        board: The placement to reach.
        before: The placement of the snapshot.
        planning: What the guards look at.
        batch: The id of the batch that the steps are numbered in.
    """
    cut_by: dict[BundleRange, str] = {}
    steps: list[Step] = []
    for split in board.splits:
        name = step_id(batch, len(steps) + 1)
        step = _split_step(split, name, _after(split.piece, cut_by))
        steps.append(guarded(step, planning, whole=split.piece.bundle))
        cut_by.update((half.range, name) for half in split.halves)
    for move in moves_in_order(before.loads, board):
        name = step_id(batch, len(steps) + 1)
        step = _move_step(move, name, _after(move.piece, cut_by))
        steps.append(guarded(step, planning, whole=move.piece.bundle))
    return tuple(steps)


def _after(piece: CoordinatorPart, cut_by: dict[BundleRange, str]) -> tuple[str, ...]:
    return (cut_by[piece.range],) if piece.range in cut_by else ()


def _split_step(split: Split, name: str, after: tuple[str, ...]) -> Step:
    piece = split.piece
    lower, upper = split.halves
    return Step(
        step_id=name,
        change=SplitBundle(
            namespace=TC_NAMESPACE,
            bundle=str(piece.range),
            owner=piece.home,
            algorithm=BY_TOPIC_COUNT,
            halves=(str(lower.range), str(upper.range)),
        ),
        why=f"Whole bundles cannot even out the coordinators: {_coordinators(piece)} of this one need to part",
        effect=(
            f"{piece.home} still has both halves, {lower.range} with {_coordinators(lower)}"
            f" and {upper.range} with {_coordinators(upper)}"
        ),
        touched=touched_by(piece),
        undo_note=NO_WAY_BACK,
        after=after,
    )


def _move_step(move: Move, name: str, after: tuple[str, ...]) -> Step:
    piece, home, target = move.piece, move.piece.home, move.target
    count = len(piece.coordinators)
    there = UnloadBundle(namespace=TC_NAMESPACE, bundle=str(piece.range), source=home, target=target)
    return Step(
        step_id=name,
        change=there,
        why=(
            f"{home} has {move.source_load} transaction coordinators, {target} has {move.target_load}:"
            f" a restart of {home} stalls the transactions of all {move.source_load} at once"
        ),
        effect=(
            f"{home} goes from {move.source_load} to {move.source_load - count} coordinators,"
            f" {target} from {move.target_load} to {move.target_load + count}"
        ),
        touched=touched_by(piece),
        undo=UnloadBundle(namespace=TC_NAMESPACE, bundle=str(piece.range), source=target, target=home),
        undo_note=f"Unload it from {target} back to {home}: the same clients reconnect once more.",
        after=after,
    )


def _coordinators(piece: CoordinatorPart) -> str:
    count = len(piece.coordinators)
    return f"{count} coordinator{'' if count == 1 else 's'}"
