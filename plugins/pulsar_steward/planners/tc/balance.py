"""Planners: spread transaction coordinators over the brokers, and raise their number (docs/knowledge.md A)."""

from __future__ import annotations

from collections import defaultdict
from itertools import chain
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.checks.placement.coordinators import TC_COUNT as TC_COUNT_CHECK
from pulsar_steward.checks.placement.coordinators import TC_SKEW, CoordinatorFigures
from pulsar_steward.model.bundles import BY_TOPIC_COUNT, TC_NAMESPACE
from pulsar_steward.model.plan import BROKER_DRAIN, BROKER_GROUP, TC_COUNT, Batch
from pulsar_steward.model.step import RaiseCoordinators, SplitBundle, Step, Touched, UnloadBundle
from pulsar_steward.model.units import counted
from pulsar_steward.planners.base import Planner, Proposal, placements, reasons_against
from pulsar_steward.planners.snapshot_facts import guarded
from pulsar_steward.planners.tc.assignment import WORTH_A_MOVE, CoordinatorAssignment, even_out, gain
from pulsar_steward.planners.tc.parts import CoordinatorPart, survey, targets_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pulsar_steward.model.finding import Finding
    from pulsar_steward.planners.planning_facts import PlanningFacts
    from pulsar_steward.planners.tc.parts import PartSplit

KIND = "tc_balance"
UNIT = "transaction coordinators"
GOAL = "Transaction coordinators"

AFTER_DRAINING = (
    f"{GOAL}: nothing is proposed in this plan, as it drains a broker; they are evened out by a later plan, once that"
    " broker is empty."
)

AFTER_GROUPING = f"{GOAL}: nothing is proposed in this plan, as it brings bundles to a group of brokers."

AFTER_RAISING = (
    f"{GOAL}: nothing is proposed in this plan, as it raises their number; they are evened out by a later plan, once"
    " hashes have put the new ones somewhere."
)

LATER = {TC_COUNT: AFTER_RAISING, BROKER_DRAIN: AFTER_DRAINING, BROKER_GROUP: AFTER_GROUPING}
"""Notes on kinds of batches of the same plan, after which coordinators are balanced."""


def propose_balance(planning: PlanningFacts, _: str, findings: tuple[Finding, ...]) -> Proposal:
    """One batch that evens out the coordinators, as far as guards and bundles allow."""
    if waits := [words for kind, words in LATER.items() if kind in planning.proposed]:
        return Proposal(notes=(waits[0],))
    before = survey(planning)
    if not before.targets:
        none_may = (
            f"{GOAL}: nothing is proposed, as every broker is draining or kept from {TC_NAMESPACE}"
            " by an isolation policy."
        )
        return Proposal(notes=(none_may, *before.notes))
    placement = CoordinatorAssignment(before.loads, before.targets, before.movable)
    spread = placement.spread
    even_out(placement)
    every = steps_towards(placement, before.loads, planning)
    notes = (*_note_on_rest(placement, planned=bool(every)), *before.notes)
    if not every:
        return Proposal(notes=notes)
    steps = every[: planning.policy.guards.most_changes_per_run]
    loads = loads_after(before.loads, steps)
    spread_after = max(loads.values()) - min(loads[broker] for broker in before.targets)
    if rest := len(every) - len(steps):
        key = "(policy key guards.most_changes_per_run)"
        if spread_after >= spread:
            first = counted(len(steps), "step")
            none = f"{GOAL}: nothing is proposed, as the first {first} alone would not help {key}."
            return Proposal(notes=(none, *notes))
        later = counted(rest, "further step comes", "further steps come")
        notes = (f"{GOAL}: {later} with later plans {key}.", *notes)
    batch = Batch(
        kind=KIND,
        title=(
            f"Even out {counted(sum(before.loads.values()), 'transaction coordinator')} over"
            f" {counted(len(before.loads), 'broker')}: {_each(before.loads.values())} each now,"
            f" {_each(loads.values())} after"
        ),
        findings=findings,
        steps=steps,
        unit=UNIT,
        before=placements(before.loads),
        after=placements(loads),
    )
    return Proposal(batches=(batch,), notes=notes)


def _each(loads: Iterable[int]) -> str:
    low, high = min(every := list(loads)), max(every)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def missing(planning: PlanningFacts) -> tuple[str, ...]:
    """Unread brokers, and the coordinators' own namespace if unread: either may hide coordinators."""
    unread = {name for name in planning.unread if "/" not in name or name == TC_NAMESPACE}
    unread.update(fact.broker for fact in planning.brokers if not fact.read)
    return tuple(sorted(unread))


def _note_on_rest(placement: CoordinatorAssignment, *, planned: bool) -> tuple[str, ...]:
    """A note on why no more is proposed; none if the plan reaches an even placement."""
    most = f"{placement.fullest} has {placement.loads[placement.fullest]}"
    fewest = f"{placement.emptiest} has {placement.loads[placement.emptiest]}"
    if placement.spread >= WORTH_A_MOVE:
        after = " after these steps" if planned else ""
        rest = (
            f"{most} and {fewest}{after}, and no step evens that out: what is left may not move, or cannot be divided."
        )
    elif not planned:
        rest = f"nothing is proposed, as no placement is more even: {most}, the most, and {fewest}, the fewest."
    else:
        return ()
    return (f"{GOAL}: {rest}",)


