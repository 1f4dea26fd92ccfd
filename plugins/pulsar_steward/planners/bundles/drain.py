"""Planner: empties brokers before their shutdown, coordinators first (docs/remediations/drain.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.checks.placement.broker_draining import CHECK as BROKER_DRAINING
from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.model.plan import BROKER_DRAIN, Batch
from pulsar_steward.model.units import counted
from pulsar_steward.planners.base import Planner, Proposal, enumerated, placements
from pulsar_steward.planners.bundles.drain_search import DrainSearch
from pulsar_steward.planners.bundles.room import Room

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pulsar_steward.model.finding import Finding
    from pulsar_steward.planners.bundles.facts import DrainFacts
    from pulsar_steward.planners.planning_facts import PlanningFacts

UNIT = "topics"
GOAL = "Draining"


def propose(planning: PlanningFacts, _: str, findings: tuple[Finding, ...]) -> Proposal:
    """Batches that move all bundles of draining brokers to the remaining ones, as far as these have room."""
    listed = sorted(fact.broker for fact in planning.brokers)
    marked = sorted(set(planning.policy.brokers.draining))
    sources = [finding.subject for finding in findings if finding.subject in listed]
    facts = planning.bundles.drain
    if facts is None or not sources:
        return Proposal()
    if why := _too_many(planning, [broker for broker in marked if broker in listed], listed):
        return Proposal(notes=(why,))
    room = Room(facts, _coordinators(planning), planning.policy)
    if shortages := "; ".join(room.shortages()):
        short = f"{GOAL}: nothing is moved from {enumerated(sources)}, as the others have no room: {shortages}."
        return Proposal(notes=(short,))
    search = DrainSearch(planning, room, facts)
    batches = tuple(_batches(search, sources, findings))
    return Proposal(batches=batches, notes=(*search.notes(), *_notes_on_idle(facts), *_notes_on_shedding(planning)))


def _too_many(planning: PlanningFacts, marked: list[str], listed: list[str]) -> str | None:
    """A note on why so many brokers are not emptied at once; None: few enough are marked."""
    most = planning.policy.broker_drain_remedy.most_brokers_percent
    if len(marked) * 100 <= most * len(listed):
        return None
    return (
        f"{GOAL}: nothing is moved, as {len(marked)} of {counted(len(listed), 'broker')}"
        f" ({100 * len(marked) // len(listed)} %) are marked as draining, and at most {most} % may be at once"
        " (broker_drain_remedy.most_brokers_percent)."
    )


def _batches(search: DrainSearch, sources: list[str], findings: tuple[Finding, ...]) -> Iterator[Batch]:
    """Each broker's batches in order; the titles sort in the order of execution."""
    for source in sorted(sources):
        before = dict(search.topics)
        parts = list(search.batches(source))
        for number, part in enumerate(parts, start=1):
            place = f", part {number:0{len(str(len(parts)))}} of {len(parts)}" if len(parts) > 1 else ""
            yield Batch(
                kind=BROKER_DRAIN,
                title=f"Drain {source}{place}: move {counted(len(part.steps), 'bundle')} to brokers that stay",
                findings=tuple(finding for finding in findings if finding.subject == source),
                steps=part.steps,
                unit=UNIT,
                before=placements(before),
                after=placements(part.topics),
            )
            before = part.topics


def _coordinators(planning: PlanningFacts) -> dict[str, int]:
    held = dict.fromkeys((fact.broker for fact in planning.brokers), 0)
    for bundle in planning.tc_bundles:
        if bundle.owner in held:
            held[bundle.owner] += len(bundle.coordinators)
    return held


def _notes_on_idle(facts: DrainFacts) -> Iterator[str]:
    for broker, idle in facts.idle.items():
        yield (
            f"{GOAL}: {counted(idle, 'bundle')} of {broker} without a loaded topic {'stays' if idle == 1 else 'stay'}:"
            " nobody is connected through them, and no lookup could have them loaded elsewhere."
        )


def _notes_on_shedding(planning: PlanningFacts) -> Iterable[str]:
    """A note if the brokers' load shedding may refill an emptied broker."""
    manager = planning.load_manager
    if isinstance(manager, Unknown) or manager.sheds:
        yield (
            f"{GOAL}: the brokers' own shedding is on, or not known to be off, and takes an empty broker for one with"
            " room: shut a drained broker down soon."
        )


PLANNER = Planner(
    kinds=(BROKER_DRAIN,),
    answers=frozenset({BROKER_DRAINING.check_id}),
    goal=lambda _: GOAL,
    propose=propose,
    partial_note=f"{GOAL}: no move is proposed, as the snapshot is partial without {{missing}}.",
)
