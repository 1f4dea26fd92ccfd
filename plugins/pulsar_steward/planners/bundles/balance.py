"""Planner: moves business bundles off overloaded brokers, by their load over time (docs/remediations/unload.md)."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.checks.placement.broker_load import BROKER_LOAD_SKEW
from pulsar_steward.checks.placement.bundle_flapping import CHECK as BUNDLE_FLAPPING
from pulsar_steward.model.bundles import TC_NAMESPACE
from pulsar_steward.model.plan import BROKER_DRAIN, BROKER_GROUP, BUNDLE_BALANCE, Batch
from pulsar_steward.model.step import Step, Touched, UnloadBundle
from pulsar_steward.model.units import counted, seconds_in_words, throughput_in_words
from pulsar_steward.planners.base import Planner, Proposal, Vetoed, enumerated, placements
from pulsar_steward.planners.bundles.assignment import LoadAssignment
from pulsar_steward.planners.bundles.facts import LoadFacts
from pulsar_steward.planners.snapshot_facts import guarded, vetoes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pulsar_steward.model.finding import Finding
    from pulsar_steward.planners.bundles.assignment import Move
    from pulsar_steward.planners.bundles.facts import PlacedBundle
    from pulsar_steward.planners.planning_facts import PlanningFacts

COMPARED = 4
"""Number of emptiest targets, or fullest sources, that are tried for a broker before all others."""


class BalanceSearch:
    """Moves of bundles. Each lowers the spread of loads and takes its bundle from the search, so it ends.

    Args:
        planning: The facts of the plan.
        facts: The load over several snapshots, with the bundles that may move; some may be parts that are yet to be
            made.
        splits: Steps of the same batch that make these parts.

    Attributes:
        loads: The loads after all moves.
        before: Topics of every broker before all of them.
    """

    def __init__(self, planning: PlanningFacts, facts: LoadFacts, splits: Sequence[Step] = ()) -> None:
        within = planning.policy.bundle_balance_remedy.within_percent
        bundles = msgspec.structs.replace(planning.bundles, load=facts)
        self._planning = msgspec.structs.replace(planning, bundles=bundles)
        self._facts = facts
        self._stays: defaultdict[str, list[PlacedBundle]] = defaultdict(list)
        self._vetoed = Vetoed()
        self._without_a_move: set[str] = set()
        self._splits = len(splits)
        self._steps = list(splits)
        self.loads = LoadAssignment(facts.brokers, planning.policy.broker_load_skew, within)
        self.before = placements(self.loads.topics)
        self._spread = self.loads.spread
        for stay in facts.stays:
            self._stays[stay.owner].append(stay)

    @property
    def moves(self) -> tuple[Step, ...]:
        """The moves, in order."""
        return tuple(self._steps[self._splits :])

    @property
    def sources(self) -> frozenset[str]:
        """Brokers from which something is moved."""
        return frozenset(step.change.source for step in self.moves if isinstance(step.change, UnloadBundle))

    @property
    def forecast(self) -> str:
        """How much more even the loads are after all moves, as text."""
        fall = 100 * (self._spread - self.loads.spread) / self._spread
        return f"the spread of topics, throughput and clients falls by {fall:.0f} %"

    def run(self) -> None:
        """Moves until brokers are near enough, no move helps, or there are as many moves as one plan may have."""
        most = self._splits + self._planning.policy.bundle_balance_remedy.most_moves
        while len(self._steps) < most and (move := self._next()):
            stay, number = move.stay, len(self._steps) + 1
            self._stays[stay.owner].remove(stay)
            step = guarded(self._step(move), self._planning, whole=stay.whole, place_in_run=number, earlier=self._steps)
            if not self._vetoed.holds(vetoes(step), stay.name):
                self._steps.append(step)
                self.loads.carry_out(move)

    def notes(self) -> Iterator[str]:
        """Notes on the bundles that guards keep where they are."""
        return self._vetoed.notes("bundles where they are, though their load counts")

    def _next(self) -> Move | None:
        """The best move. Brokers without a move are tried again only if the others have none."""
        move = self._best()
        if move is None and self._without_a_move:
            self._without_a_move.clear()
            move = self._best()
        return move

    def _best(self) -> Move | None:
        """The best move for the broker that is furthest from the mean and has a move."""
        by_fullness = self.loads.by_fullness()
        for broker in self.loads.uneven():
            if broker in self._without_a_move:
                continue
            others = [each for each in by_fullness if each != broker]
            for few in (COMPARED, len(others)):
                found = list(self._around(broker, others, few))
                if found:
                    return min(found, key=lambda move: move.order)
            self._without_a_move.add(broker)
        return None

    def _around(self, broker: str, others: list[str], few: int) -> Iterator[Move]:
        if self.loads.too_full(broker):
            for target in others[:few]:
                yield from self._moves(broker, target)
        if self.loads.too_empty(broker):
            for source in others[::-1][:few]:
                yield from self._moves(source, broker)

    def _moves(self, source: str, target: str) -> Iterator[Move]:
        return (move for move in self.loads.moves(self._stays[source], target) if self._may_go(move))

    def _may_go(self, move: Move) -> bool:
        allowed = self._facts.allowed.get(move.stay.namespace)
        return move.target not in self._planning.moving and (allowed is None or move.target in allowed)

    def _step(self, move: Move) -> Step:
        stay, source, target = move.stay, move.stay.owner, move.target
        (topics, flow, _), (topics_there, flow_there, _) = self.loads.mean[source], self.loads.mean[target]
        return Step(
            change=UnloadBundle(namespace=stay.namespace, bundle=stay.bundle, source=source, target=target),
            why=(
                f"In {counted(self._facts.snapshots, 'snapshot')} {source} carried {_words(topics, flow)} on average,"
                f" and {target} {_words(topics_there, flow_there)}; {_what(stay)}"
            ),
            effect=(
                f"on average {source} goes from {_words(topics, flow)} to"
                f" {_words(topics - stay.mean.topics, flow - stay.mean.bytes)}, {target} from"
                f" {_words(topics_there, flow_there)} to"
                f" {_words(topics_there + stay.mean.topics, flow_there + stay.mean.bytes)}"
            ),
            touched=Touched(
                producers=stay.now.producers, consumers=stay.now.consumers, topics=stay.now.topics, coordinators=0
            ),
            undo=UnloadBundle(namespace=stay.namespace, bundle=stay.bundle, source=target, target=source),
            undo_note=f"Unload it from {target} back to {source}: the same clients reconnect once more.",
        )


def _what(stay: PlacedBundle) -> str:
    """A bundle with its load; nobody has measured a part by itself, so its figures are no bounds."""
    mean, peak = stay.mean.words, throughput_in_words(stay.peak.bytes)
    if stay.whole is None:
        return f"the bundle {mean}, and {peak} at most"
    return (
        f"this part of {stay.whole}, by its share of what that carries now, about {mean}, and about {peak} at its peak"
    )


def _words(topics: int, flow: int) -> str:
    return f"{counted(topics, 'topic')} and {throughput_in_words(flow)}"


UNIT = "topics"
GOAL = "Business bundles"

AFTER_COORDINATORS = (
    f"{GOAL}: no move is proposed yet, as this plan moves transaction coordinators first; moves come with a later plan,"
    " once that batch is proved."
)

AFTER_DRAINING = (
    f"{GOAL}: no move is proposed yet to even out the load, as this plan drains a broker first; such moves come with a"
    " later plan, once that broker is empty."
)


def propose(planning: PlanningFacts, _: str, findings: tuple[Finding, ...]) -> Proposal:
    """One batch that evens out brokers' loads, if several snapshots show the skew."""
    if why := why_no_moves(planning):
        return Proposal(notes=(why,))
    facts, set_aside = free_to_move(planning, planning.bundles.load or LoadFacts(snapshots=0))
    search = BalanceSearch(planning, facts)
    search.run()
    notes = (*_note_on_rest(planning, search), *search.notes(), *set_aside)
    if facts.moved:
        were, rest = ("was", "rests") if facts.moved == 1 else ("were", "rest")
        moved = f"{counted(facts.moved, 'bundle')} that {were} elsewhere, or not there yet,"
        notes = (*notes, f"{GOAL}: {moved} in one of {counted(facts.snapshots, 'snapshot')} {rest}.")
    if not search.moves:
        return Proposal(notes=notes)
    bundles, brokers = counted(len(search.moves), "bundle"), counted(len(facts.brokers), "broker")
    batch = Batch(
        kind=BUNDLE_BALANCE,
        title=f"Move {bundles} between {brokers}: {search.forecast}",
        findings=findings,
        steps=search.moves,
        unit=UNIT,
        before=search.before,
        after=placements(search.loads.topics),
    )
    return Proposal(batches=(batch,), notes=notes)


