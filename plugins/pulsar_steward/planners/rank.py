"""One plan from what all planners propose: which batch comes first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.model.canonical import canonical_json
from pulsar_steward.model.numbering import batch_id, renumbered
from pulsar_steward.model.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsar_steward.model.plan import Batch
    from pulsar_steward.planners.planning_facts import PlanningFacts, Proposal

FIRST_KIND = "tc_balance"
"""Coordinators are balanced before business bundles, so that the two do not undo each other (docs/knowledge.md A)."""


def assemble(planning: PlanningFacts, proposals: Sequence[Proposal]) -> Plan:
    """The plan: batches by urgency, numbered from ``b1``; notes in the planners' order, each once."""
    batches = sorted((batch for proposal in proposals for batch in proposal.batches if batch.steps), key=_urgency)
    notes = dict.fromkeys(note for proposal in proposals for note in proposal.notes)
    return Plan(
        cluster=planning.cluster,
        snapshot_id=planning.snapshot_id,
        taken_at=planning.taken_at,
        pulsar_cluster=planning.pulsar_cluster,
        policy_digest=planning.policy.digest,
        batches=tuple(renumbered(batch, batch_id(number)) for number, batch in enumerate(batches, start=1)),
        notes=tuple(notes),
    )


def _urgency(batch: Batch) -> tuple[bool, int, str, str, bytes]:
    worst = max((finding.severity.rank for finding in batch.findings), default=-1)
    return batch.kind != FIRST_KIND, -worst, batch.kind, batch.title, canonical_json(batch)