TC_BALANCE = Planner(
    kinds=(KIND,),
    answers=frozenset({TC_SKEW.check_id}),
    goal=lambda _: GOAL,
    propose=propose_balance,
    missing=missing,
    explained=(GOAL,),  # a partial snapshot has no finding of skew either
    partial_note=(
        f"{GOAL}: nothing is proposed, as the snapshot is partial and where they are cannot be known without"
        " {all_missing}."
    ),
    young_note=(
        "{goal}: nothing is proposed yet, as the skew has stood for {stood} of the {needed} snapshots in a row that"
        " the policy asks for (plan.standing_snapshots)."
    ),
)

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
    """First all splits, then all moves, from these loads of all brokers, each with the results of all guards."""
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
    """A move for each part that does not end at home, the one that helps most first.

    So a batch does most of its work even if it stops half way, or if only its first steps are approved.
    """
    now = dict(loads)
    waiting: defaultdict[tuple[str, str], list[CoordinatorPart]] = defaultdict(list)  # the heaviest last
    for rank in sorted(placement.where):
        part, target = placement.parts[rank], placement.where[rank]
        if target != part.home:
            waiting[part.home, target].append(part)
    while waiting:
        gains = {way: gain(len(parts[-1].coordinators), now[way[0]] - now[way[1]]) for way, parts in waiting.items()}
        way = min(gains, key=lambda way: (-gains[way], way))
        part = waiting[way].pop()
        if not waiting[way]:
            del waiting[way]
        source, target = way
        yield PartMove(part, target, now[source], now[target])
        now[source] -= len(part.coordinators)
        now[target] += len(part.coordinators)


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


COUNT_GOAL = "Number of transaction coordinators"
LIMIT = "policy key guards.most_coordinators"
NO_FEWER = "A raise cannot be undone: brokers refuse a lower number, and only a cluster with new metadata has fewer."


def propose_count(planning: PlanningFacts, _: str, findings: tuple[Finding, ...]) -> Proposal:
    """One step to the number of coordinators that the policy wants for the brokers, up to its maximum."""
    now = CoordinatorFigures.of(findings[0]).coordinators
    brokers, most = len(targets_of(planning)), planning.policy.guards.most_coordinators
    wanted = brokers * planning.policy.tc_count_remedy.coordinators_per_broker
    after = min(wanted, most)
    if why := _why_not(planning, now, wanted, most):
        return Proposal(notes=(f"{COUNT_GOAL}: no raise is proposed, as {why}.",))
    step = guarded(_count_step(now, after, brokers), planning)
    if against := reasons_against(step):
        return Proposal(notes=(f"{COUNT_GOAL}: no raise is proposed: {against}.",))
    title = f"Raise the number of transaction coordinators from {now:,} to {after:,}"
    batch = Batch(kind=TC_COUNT, title=title, findings=findings, steps=(step,))
    rest = (
        f"{COUNT_GOAL}: {wanted:,} would suit {counted(brokers, 'broker')}, and the policy permits {most:,} ({LIMIT})."
    )
    return Proposal(batches=(batch,), notes=(rest,) if wanted > most else ())


def _why_not(planning: PlanningFacts, now: int, wanted: int, most: int) -> str | None:
    if wanted <= now:
        return f"{now:,} are enough for the brokers, and brokers refuse a lower number"
    if not most:
        return f"it cannot be undone and the policy does not permit it ({LIMIT})"
    if most <= now:
        return f"there are {now:,}, and the policy permits {most:,} ({LIMIT})"
    if BROKER_DRAIN in planning.proposed:
        return "this plan drains a broker"
    return None


def _count_step(now: int, after: int, brokers: int) -> Step:
    few = f"{counted(now, 'transaction coordinator')} for {counted(brokers, 'broker')}"
    return Step(
        change=RaiseCoordinators(before=now, after=after),
        why=f"{few}: {100 // now} % of all transactions stall whenever the broker of one of them restarts",
        effect=(
            f"there are {counted(after, 'transaction coordinator')}, for good; clients that start from then on use all"
            f" of them, those that are connected go on with the {now:,} that they know; new ones fall where hashes put"
            " them, and are evened out by a later plan"
        ),
        touched=Touched(producers=0, consumers=0, topics=0, coordinators=0),
        undo_note=NO_FEWER,
    )


TC_COUNT_RAISE = Planner(
    kinds=(TC_COUNT,),
    answers=frozenset({TC_COUNT_CHECK.check_id}),
    goal=lambda _: COUNT_GOAL,
    propose=propose_count,
    missing=missing,
    partial_note=f"{COUNT_GOAL}: no raise is proposed, as the snapshot is partial: it lacks {{all_missing}}.",
)