def why_no_moves(planning: PlanningFacts) -> str | None:
    """A note on why no move can be computed at all."""
    remedy, facts = planning.policy.bundle_balance_remedy, planning.bundles.load
    if BROKER_DRAIN in planning.proposed:
        return AFTER_DRAINING
    if BROKER_GROUP in planning.proposed:
        return f"{GOAL}: no move is proposed yet, as this plan brings bundles to a group of brokers first."
    if TC_NAMESPACE in planning.claimed:
        return AFTER_COORDINATORS
    if facts is None or facts.snapshots < remedy.least_snapshots:
        seen = 0 if facts is None else facts.snapshots
        return (
            f"{GOAL}: {counted(remedy.least_snapshots, 'complete look is', 'complete looks are')} needed within"
            f" {seconds_in_words(remedy.window_minutes * 60)} before bundles are moved, and there"
            f" {'is' if seen == 1 else 'are'} {seen:,} (bundle_balance_remedy.least_snapshots)."
        )
    if len(facts.brokers) <= 1:  # one broker has nobody to give to
        return f"{GOAL}: no move is proposed, as there are no two brokers that are not draining."
    return None


def free_to_move(planning: PlanningFacts, facts: LoadFacts) -> tuple[LoadFacts, tuple[str, ...]]:
    """The facts without the bundles to leave alone, and notes on the reasons.

    Brokers from or to which this plan moves bundles already keep what they have: their load will be another one, or
    stays if nobody approves that batch. All others are evened out, however long an answer takes.
    """
    flapping = {
        finding.subject.rpartition("/")[0]
        for finding in planning.findings
        if finding.check_id == BUNDLE_FLAPPING.check_id
    }
    left = flapping | planning.claimed
    concerned = {stay.namespace for stay in facts.stays if stay.namespace in left}
    stays = (stay for stay in facts.stays if stay.namespace not in left and stay.owner not in planning.moving)
    set_aside = _set_aside(sorted(concerned & flapping), sorted(concerned - flapping), sorted(planning.moving))
    return msgspec.structs.replace(facts, stays=tuple(stays)), tuple(set_aside)


