"""What the guards say of a step on ``pulsar/system``, as far as the snapshot shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.guard.evaluate import evaluate
from pulsar_steward.guard.view import BundleView, ClusterView
from pulsar_steward.model.bundles import TC_NAMESPACE

if TYPE_CHECKING:
    from pulsar_steward.model.step import Step
    from pulsar_steward.planners.scene import Scene
    from pulsar_steward.planners.tc_pieces import Piece


def guarded(step: Step, piece: Piece, scene: Scene) -> Step:
    """The step with the results of all guards.

    Half a bundle is looked at as it will be once it is split off: on the same broker, its last move that of the whole.
    """
    return msgspec.structs.replace(step, guards=evaluate(step, _view(piece, scene)))


def _view(piece: Piece, scene: Scene) -> ClusterView:
    return ClusterView(
        now=scene.taken_at,
        brokers=frozenset(fact.broker for fact in scene.brokers if fact.read),
        allowed=None if scene.tc_allowed is None else frozenset(scene.tc_allowed),
        bundle=BundleView(
            exists=True,
            owner=piece.home,
            clients=piece.producers + piece.consumers,
            moved_at=scene.moved_at.get(f"{TC_NAMESPACE}/{piece.bundle}"),
        ),
        policy=scene.policy,
    )
