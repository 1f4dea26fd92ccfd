"""Planner: moves business bundles from brokers that carry too much, seen over time (docs/remediations/unload.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.checks.placement.broker_load_skew import CHECK as BROKER_LOAD_SKEW
from pulsar_steward.checks.placement.bundle_flapping import CHECK as BUNDLE_FLAPPING
from pulsar_steward.model.bundles import TC_NAMESPACE
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.numbering import batch_id
from pulsar_steward.model.plan import Batch, Placement
from pulsar_steward.model.units import counted
from pulsar_steward.planners.bundles.assignment import LoadAssignment
from pulsar_steward.planners.bundles.balance_search import Search
from pulsar_steward.planners.bundles.facts import LoadFacts
from pulsar_steward.planners.bundles.notes import enumerated
from pulsar_steward.planners.planning_facts import Proposal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pulsar_steward.model.finding import Finding
    from pulsar_steward.planners.planning_facts import PlanningFacts

KIND = "bundle_balance"
UNIT = "topics"
SUBJECT = "Business bundles"

AFTER_COORDINATORS = (
    f"{SUBJECT}: no move is proposed in this plan, as it moves transaction coordinators; moves come with a later plan,"
    " once that batch is proved."
)


def propose(planning: PlanningFacts) -> Proposal:
    """One batch that brings brokers' loads closer, where a skew has stood and several snapshots show it."""
    findings = _findings(planning)
    if not findings:
        return Proposal()
    needed = planning.policy.plan.standing_snapshots
    standing = tuple(finding for finding in findings if finding.snapshots_in_a_row >= needed)
    if why := _why_not(planning, standing):
        return Proposal(notes=(why,))
    facts, set_aside = _free(planning)
    before = LoadAssignment(
        facts.brokers, planning.policy.broker_load_skew, planning.policy.bundle_balance_remedy.within_percent
    )
    return _balance(planning, standing, facts, before, set_aside)


def _findings(planning: PlanningFacts) -> tuple[Finding, ...]:
    return tuple(
        finding
        for finding in planning.findings
        if finding.check_id == BROKER_LOAD_SKEW.check_id and finding.severity.rank >= Severity.WARNING.rank
    )


def _why_not(planning: PlanningFacts, standing: tuple[Finding, ...]) -> str | None:
    """Why nothing can be said of moves at all."""
    plan, remedy, facts = planning.policy.plan, planning.policy.bundle_balance_remedy, planning.bundles.load
    if planning.unread:
        return f"{SUBJECT}: no move is proposed, as the snapshot is partial without {enumerated(planning.unread)}."
    if not standing:
        return (
            f"{SUBJECT}: no move is proposed yet, as no skew has stood for {plan.standing_snapshots} snapshots in a row"
            " (plan.standing_snapshots)."
        )
    if TC_NAMESPACE in planning.claimed:
        return AFTER_COORDINATORS
    if facts is None or facts.snapshots < remedy.least_snapshots:
        seen = 0 if facts is None else facts.snapshots
        return (
            f"{SUBJECT}: no move is proposed, as {counted(seen, 'whole snapshot')} of the last"
            f" {remedy.window_minutes:,} minutes may show a burst: {remedy.least_snapshots} are needed"
            " (bundle_balance_remedy.least_snapshots)."
        )
    if len(facts.brokers) < 2:  # noqa: PLR2004 - one broker has nobody to give to
        return f"{SUBJECT}: no move is proposed, as there are no two brokers that are not draining."
    return None


def _free(planning: PlanningFacts) -> tuple[LoadFacts, tuple[str, ...]]:
    """The facts without bundles that are to be left alone, and why these are."""
    facts = planning.bundles.load or LoadFacts(snapshots=0)
    flapping = {
        finding.subject.rpartition("/")[0]
        for finding in planning.findings
        if finding.check_id == BUNDLE_FLAPPING.check_id
    }
    left = flapping | planning.claimed
    concerned = {stay.namespace for stay in facts.stays if stay.namespace in left}
    free = msgspec.structs.replace(facts, stays=tuple(stay for stay in facts.stays if stay.namespace not in left))
    return free, tuple(_set_aside(sorted(concerned & flapping), sorted(concerned - flapping)))


def _set_aside(flapping: list[str], claimed: list[str]) -> Iterator[str]:
    if flapping:
        yield (
            f"{SUBJECT}: those of {enumerated(flapping)} are left where they are, as some of them move to and fro"
            " (bundle-flapping)."
        )
    if claimed:
        yield f"{SUBJECT}: those of {enumerated(claimed)} are left where they are, as this plan splits some of them."


def _balance(
    planning: PlanningFacts,
    findings: tuple[Finding, ...],
    facts: LoadFacts,
    board: LoadAssignment,
    set_aside: tuple[str, ...],
) -> Proposal:
    remedy = planning.policy.bundle_balance_remedy
    spread, topics = board.spread, dict(board.topics)
    search = Search(planning, board, facts, batch_id(1))
    search.run(remedy.most_moves)
    notes = (*_note_on_rest(planning, board, search), *search.notes(), *set_aside, *_note_on_moved(facts))
    if not search.steps:
        return Proposal(notes=notes)
    batch = Batch(
        batch_id=batch_id(1),
        kind=KIND,
        title=(
            f"Move {counted(len(search.steps), 'bundle')} between {len(facts.brokers)} brokers: the spread of topics,"
            f" throughput and clients falls by {100 * (spread - board.spread) / spread:.0f} %"
        ),
        findings=findings,
        steps=tuple(search.steps),
        unit=UNIT,
        before=_placements(topics),
        after=_placements(board.topics),
    )
    return Proposal(batches=(batch,), notes=notes)


def _placements(topics: Mapping[str, int]) -> tuple[Placement, ...]:
    return tuple(Placement(broker, count) for broker, count in sorted(topics.items()))


def _note_on_rest(planning: PlanningFacts, board: LoadAssignment, search: Search) -> Iterator[str]:
    remedy, rest = planning.policy.bundle_balance_remedy, board.uneven()
    far = f"{enumerated(rest)} {'is' if len(rest) == 1 else 'are'} more than {remedy.within_percent} % from the mean"
    if not rest and not search.steps:
        yield (
            f"{SUBJECT}: no move is proposed, as over several snapshots every broker is within"
            f" {remedy.within_percent} % of the mean (bundle_balance_remedy.within_percent)."
        )
    elif rest and len(search.steps) >= remedy.most_moves:
        yield (
            f"{SUBJECT}: {far} after these {counted(len(search.steps), 'move')}, the most of one plan"
            " (bundle_balance_remedy.most_moves); later plans go on."
        )
    elif rest:
        after = " after these steps" if search.steps else ""
        yield (
            f"{SUBJECT}: {far}{after}, and no move evens that out: what is left may not move, is too heavy as a whole,"
            " or would be too much elsewhere at its peak."
        )


def _note_on_moved(facts: LoadFacts) -> Iterator[str]:
    if facts.moved:
        were = "was" if facts.moved == 1 else "were"
        yield (
            f"{SUBJECT}: {counted(facts.moved, 'bundle')} that {were} elsewhere, or not there yet, in one of"
            f" {facts.snapshots} snapshots {'rests' if facts.moved == 1 else 'rest'}."
        )
