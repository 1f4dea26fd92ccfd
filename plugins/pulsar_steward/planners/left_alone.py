"""Batches that people must never be asked about: the policy leaves them out of plans, and a note says why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.planners.base import Proposal
from pulsar_steward.policy.never_asked import namespace_never_asked_about

if TYPE_CHECKING:
    from pulsar_steward.policy.schema import Policy


def without_left_alone(proposal: Proposal, policy: Policy) -> Proposal:
    """The proposal without batches of a kind that `approval.never_ask` names for one of their namespaces.

    A batch is left out as a whole: its steps depend on each other, and half of them would be another remedy.
    """
    why = [(batch, namespace_never_asked_about(batch, policy)) for batch in proposal.batches]
    notes = tuple(
        f"{batch.title}: not proposed, as the policy says never to ask about {batch.kind} of {namespace}"
        " (approval.never_ask)."
        for batch, namespace in why
        if namespace is not None
    )
    kept = tuple(batch for batch, namespace in why if namespace is None)
    return Proposal(batches=kept, notes=(*proposal.notes, *notes)) if notes else proposal
