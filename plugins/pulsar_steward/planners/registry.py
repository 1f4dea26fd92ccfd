"""Every planner there is, and the plan that they make together."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.model.step import ChangeSetting
from pulsar_steward.planners import tc_balance
from pulsar_steward.planners.bundles import balance, split
from pulsar_steward.planners.planning_facts import PlanningFacts, Proposal
from pulsar_steward.planners.rank import assemble
from pulsar_steward.planners.settings.propose import propose as propose_settings

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pulsar_steward.model.plan import Plan

Planner = Callable[[PlanningFacts], Proposal]
"""A pure function: the same facts give the same proposal."""

PLANNERS: tuple[Planner, ...] = (tc_balance.propose, split.propose, balance.propose, propose_settings)
"""In this order: each is told of which namespaces those before it change bundles."""


def make_plan(planning: PlanningFacts) -> Plan:
    """What is proposed for a cluster, all planners together; no two of them move or split bundles of one namespace."""
    proposals: list[Proposal] = []
    for propose in PLANNERS:
        claimed = planning.claimed | claimed_by(proposals)
        proposals.append(propose(msgspec.structs.replace(planning, claimed=claimed)))
    return assemble(planning, proposals)


def claimed_by(proposals: Iterable[Proposal]) -> frozenset[str]:
    """Namespaces of which bundles are moved or split."""
    steps = (step for proposal in proposals for batch in proposal.batches for step in batch.steps)
    return frozenset(step.change.namespace for step in steps if not isinstance(step.change, ChangeSetting))
