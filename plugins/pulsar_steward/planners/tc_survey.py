"""What a snapshot leaves to the search: how many coordinators a broker has, who may take more, and what may move."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.model.bundles import TC_NAMESPACE
from pulsar_steward.model.step import Step, UnloadBundle
from pulsar_steward.planners.snapshot_facts import guarded, vetoes
from pulsar_steward.planners.tc_parts import CoordinatorPart, piece_of, touched_by

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pulsar_steward.model.step import GuardResult
    from pulsar_steward.planners.planning_facts import PlanningFacts, TcBundle

NAMED_IN_A_NOTE = 5
"""Bundles that a note names one by one; there may be thousands."""


class Survey(msgspec.Struct, frozen=True, kw_only=True):
    """What the search starts from.

    Attributes:
        loads: Coordinators of every broker, 0 included, in order of broker id.
        targets: Brokers that may take more, in order of id.
        movable: The pieces that no guard holds back, in order of range.
        notes: What stays where it is or stays out, and why.
    """

    loads: dict[str, int]
    targets: tuple[str, ...]
    movable: tuple[CoordinatorPart, ...]
    notes: tuple[str, ...]


def survey(planning: PlanningFacts) -> Survey:
    """Sorts a whole snapshot's coordinators into those that may move, those that only count, and those of no broker."""
    loads = dict.fromkeys(sorted(fact.broker for fact in planning.brokers), 0)
    targets = targets_of(planning)
    pieces, homeless = _placed(planning.tc_bundles, loads)
    for piece in pieces:
        loads[piece.home] += len(piece.coordinators)
    movable, held_back = _sifted(pieces, targets, planning)
    return Survey(
        loads=loads,
        targets=targets,
        movable=movable,
        notes=(*_notes_on_homeless(homeless), *_notes_on_held_back(held_back)),
    )


def targets_of(planning: PlanningFacts) -> tuple[str, ...]:
    """Brokers that answered, are not draining, and that isolation leaves to the coordinators' namespace, in order."""
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


def _placed(bundles: Iterable[TcBundle], loads: dict[str, int]) -> tuple[list[CoordinatorPart], list[TcBundle]]:
    pieces: list[CoordinatorPart] = []
    homeless: list[TcBundle] = []
    for bundle in bundles:
        if not bundle.coordinators:
            continue
        if bundle.owner in loads:
            pieces.append(piece_of(bundle, bundle.owner))
        else:
            homeless.append(bundle)
    return sorted(pieces, key=lambda piece: piece.range), sorted(homeless, key=lambda bundle: bundle.bundle)


def _sifted(
    pieces: Sequence[CoordinatorPart], targets: Sequence[str], planning: PlanningFacts
) -> tuple[tuple[CoordinatorPart, ...], dict[str, list[str]]]:
    """Asks the guards about a move of each piece, to a target that is right by itself: a veto is about the bundle."""
    movable: list[CoordinatorPart] = []
    held_back: defaultdict[str, list[str]] = defaultdict(list)
    for piece in pieces:
        target = next((broker for broker in targets if broker != piece.home), None)
        against = [] if target is None else _vetoes(piece, target, planning)
        if not against:
            movable.append(piece)
        for veto in against:
            held_back[veto.guard].append(f"{piece.range} ({veto.reason})")
    return tuple(movable), held_back


def _vetoes(piece: CoordinatorPart, target: str, planning: PlanningFacts) -> list[GuardResult]:
    change = UnloadBundle(namespace=TC_NAMESPACE, bundle=str(piece.range), source=piece.home, target=target)
    trial = Step(step_id="", change=change, why="", effect="", touched=touched_by(piece), undo_note="")
    return vetoes(guarded(trial, planning, whole=piece.bundle))


def _notes_on_homeless(bundles: Sequence[TcBundle]) -> list[str]:
    if not bundles:
        return []
    coordinators = sum(len(bundle.coordinators) for bundle in bundles)
    named = _enumerated([bundle.bundle for bundle in bundles])
    note = (
        f"{coordinators} transaction coordinators are left out of the balance, as no listed broker owns their bundles"
        f" of {TC_NAMESPACE}: {named}; a client's next lookup has them loaded."
    )
    return [note]


def _notes_on_held_back(held_back: dict[str, list[str]]) -> list[str]:
    return [
        f"Guard {guard} keeps bundles of {TC_NAMESPACE} where they are, though their coordinators count:"
        f" {_enumerated(named)}."
        for guard, named in sorted(held_back.items())
    ]


def _enumerated(names: Sequence[str]) -> str:
    more = len(names) - NAMED_IN_A_NOTE
    return ", ".join(names[:NAMED_IN_A_NOTE]) + (f" and {more} more" if more > 0 else "")
