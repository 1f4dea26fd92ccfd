"""Moves of bundles that have to leave their brokers, each to the first broker that has room and passes all guards."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pulsar_steward.facts.room import RESOURCES
from pulsar_steward.guards.evaluate import GUARDS
from pulsar_steward.guards.kinds import TargetGuard
from pulsar_steward.model.bundles import TC_NAMESPACE
from pulsar_steward.model.step import Step, Touched, UnloadBundle
from pulsar_steward.model.units import counted, throughput_in_words
from pulsar_steward.planners.base import Vetoed
from pulsar_steward.planners.snapshot_facts import guarded, vetoes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pulsar_steward.planners.bundles.assignment import Room
    from pulsar_steward.planners.bundles.facts import LeavingFacts, PlacedBundle
    from pulsar_steward.planners.planning_facts import PlanningFacts

OF_TARGETS = frozenset(guard.name for guard in GUARDS if isinstance(guard, TargetGuard))
"""Guards that may veto one target and let another one pass."""

SYSTEM = "pulsar/"
"""Tenant of Pulsar's own namespaces."""


class Reasons(NamedTuple):
    """Why bundles leave their brokers, as text with ``{source}``.

    Attributes:
        why: The reason, as the beginning of a sentence.
        nowhere: Why a bundle has no candidate at all.
        back: Where to an undo unloads it, and when.
    """

    why: str
    nowhere: str
    back: str


class Relocation:
    """Moves of a plan so far.

    Attributes:
        room: Loads of all brokers after the moves so far.
        vetoed: Bundles that guards keep where they are.
        nowhere: Bundles that no broker has room for, each with a reason.
    """

    def __init__(self, planning: PlanningFacts, room: Room) -> None:
        self.room = room
        self.vetoed = Vetoed()
        self.nowhere: list[str] = []
        self._planning = planning
        self._coordinators = {
            f"{TC_NAMESPACE}/{bundle.bundle}": len(bundle.coordinators) for bundle in planning.tc_bundles
        }

    def make(self, moves: Iterable[UnloadBundle], facts: LeavingFacts) -> None:
        """Makes moves that are proposed already, of bundles that are known to leave their brokers."""
        for move in moves:
            if stay := facts.leaving.get(f"{move.namespace}/{move.bundle}"):
                self.room.put(stay, move.target, self._coordinators.get(stay.name, 0))

    def in_order(self, leaving: Iterable[PlacedBundle]) -> list[PlacedBundle]:
        """Bundles in order: most coordinators first; then the heaviest, which need most room; Pulsar's own last."""
        return sorted(
            leaving,
            key=lambda stay: (
                -self._coordinators.get(stay.name, 0),
                stay.namespace.startswith(SYSTEM),
                -self.room.weight(stay),
                stay.name,
            ),
        )

    def placed(self, stay: PlacedBundle, reasons: Reasons, earlier: Sequence[Step]) -> Step | None:
        """The step that moves a bundle to the first possible broker; None, with a note: no broker is possible."""
        coordinators = self._coordinators.get(stay.name, 0)
        full: list[str] = []
        vetoed: Step | None = None
        for target in self.room.candidates(stay, coordinators):
            if why := self.room.objection(stay, target):
                full.append(why)
                continue
            step = self._step(stay, target, coordinators, reasons)
            step = guarded(step, self._planning, place_in_run=len(earlier) + 1, earlier=earlier)
            against = {veto.guard for veto in vetoes(step)}
            if not against:
                self.room.put(stay, target, coordinators)
                return step
            vetoed = step
            if against - OF_TARGETS:
                break
        if vetoed is not None:
            self.vetoed.holds(vetoes(vetoed), stay.name)
        else:
            self.nowhere.append(f"{stay.name} ({full[0] if full else reasons.nowhere})")
        return None

    def _step(self, stay: PlacedBundle, target: str, coordinators: int, reasons: Reasons) -> Step:
        source, topics = stay.owner, self.room.topics
        held = f" and {counted(coordinators, 'transaction coordinator')}" if coordinators else ""
        after = self.room.usage_after(stay, target)
        resources = ", ".join(
            f"{getattr(self.room.usage(target), name):.0f} to {getattr(after, name):.0f} % {words}"
            for name, words in RESOURCES.items()
        )
        return Step(
            change=UnloadBundle(namespace=stay.namespace, bundle=stay.bundle, source=source, target=target),
            why=(
                f"{reasons.why.format(source=source)}. The bundle carries {stay.mean.words}{held} on average,"
                f" {throughput_in_words(stay.peak.bytes)} at most"
            ),
            effect=(
                f"{source} goes from {topics[source]:,} to {counted(topics[source] - stay.now.topics, 'topic')},"
                f" {target} from {topics[target]:,} to {topics[target] + stay.now.topics:,}, and from about {resources}"
            ),
            touched=Touched(
                producers=stay.now.producers,
                consumers=stay.now.consumers,
                topics=stay.now.topics,
                coordinators=coordinators,
            ),
            undo=UnloadBundle(namespace=stay.namespace, bundle=stay.bundle, source=target, target=source),
            undo_note=(
                f"Unload it from {target} {reasons.back.format(source=source)}: the same clients reconnect once more."
            ),
        )


def coordinators_held(planning: PlanningFacts) -> dict[str, int]:
    """Number of transaction coordinators of every broker."""
    held = dict.fromkeys((fact.broker for fact in planning.brokers), 0)
    for bundle in planning.tc_bundles:
        if bundle.owner in held:
            held[bundle.owner] += len(bundle.coordinators)
    return held
