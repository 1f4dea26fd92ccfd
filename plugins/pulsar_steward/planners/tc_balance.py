"""Planner: spreads transaction coordinators evenly over the brokers, who never do (docs/knowledge.md A)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.checks.placement.tc_skew import CHECK as TC_SKEW
from pulsar_steward.model.bundles import TC_NAMESPACE
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.numbering import batch_id
from pulsar_steward.model.plan import Batch, Placement
from pulsar_steward.planners.planning_facts import PlanningFacts, Proposal
from pulsar_steward.planners.tc_placement import CoordinatorAssignment
from pulsar_steward.planners.tc_search import WORTH_A_MOVE, even_out
from pulsar_steward.planners.tc_steps import steps_towards
from pulsar_steward.planners.tc_survey import Survey, survey

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulsar_steward.model.finding import Finding

KIND = "tc_balance"
UNIT = "transaction coordinators"

BY_METADATA_STORE = (
    "Transaction coordinators: nothing is proposed, as this cluster does not place them by bundle; from Pulsar 5 on"
    " their leaders are in the metadata store (PIP-473), and unloading bundles would move none."
)


def propose(planning: PlanningFacts) -> Proposal:
    """One batch that evens out the coordinators, where they are skewed enough to warn of and all of them were seen."""
    if not planning.tcs_by_bundle:
        return Proposal(notes=(BY_METADATA_STORE,))
    if missing := _missing(planning):
        partial = (
            "Transaction coordinators: nothing is proposed, as the snapshot is partial and where they are cannot be"
            f" known without {', '.join(missing)}."
        )
        return Proposal(notes=(partial,))
    findings = _findings(planning)
    if not findings:
        return Proposal()
    needed = planning.policy.plan.standing_snapshots
    standing = tuple(finding for finding in findings if finding.snapshots_in_a_row >= needed)
    if not standing:
        stood = max(finding.snapshots_in_a_row for finding in findings)
        young = (
            f"Transaction coordinators: nothing is proposed yet, as the skew has stood for {stood} of the {needed}"
            " snapshots in a row that the policy asks for (plan.standing_snapshots)."
        )
        return Proposal(notes=(young,))
    return _balance(planning, standing)


def _missing(planning: PlanningFacts) -> tuple[str, ...]:
    """What was not read that coordinators may be on: any broker, and their own namespace; others do not matter."""
    unread = {name for name in planning.unread if "/" not in name or name == TC_NAMESPACE}
    unread.update(fact.broker for fact in planning.brokers if not fact.read)
    return tuple(sorted(unread))


def _findings(planning: PlanningFacts) -> tuple[Finding, ...]:
    return tuple(
        finding
        for finding in planning.findings
        if finding.check_id == TC_SKEW.check_id and finding.severity.rank >= Severity.WARNING.rank
    )


def _balance(planning: PlanningFacts, findings: tuple[Finding, ...]) -> Proposal:
    before = survey(planning)
    if not before.targets:
        none_may = (
            f"Transaction coordinators: nothing is proposed, as every broker is draining or kept from {TC_NAMESPACE}"
            " by an isolation policy."
        )
        return Proposal(notes=(none_may, *before.notes))
    board = CoordinatorAssignment(before.loads, before.targets, before.movable)
    spread = board.spread
    even_out(board)
    steps = steps_towards(board, before, planning, batch_id(1))
    notes = (*_note_on_rest(board, planned=bool(steps)), *before.notes)
    if not steps:
        return Proposal(notes=notes)
    batch = Batch(
        batch_id=batch_id(1),
        kind=KIND,
        title=_title(before, spread, board.spread),
        findings=findings,
        steps=steps,
        unit=UNIT,
        before=_placements(before.loads),
        after=_placements(board.loads),
    )
    return Proposal(batches=(batch,), notes=notes)


def _title(before: Survey, spread: int, spread_after: int) -> str:
    return (
        f"Even out {sum(before.loads.values())} transaction coordinators over {len(before.loads)} brokers:"
        f" the spread falls from {spread} to {spread_after}"
    )


def _placements(loads: Mapping[str, int]) -> tuple[Placement, ...]:
    return tuple(Placement(broker, count) for broker, count in sorted(loads.items()))


def _note_on_rest(board: CoordinatorAssignment, *, planned: bool) -> tuple[str, ...]:
    """Why no more than this is proposed; nothing to say where the plan reaches an even placement."""
    most = f"{board.fullest} has {board.loads[board.fullest]}"
    fewest = f"{board.emptiest} has {board.loads[board.emptiest]}"
    if board.spread >= WORTH_A_MOVE:
        after = " after these steps" if planned else ""
        rest = (
            f"{most} and {fewest}{after}, and no step evens that out: what is left may not move, or cannot be divided."
        )
    elif not planned:
        rest = f"nothing is proposed, as no placement is more even: {most}, the most, and {fewest}, the fewest."
    else:
        return ()
    return (f"Transaction coordinators: {rest}",)
