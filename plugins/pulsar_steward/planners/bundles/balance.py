"""Planner: moves business bundles off overloaded brokers, by their load over time (docs/remediations/unload.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.checks.placement.broker_load_skew import CHECK as BROKER_LOAD_SKEW
from pulsar_steward.checks.placement.bundle_flapping import CHECK as BUNDLE_FLAPPING
from pulsar_steward.model.bundles import TC_NAMESPACE
from pulsar_steward.model.plan import BROKER_DRAIN, Batch
from pulsar_steward.model.units import counted
from pulsar_steward.planners.base import Planner, Proposal, enumerated, placements
from pulsar_steward.planners.bundles.assignment import LoadAssignment
from pulsar_steward.planners.bundles.balance_search import BalanceSearch
from pulsar_steward.planners.bundles.facts import LoadFacts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pulsar_steward.model.finding import Finding
    from pulsar_steward.planners.planning_facts import PlanningFacts

KIND = "bundle_balance"
UNIT = "topics"
GOAL = "Business bundles"

AFTER_COORDINATORS = (
    f"{GOAL}: no move is proposed in this plan, as it moves transaction coordinators; moves come with a later plan,"
    " once that batch is proved."
)

AFTER_DRAINING = (
    f"{GOAL}: no move is proposed in this plan to even out the load, as it drains a broker; such moves come with a"
    " later plan, once that broker is empty."
)


def propose(planning: PlanningFacts, _: str, findings: tuple[Finding, ...]) -> Proposal:
    """One batch that evens out brokers' loads, if several snapshots show the skew."""
    if why := _why_not(planning):
        return Proposal(notes=(why,))
    remedy = planning.policy.bundle_balance_remedy
    facts, set_aside = _free(planning)
    loads = LoadAssignment(facts.brokers, planning.policy.broker_load_skew, remedy.within_percent)
    spread, topics = loads.spread, dict(loads.topics)
    search = BalanceSearch(planning, loads, facts)
    search.run(remedy.most_moves)
    notes = (*_note_on_rest(planning, loads, search), *search.notes(), *set_aside, *_note_on_moved(facts))
    if not search.steps:
        return Proposal(notes=notes)
    batch = Batch(
        kind=KIND,
        title=(
            f"Move {counted(len(search.steps), 'bundle')} between {counted(len(facts.brokers), 'broker')}: the spread"
            f" of topics, throughput and clients falls by {100 * (spread - loads.spread) / spread:.0f} %"
        ),
        findings=findings,
        steps=tuple(search.steps),
        unit=UNIT,
        before=placements(topics),
        after=placements(loads.topics),
    )
    return Proposal(batches=(batch,), notes=notes)


def _why_not(planning: PlanningFacts) -> str | None:
    """A note on why no move can be computed at all."""
    remedy, facts = planning.policy.bundle_balance_remedy, planning.bundles.load
    if BROKER_DRAIN in planning.proposed:
        return AFTER_DRAINING
    if TC_NAMESPACE in planning.claimed:
        return AFTER_COORDINATORS
    if facts is None or facts.snapshots < remedy.least_snapshots:
        seen = 0 if facts is None else facts.snapshots
        return (
            f"{GOAL}: no move is proposed, as {counted(seen, 'whole snapshot')} of the last"
            f" {counted(remedy.window_minutes, 'minute')} may show a burst: {remedy.least_snapshots} are needed"
            " (bundle_balance_remedy.least_snapshots)."
        )
    if len(facts.brokers) < 2:  # noqa: PLR2004 - one broker has nobody to give to
        return f"{GOAL}: no move is proposed, as there are no two brokers that are not draining."
    return None


def _free(planning: PlanningFacts) -> tuple[LoadFacts, tuple[str, ...]]:
    """The facts without the bundles to leave alone, and notes on the reasons."""
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
            f"{GOAL}: those of {enumerated(flapping)} are left where they are, as some of them move to and fro"
            " (bundle-flapping)."
        )
    if claimed:
        yield f"{GOAL}: those of {enumerated(claimed)} are left where they are, as this plan splits some of them."


def _note_on_rest(planning: PlanningFacts, loads: LoadAssignment, search: BalanceSearch) -> Iterator[str]:
    remedy, rest = planning.policy.bundle_balance_remedy, loads.uneven()
    far = f"{enumerated(rest)} {'is' if len(rest) == 1 else 'are'} more than {remedy.within_percent} % from the mean"
    if not rest and not search.steps:
        yield (
            f"{GOAL}: no move is proposed, as over several snapshots every broker is within"
            f" {remedy.within_percent} % of the mean (bundle_balance_remedy.within_percent)."
        )
    elif rest and len(search.steps) >= remedy.most_moves:
        yield (
            f"{GOAL}: {far} after these {counted(len(search.steps), 'move')}, the most of one plan"
            " (bundle_balance_remedy.most_moves); later plans go on."
        )
    elif rest:
        after = " after these steps" if search.steps else ""
        yield (
            f"{GOAL}: {far}{after}, and no move evens that out: what is left may not move, is too heavy as a whole,"
            " or would be too much elsewhere at its peak."
        )


def _note_on_moved(facts: LoadFacts) -> Iterator[str]:
    if facts.moved:
        were = "was" if facts.moved == 1 else "were"
        yield (
            f"{GOAL}: {counted(facts.moved, 'bundle')} that {were} elsewhere, or not there yet, in one of"
            f" {counted(facts.snapshots, 'snapshot')} {'rests' if facts.moved == 1 else 'rest'}."
        )


PLANNER = Planner(
    kinds=(KIND,),
    answers=frozenset({BROKER_LOAD_SKEW.check_id}),
    goal=lambda _: GOAL,
    propose=propose,
    partial_note=f"{GOAL}: no move is proposed, as the snapshot is partial without {{missing}}.",
    young_note=(
        "{goal}: no move is proposed yet, as no skew has stood for {needed} snapshots in a row"
        " (plan.standing_snapshots)."
    ),
)
