"""The search for moves that even out brokers, one at a time; first the moves with most gain for each client."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from pulsar_steward.model.step import Step, Touched, UnloadBundle
from pulsar_steward.model.units import counted, throughput_in_words
from pulsar_steward.planners.base import Vetoed
from pulsar_steward.planners.snapshot_facts import guarded, vetoes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pulsar_steward.planners.bundles.assignment import LoadAssignment, Move
    from pulsar_steward.planners.bundles.facts import LoadFacts, PlacedBundle
    from pulsar_steward.planners.planning_facts import PlanningFacts

COMPARED = 4
"""Number of emptiest targets, or fullest sources, that are tried for a broker before all others."""


class BalanceSearch:
    """Moves of bundles. Each lowers the spread of loads and removes its bundle from the search, so the search ends.

    Attributes:
        steps: The moves, in the order in which they run.
    """

    def __init__(self, planning: PlanningFacts, loads: LoadAssignment, facts: LoadFacts) -> None:
        self._planning = planning
        self._loads = loads
        self._facts = facts
        self._stays: defaultdict[str, list[PlacedBundle]] = defaultdict(list)
        self._vetoed = Vetoed()
        self._without_a_move: set[str] = set()
        self.steps: list[Step] = []
        for stay in facts.stays:
            self._stays[stay.owner].append(stay)

    def run(self, most: int) -> None:
        """Moves until brokers are near enough, no move helps, or there are `most` moves."""
        while len(self.steps) < most and (move := self._next()):
            self._stays[move.stay.owner].remove(move.stay)
            step = guarded(self._step(move), self._planning, place_in_run=len(self.steps) + 1, earlier=self.steps)
            if not self._vetoed.holds(vetoes(step), move.stay.name):
                self.steps.append(step)
                self._loads.carry_out(move)

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
        by_fullness = self._loads.by_fullness()
        for broker in self._loads.uneven():
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
        if self._loads.too_full(broker):
            for target in others[:few]:
                yield from self._moves(broker, target)
        if self._loads.too_empty(broker):
            for source in others[::-1][:few]:
                yield from self._moves(source, broker)

    def _moves(self, source: str, target: str) -> Iterator[Move]:
        return (move for move in self._loads.moves(self._stays[source], target) if self._may_go(move))

    def _may_go(self, move: Move) -> bool:
        allowed = self._facts.allowed.get(move.stay.namespace)
        return allowed is None or move.target in allowed

    def _step(self, move: Move) -> Step:
        stay, source, target = move.stay, move.stay.owner, move.target
        (topics, flow, _), (topics_there, flow_there, _) = self._loads.mean[source], self._loads.mean[target]
        return Step(
            change=UnloadBundle(namespace=stay.namespace, bundle=stay.bundle, source=source, target=target),
            why=(
                f"In {counted(self._facts.snapshots, 'snapshot')} {source} carried {_words(topics, flow)} on average,"
                f" and {target} {_words(topics_there, flow_there)}; the bundle {stay.mean.words}, and"
                f" {throughput_in_words(stay.peak.bytes)} at most"
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


def _words(topics: int, flow: int) -> str:
    return f"{counted(topics, 'topic')} and {throughput_in_words(flow)}"
