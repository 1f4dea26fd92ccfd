"""What the guards say of a step on ``pulsar/system``, as far as the snapshot shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.guard.evaluate import evaluate
from pulsar_steward.guard.view import BundleView
from pulsar_steward.model.bundles import TC_NAMESPACE
from pulsar_steward.planners.viewing import view_of

if TYPE_CHECKING:
    from pulsar_steward.guard.view import ClusterView
    from pulsar_steward.model.step import Step
    from pulsar_steward.planners.scene import Scene
    from pulsar_steward.planners.tc_pieces import Piece


def guarded(step: Step, piece: Piece, scene: Scene) -> Step:
    """The step with the results of all guards.

    Half a bundle is looked at as it will be once it is split off: on the same broker, its last move that of the whole.
    """
    return msgspec.structs.replace(step, guards=evaluate(step, _view(piece, scene)))


def _view(piece: Piece, scene: Scene) -> ClusterView:
    bundle = BundleView(
        exists=True,
        owner=piece.home,
        clients=piece.producers + piece.consumers,
        circling=scene.circling.get(TC_NAMESPACE, ()),
        moved_at=scene.moved_at.get(f"{TC_NAMESPACE}/{piece.bundle}"),
    )
    return view_of(scene, allowed=scene.tc_allowed, bundle=bundle)
