"""All planners, and the one plan that they make together."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.changes import kind_of
from pulsar_steward.model.canonical import canonical_json
from pulsar_steward.model.plan import Plan, numbered
from pulsar_steward.model.risk import worth_of
from pulsar_steward.model.step import ChangeSetting
from pulsar_steward.planners.base import Proposal, joined, told_of
from pulsar_steward.planners.bundles.balance import PLANNER as BUNDLE_BALANCE
from pulsar_steward.planners.bundles.drain import PLANNER as BROKER_DRAIN
from pulsar_steward.planners.bundles.groups import PLANNER as BROKER_GROUP
from pulsar_steward.planners.bundles.split import PLANNER as BUNDLE_SPLIT
from pulsar_steward.planners.partitions.raising import PLANNER as TOPIC_PARTITIONS
from pulsar_steward.planners.settings.namespaces import DELAYS, NAMESPACE_SETTINGS, PERSISTENCE
from pulsar_steward.planners.settings.nearly_full import NEARLY_FULL, NEARLY_OLD
from pulsar_steward.planners.settings.topics import OWN_QUOTAS, TOPIC_QUOTAS
from pulsar_steward.planners.subscriptions.abandoned import PLANNER as ABANDONED_SUBSCRIPTIONS
from pulsar_steward.planners.tc.balance import TC_BALANCE
from pulsar_steward.planners.tc.balance import TC_COUNT_RAISE as TC_COUNT
from pulsar_steward.policy.never_asked import never_asked_about

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from pulsar_steward.model.plan import Batch
    from pulsar_steward.model.step import Change
    from pulsar_steward.planners.base import Planner
    from pulsar_steward.planners.planning_facts import PlanningFacts
    from pulsar_steward.policy.schema import Policy


def without_left_alone(proposal: Proposal, policy: Policy) -> Proposal:
    """The proposal without batches of a kind that `approval.never_ask` names for one of their namespaces.

    A batch is left out as a whole: its steps depend on each other, and half of them would be another remedy.
    """
    why = [(batch, never_asked_about(batch, policy)) for batch in proposal.batches]
    notes = tuple(
        f"{batch.title}: not proposed, as the policy says never to ask about {what} (approval.never_ask)."
        for batch, what in why
        if what
    )
    kept = tuple(batch for batch, what in why if not what)
    return Proposal(batches=kept, notes=(*proposal.notes, *notes)) if notes else proposal


PLANNERS: tuple[Planner, ...] = (
    BROKER_DRAIN,
    BROKER_GROUP,
    TC_COUNT,
    TC_BALANCE,
    BUNDLE_SPLIT,
    BUNDLE_BALANCE,
    NAMESPACE_SETTINGS,
    TOPIC_QUOTAS,
    OWN_QUOTAS,
    NEARLY_FULL,
    NEARLY_OLD,
    DELAYS,
    TOPIC_PARTITIONS,
    PERSISTENCE,
    ABANDONED_SUBSCRIPTIONS,
)
"""All planners, in the order in which they run: each gets the changes of the earlier ones."""

FIRST_KINDS = (*TC_COUNT.kinds, *TC_BALANCE.kinds)
"""Kinds of batches that come before all others; no plan has two of them."""


def make_plan(planning: PlanningFacts) -> Plan:
    """The plan of all planners for a cluster.

    No two of them move or split bundles of one namespace, but for splits that nobody is asked about.
    """
    return assemble(planning, proposals_of(PLANNERS, planning))


def proposals_of(planners: Iterable[Planner], planning: PlanningFacts) -> list[Proposal]:
    """The proposals of some planners; each gets the earlier proposals, and the namespaces that they change."""
    proposals: list[Proposal] = []
    for planner in planners:
        bundles, settings = claimed_by(proposals, planning.unasked)
        told = msgspec.structs.replace(
            told_of(planning, joined(proposals)),
            claimed=planning.claimed | bundles,
            claimed_settings=planning.claimed_settings | settings,
        )
        proposals.append(without_left_alone(planner.proposal(told), planning.policy))
    return proposals


def claimed_by(
    proposals: Iterable[Proposal], unasked: Collection[tuple[Change, ...]]
) -> tuple[frozenset[str], frozenset[str]]:
    """Namespaces with moved or split bundles, and namespaces with changed settings (not a topic's own).

    Args:
        proposals: The proposals.
        unasked: Changes of batches that claim nothing.
    """
    batches = (batch for each in proposals for batch in each.batches if batch.changes and batch.changes not in unasked)
    changes = [change for batch in batches for change in batch.changes]
    disturbed = (kind_of(change).disturbs for change in changes)
    settings = (change for change in changes if isinstance(change, ChangeSetting))
    return (
        frozenset(bundle.namespace for bundle in disturbed if bundle is not None),
        frozenset(change.namespace for change in settings if change.topic is None),
    )


def assemble(planning: PlanningFacts, proposals: Sequence[Proposal]) -> Plan:
    """The plan: batches by urgency, numbered from ``b1``; notes in the planners' order, each once, then on the policy.

    Coordinators are balanced before business bundles, so that the two do not undo each other (docs/knowledge.md A).
    """
    batches = sorted((batch for proposal in proposals for batch in proposal.batches if batch.steps), key=_urgency)
    notes = dict.fromkeys(note for proposal in proposals for note in proposal.notes)
    notes |= dict.fromkeys(each.words for each in planning.unseen)
    return Plan(
        cluster=planning.cluster,
        snapshot_id=planning.snapshot_id,
        taken_at=planning.taken_at,
        pulsar_cluster=planning.pulsar_cluster,
        policy_digest=planning.policy.digest,
        batches=numbered(batches),
        notes=tuple(notes),
        unread=planning.unread or msgspec.UNSET,
    )


def _urgency(batch: Batch) -> tuple[bool, int, float, str, str, bytes]:
    """Sort key: coordinators first, then the worst finding, the time until a quota is reached, kind and title."""
    worst = max((finding.severity.rank for finding in batch.findings), default=-1)
    left = worth_of(batch).seconds_to_quota
    return (
        batch.kind not in FIRST_KINDS,
        -worst,
        inf if left is None else left,
        batch.kind,
        batch.title,
        canonical_json(batch),
    )
