"""Planner: raises the number of transaction coordinators if there are too few for the brokers to share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.checks.placement.coordinators import TC_COUNT as TC_COUNT_CHECK
from pulsar_steward.checks.placement.coordinators import CoordinatorFigures
from pulsar_steward.model.plan import BROKER_DRAIN, TC_COUNT, Batch
from pulsar_steward.model.step import RaiseCoordinators, Step, Touched
from pulsar_steward.model.units import counted
from pulsar_steward.planners.base import Planner, Proposal, reasons_against
from pulsar_steward.planners.snapshot_facts import guarded
from pulsar_steward.planners.tc.balance import missing, obstacle
from pulsar_steward.planners.tc.parts import targets_of

if TYPE_CHECKING:
    from pulsar_steward.model.finding import Finding
    from pulsar_steward.planners.planning_facts import PlanningFacts

GOAL = "Number of transaction coordinators"
LIMIT = "policy key guards.most_coordinators"
NO_WAY_BACK = "A raise cannot be undone: brokers refuse a lower number, and only a cluster with new metadata has fewer."


def propose(planning: PlanningFacts, _: str, findings: tuple[Finding, ...]) -> Proposal:
    """One step to the number of coordinators that the policy wants for the brokers, up to its maximum."""
    now = CoordinatorFigures.of(findings[0]).coordinators
    brokers, most = len(targets_of(planning)), planning.policy.guards.most_coordinators
    wanted = brokers * planning.policy.tc_count_remedy.coordinators_per_broker
    after = min(wanted, most)
    if why := _why_not(planning, now, wanted, most):
        return Proposal(notes=(f"{GOAL}: no raise is proposed, as {why}.",))
    step = guarded(_step(now, after, brokers), planning)
    if against := reasons_against(step):
        return Proposal(notes=(f"{GOAL}: no raise is proposed: {against}.",))
    title = f"Raise the number of transaction coordinators from {now:,} to {after:,}"
    batch = Batch(kind=TC_COUNT, title=title, findings=findings, steps=(step,))
    rest = f"{GOAL}: {wanted:,} would suit {counted(brokers, 'broker')}, and the policy permits {most:,} ({LIMIT})."
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


def _step(now: int, after: int, brokers: int) -> Step:
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
        undo_note=NO_WAY_BACK,
    )


PLANNER = Planner(
    kinds=(TC_COUNT,),
    answers=frozenset({TC_COUNT_CHECK.check_id}),
    goal=lambda _: GOAL,
    propose=propose,
    missing=missing,
    obstacle=obstacle,
    partial_note=f"{GOAL}: no raise is proposed, as the snapshot is partial: it lacks {{all_missing}}.",
)
