"""A small model of a cluster's bundles that carries out a batch step by step, and refuses what a broker would."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.model.bundles import TC_NAMESPACE, BundleRange, position_of, tc_topic
from pulsar_steward.model.plan import Batch, Placement
from pulsar_steward.model.step import SplitBundle, Step, UnloadBundle

if TYPE_CHECKING:
    from pulsar_steward.planners.planning_facts import PlanningFacts, TcBundle


class Replay:
    """The bundles of ``pulsar/system`` by range; every method fails where the cluster would not do it.

    Attributes:
        bundles: Every bundle that holds a topic, by range.
        done: Ids of the steps that were carried out.
    """

    def __init__(self, planning: PlanningFacts) -> None:
        self._brokers = [fact.broker for fact in planning.brokers]
        self.bundles: dict[str, TcBundle] = {bundle.bundle: bundle for bundle in planning.tc_bundles}
        self.done: list[str] = []

    def carry_out(self, step: Step) -> None:
        """Does one step."""
        assert set(step.after) <= set(self.done), "a step comes before one that it needs"
        assert step.change.namespace == TC_NAMESPACE
        match step.change:
            case UnloadBundle():
                self._unload(step.change)
            case SplitBundle():
                self._split(step.change)
        self.done.append(step.step_id)

    def finish(self, batch: Batch) -> None:
        """Does every step of a batch."""
        for step in batch.steps:
            self.carry_out(step)

    def _unload(self, change: UnloadBundle) -> None:
        bundle = self.bundles[change.bundle]
        assert bundle.owner == change.source != change.target
        assert change.target in self._brokers
        self.bundles[change.bundle] = msgspec.structs.replace(bundle, owner=change.target)

    def _split(self, change: SplitBundle) -> None:
        bundle = self.bundles.pop(change.bundle)
        whole, lower, upper = (BundleRange.parse(text) for text in (change.bundle, *change.halves))
        assert bundle.owner == change.owner
        assert (whole.lower, lower.upper, whole.upper) == (lower.lower, upper.lower, upper.upper)
        for half in (lower, upper):
            self.bundles[str(half)] = msgspec.structs.replace(
                bundle,
                bundle=str(half),
                coordinators=tuple(n for n in bundle.coordinators if position_of(tc_topic(n)) in half),
                positions=tuple(position for position in bundle.positions if position in half),
            )

    def placement(self) -> tuple[Placement, ...]:
        """Coordinators of every broker; those in bundles that nobody owns are nowhere."""
        loads = dict.fromkeys(sorted(self._brokers), 0)
        for bundle in self.bundles.values():
            if bundle.owner is not None:
                loads[bundle.owner] += len(bundle.coordinators)
        return tuple(Placement(broker, count) for broker, count in loads.items())

    def scene_after(self, planning: PlanningFacts) -> PlanningFacts:
        """The same facts with the bundles as they are now, none of them resting."""
        return msgspec.structs.replace(planning, tc_bundles=tuple(self.bundles.values()), moved_at={})
