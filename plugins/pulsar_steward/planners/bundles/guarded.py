"""What the guards say of a step on a business bundle, as far as the snapshot shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.guard.evaluate import evaluate
from pulsar_steward.guard.hazards import Hazards, Surroundings, hazards_of
from pulsar_steward.guard.view import BundleView
from pulsar_steward.model.bundles import BundleRange, position_of
from pulsar_steward.model.step import ChangeSetting, SplitBundle, present_owner
from pulsar_steward.planners.viewing import view_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from pulsar_steward.model.step import GuardResult, Step
    from pulsar_steward.planners.scene import Scene


def guarded(
    step: Step, scene: Scene, *, bundle: str, clients: int, place_in_run: int, allowed: Collection[str] | None = None
) -> Step:
    """The step with the results of all guards.

    Part of a bundle is looked at as it will be once it is split off: on the same broker, its last move that of the
    whole, with the hazards of its own topics.

    Args:
        step: A move or a split.
        scene: The snapshot.
        bundle: The range, in the snapshot, of the bundle that is changed or that it is part of.
        clients: Connected through it; a split keeps them where the snapshot says so.
        place_in_run: Which change of its batch it is, from 1.
        allowed: Brokers that isolation policies leave to its namespace; None: every broker.
    """
    change = step.change
    if isinstance(change, ChangeSetting):
        raise TypeError(f"{change} is no change of a bundle")
    view = BundleView(
        exists=True,
        owner=present_owner(change),
        clients=0 if isinstance(change, SplitBundle) and scene.bundles.splits_keep_clients else clients,
        circling=scene.circling.get(change.namespace, ()),
        moved_at=scene.moved_at.get(f"{change.namespace}/{bundle}"),
        hazards=_hazards(scene, change.namespace, bundle, change.bundle),
    )
    seen = view_of(scene, allowed=allowed, bundle=view, place_in_run=place_in_run)
    return msgspec.structs.replace(step, guards=evaluate(step, seen))


def vetoes(step: Step) -> list[GuardResult]:
    """The guards that veto it."""
    return [result for result in step.guards if not result.passed]


def _hazards(scene: Scene, namespace: str, bundle: str, part: str) -> Hazards:
    dangers = scene.bundles.dangers
    figures = dangers.figures.get(f"{namespace}/{bundle}", ())
    if part != bundle and figures:
        wanted = BundleRange.parse(part)
        figures = tuple(each for each in figures if position_of(each.topic) in wanted)
    return hazards_of(figures, dangers.around.get(namespace, Surroundings()), scene.policy.guards)
