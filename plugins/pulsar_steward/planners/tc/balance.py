"""Planner: spreads transaction coordinators evenly over the brokers, which never do so (docs/knowledge.md A)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.checks.placement.coordinators import TC_SKEW
from pulsar_steward.model.bundles import TC_NAMESPACE
from pulsar_steward.model.plan import BROKER_DRAIN, TC_COUNT, Batch
from pulsar_steward.model.units import counted
from pulsar_steward.planners.base import Planner, Proposal, placements
from pulsar_steward.planners.tc.assignment import CoordinatorAssignment
from pulsar_steward.planners.tc.parts import survey
from pulsar_steward.planners.tc.search import WORTH_A_MOVE, even_out
from pulsar_steward.planners.tc.steps import loads_after, steps_towards

if TYPE_CHECKING:
    from pulsar_steward.model.finding import Finding
    from pulsar_steward.planners.planning_facts import PlanningFacts

KIND = "tc_balance"
UNIT = "transaction coordinators"
GOAL = "Transaction coordinators"

BY_METADATA_STORE = (
    f"{GOAL}: nothing is proposed, as this cluster does not place them by bundle; from Pulsar 5 on"
    " their leaders are elected in the metadata store (PIP-473), and unloading bundles would move none: a broker that"
    " leads too many gives them to the others when it is restarted."
)

AFTER_DRAINING = (
    f"{GOAL}: nothing is proposed in this plan, as it drains a broker; they are evened out by a later plan, once that"
    " broker is empty."
)


AFTER_RAISING = (
    f"{GOAL}: nothing is proposed in this plan, as it raises their number; they are evened out by a later plan, once"
    " hashes have put the new ones somewhere."
)


def propose(planning: PlanningFacts, _: str, findings: tuple[Finding, ...]) -> Proposal:
    """One batch that evens out the coordinators, as far as guards and bundles allow."""
    if TC_COUNT in planning.proposed:
        return Proposal(notes=(AFTER_RAISING,))
    if BROKER_DRAIN in planning.proposed:
        return Proposal(notes=(AFTER_DRAINING,))
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
        notes = (_note_on_limit(len(steps), rest, helps=spread_after < spread), *notes)
        if spread_after >= spread:
            return Proposal(notes=notes)
    batch = Batch(
        kind=KIND,
        title=(
            f"Even out {counted(sum(before.loads.values()), 'transaction coordinator')} over"
            f" {counted(len(before.loads), 'broker')}: the spread falls from {spread} to {spread_after}"
        ),
        findings=findings,
        steps=steps,
        unit=UNIT,
        before=placements(before.loads),
        after=placements(loads),
    )
    return Proposal(batches=(batch,), notes=notes)


def missing(planning: PlanningFacts) -> tuple[str, ...]:
    """Unread brokers, and the coordinators' own namespace if unread: either may hide coordinators."""
    if not planning.tcs_by_bundle:
        return ()
    unread = {name for name in planning.unread if "/" not in name or name == TC_NAMESPACE}
    unread.update(fact.broker for fact in planning.brokers if not fact.read)
    return tuple(sorted(unread))


def obstacle(planning: PlanningFacts, _: str) -> str | None:
    """The note for clusters whose coordinators are not placed by bundles."""
    return None if planning.tcs_by_bundle else BY_METADATA_STORE


def _note_on_limit(most: int, rest: int, *, helps: bool) -> str:
    """A note on steps beyond the maximum of one run."""
    key = "(policy key guards.most_changes_per_run)"
    if helps:
        return f"{GOAL}: {counted(rest, 'further step comes', 'further steps come')} with later plans {key}."
    return f"{GOAL}: nothing is proposed, as the first {counted(most, 'step')} alone would not help {key}."


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


PLANNER = Planner(
    kinds=(KIND,),
    answers=frozenset({TC_SKEW.check_id}),
    goal=lambda _: GOAL,
    propose=propose,
    missing=missing,
    obstacle=obstacle,
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
