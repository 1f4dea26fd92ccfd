"""Planner: empties brokers before their shutdown, coordinators first (docs/remediations/drain.md)."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.checks.placement.broker_load import BROKER_DRAINING
from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.model.plan import BROKER_DRAIN, Batch
from pulsar_steward.model.step import Step
from pulsar_steward.model.units import counted
from pulsar_steward.planners.base import Planner, Proposal, enumerated, placements
from pulsar_steward.planners.bundles.assignment import Room
from pulsar_steward.planners.bundles.relocation import Reasons, Relocation, coordinators_held

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pulsar_steward.model.finding import Finding
    from pulsar_steward.planners.bundles.facts import LeavingFacts
    from pulsar_steward.planners.planning_facts import PlanningFacts

WHY = Reasons(
    why="{source} is draining (policy key brokers.draining): its shutdown would move all it owns at once",
    nowhere="isolation policies leave it to draining brokers alone",
    back="back to {source}, once that is no longer marked as draining",
)


class DrainPart(msgspec.Struct, frozen=True, kw_only=True):
    """The steps of one batch, and the topics of every broker after them."""

    steps: tuple[Step, ...]
    topics: dict[str, int]


class DrainSearch:
    """Moves of draining brokers' bundles, each to the emptiest broker that has room and passes all guards."""

    def __init__(self, planning: PlanningFacts, room: Room, facts: LeavingFacts) -> None:
        self._facts = facts
        self._remedy = planning.policy.broker_drain_remedy
        self._moves = Relocation(planning, room)
        self._left = self._remedy.most_batches
        self._later: defaultdict[str, int] = defaultdict(int)

    @property
    def topics(self) -> dict[str, int]:
        """Topics of every broker after the moves so far."""
        return self._moves.room.topics

    def batches(self, source: str) -> Iterator[DrainPart]:
        """The moves of a broker's bundles, in batches that a person can approve."""
        steps: list[Step] = []
        leaving = self._moves.in_order(stay for stay in self._facts.leaving.values() if stay.owner == source)
        for number, stay in enumerate(leaving):
            if not self._left:
                self._later[source] = len(leaving) - number
                break
            if step := self._moves.placed(stay, WHY, steps):
                steps.append(step)
            if len(steps) == self._remedy.most_moves:
                yield self._part(steps)
                steps = []
        if steps:
            yield self._part(steps)

    def notes(self) -> Iterator[str]:
        """Notes on the bundles that stay, each with the reason, and on bundles that move later."""
        yield from self._moves.vetoed.notes("bundles on a draining broker")
        if nowhere := self._moves.nowhere:
            yield f"Draining: no broker that stays can take {enumerated(nowhere)}."
        for source, count in sorted(self._later.items()):
            yield (
                f"Draining: {counted(count, 'bundle')} of {source} {'comes' if count == 1 else 'come'} with later plans"
                " (broker_drain_remedy.most_batches)."
            )

    def _part(self, steps: list[Step]) -> DrainPart:
        self._left -= 1
        return DrainPart(steps=tuple(steps), topics=dict(self.topics))


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
    room = Room(facts, coordinators_held(planning), planning.policy)
    if shortages := "; ".join(room.shortages()):
        short = f"{GOAL}: nothing is moved from {enumerated(sources)}, as the others have no room: {shortages}."
        return Proposal(notes=(short,))
    search = DrainSearch(planning, room, facts)
    batches = tuple(_batches(search, sources, findings))
    return Proposal(batches=batches, notes=(*search.notes(), *_notes(facts, planning)))


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


def _notes(facts: LeavingFacts, planning: PlanningFacts) -> Iterator[str]:
    """Notes on idle bundles, which stay, and on load shedding that may refill an emptied broker."""
    for broker, idle in facts.idle.items():
        yield (
            f"{GOAL}: {counted(idle, 'bundle')} of {broker} without a loaded topic {'stays' if idle == 1 else 'stay'}:"
            " nobody is connected through them, and no lookup could have them loaded elsewhere."
        )
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
