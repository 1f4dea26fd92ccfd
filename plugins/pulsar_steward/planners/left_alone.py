"""Batches that the policy says never to ask about: they are not proposed, and a note says why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.planners.base import Proposal

if TYPE_CHECKING:
    from pulsar_steward.model.plan import Batch
    from pulsar_steward.policy.schema import Policy


def without_left_alone(proposal: Proposal, policy: Policy) -> Proposal:
    """The proposal without batches of a kind that `approval.never_ask` names for one of their namespaces.

    A batch is left out whole: its steps rest on each other, and half of them is another remedy than the planner's.
    """
    why = [(batch, _who_says_never(batch, policy)) for batch in proposal.batches]
    notes = tuple(
        f"{batch.title}: not proposed, as the policy says never to ask about {batch.kind} of {namespace}"
        " (approval.never_ask)."
        for batch, namespace in why
        if namespace is not None
    )
    kept = tuple(batch for batch, namespace in why if namespace is None)
    return Proposal(batches=kept, notes=(*proposal.notes, *notes)) if notes else proposal


def _who_says_never(batch: Batch, policy: Policy) -> str | None:
    """First namespace of a batch for which the policy leaves out its kind; None: none."""
    namespaces = sorted({step.change.namespace for step in batch.steps})
    return next((each for each in namespaces if batch.kind in policy.for_namespace(each).approval.never_ask), None)