def _set_aside(flapping: list[str], claimed: list[str], moving: list[str]) -> Iterator[str]:
    if moving:
        yield (
            f"{GOAL}: no other move from or to {enumerated(moving)} is proposed in this plan, as it moves parts of"
            " bundles that it splits there; such moves come with a later plan, once that batch is proved or refused."
        )
    if flapping:
        yield (
            f"{GOAL}: those of {enumerated(flapping)} are left where they are, as some of them move to and fro"
            " (bundle-flapping)."
        )
    if claimed:
        yield f"{GOAL}: those of {enumerated(claimed)} are left where they are, as this plan splits some of them."


def _note_on_rest(planning: PlanningFacts, search: BalanceSearch) -> Iterator[str]:
    remedy, moving = planning.policy.bundle_balance_remedy, planning.moving
    rest = [broker for broker in search.loads.uneven() if broker not in moving]
    far = f"{enumerated(rest)} {'is' if len(rest) == 1 else 'are'} more than {remedy.within_percent} % from the mean"
    if not rest and not search.moves and not moving:
        yield (
            f"{GOAL}: no move is proposed, as over several snapshots every broker is within"
            f" {remedy.within_percent} % of the mean (bundle_balance_remedy.within_percent)."
        )
    elif rest and len(search.moves) >= remedy.most_moves:
        yield (
            f"{GOAL}: {far} after these {counted(len(search.moves), 'move')}, the most of one plan"
            " (bundle_balance_remedy.most_moves); later plans go on."
        )
    elif rest:
        after = " after these steps" if search.moves else ""
        yield (
            f"{GOAL}: {far}{after}, and no move evens that out: what is left may not move, is too heavy as a whole,"
            " or would be too much elsewhere at its peak."
        )


PLANNER = Planner(
    kinds=(BUNDLE_BALANCE,),
    answers=frozenset({BROKER_LOAD_SKEW.check_id}),
    goal=lambda _: GOAL,
    propose=propose,
    partial_note=f"{GOAL}: no move is proposed, as the snapshot is partial without {{missing}}.",
    young_note=(
        "{goal}: no move is proposed yet, as no skew has stood for {needed} snapshots in a row"
        " (plan.standing_snapshots)."
    ),
)
