"""A snapshot as the guards see it, so that each planner asks them of the same cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.guard.view import BundleView, ClusterView, SettingView

if TYPE_CHECKING:
    from collections.abc import Collection

    from pulsar_steward.planners.scene import Scene


def view_of(
    scene: Scene,
    *,
    place_in_run: int = 1,
    allowed: Collection[str] | None = None,
    bundle: BundleView | None = None,
    setting: SettingView | None = None,
) -> ClusterView:
    """What the guards of one step need to know, at the time of the snapshot.

    Args:
        scene: The snapshot.
        place_in_run: Which change of its batch the step is, from 1.
        allowed: Brokers that isolation policies leave to the step's namespace; None: every broker.
        bundle: The bundle that it changes.
        setting: The setting that it changes.
    """
    return ClusterView(
        now=scene.taken_at,
        seen_at=scene.taken_at,
        pulsar_cluster=scene.pulsar_cluster,
        planned_for=scene.pulsar_cluster,
        brokers=frozenset(fact.broker for fact in scene.brokers if fact.read),
        silent=tuple(fact.broker for fact in scene.brokers if not fact.read),
        place_in_run=place_in_run,
        planned=True,
        allowed=None if allowed is None else frozenset(allowed),
        bundle=bundle,
        setting=setting,
        policy=scene.policy,
    )
