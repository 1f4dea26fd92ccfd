"""Every planner there is, and the plan that they make together."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pulsar_steward.planners import tc_balance
from pulsar_steward.planners.rank import assemble
from pulsar_steward.planners.scene import Proposal, Scene
from pulsar_steward.planners.settings.propose import propose as propose_settings

if TYPE_CHECKING:
    from pulsar_steward.model.plan import Plan

Planner = Callable[[Scene], Proposal]
"""A pure function: the same scene gives the same proposal."""

PLANNERS: tuple[Planner, ...] = (tc_balance.propose, propose_settings)


def make_plan(scene: Scene) -> Plan:
    """What is proposed for a cluster, all planners together."""
    return assemble(scene, [propose(scene) for propose in PLANNERS])
