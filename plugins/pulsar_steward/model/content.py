"""Content of a batch: what a person decides on, so that the same question is recognised in a later plan.

It is what would be done, on what, in which order, and what the guards said. The snapshot, and figures that move with
every look (clients, effects, reasons, the age of findings), are none of it. Neither is what is lost: a question stands
as long as no more is lost than it says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.model.canonical import digest
from pulsar_steward.model.loss import Loss
from pulsar_steward.model.step import Step, UnloadBundle

if TYPE_CHECKING:
    from pulsar_steward.model.plan import Batch, Plan

NOTHING_LOST = Loss(messages=0)


def content_digest(plan: Plan, batch: Batch) -> str:
    """Digest of a batch's content: equal in two plans if both ask the same of the same Pulsar cluster."""
    places = {step.step_id: number for number, step in enumerate(batch.steps)}
    steps = [
        {
            "change": step.change,
            "undo": step.undo,
            "after": [places[earlier] for earlier in step.after],
            "undoes": step.undoes,
            "guards": sorted([guard.guard, guard.passed] for guard in step.guards),
        }
        for step in batch.steps
    ]
    return digest([plan.cluster, plan.planned_for, batch.kind, steps])


def goal_of(batch: Batch) -> str:
    """Goal of a batch: its kind and its namespaces; the kind alone where it moves bundles between brokers."""
    if all(isinstance(step.change, UnloadBundle) for step in batch.steps):
        return batch.kind
    return " ".join([batch.kind, *sorted({step.change.namespace for step in batch.steps})])


def namespace_of(batch: Batch) -> str | None:
    """The only namespace that a batch is about; None: several, or it moves bundles between brokers."""
    if all(isinstance(step.change, UnloadBundle) for step in batch.steps):
        return None
    namespaces = {step.change.namespace for step in batch.steps}
    return namespaces.pop() if len(namespaces) == 1 else None


def share_goal(goal: str, other: str) -> bool:
    """True if two goals, as `goal_of` gives them, have a kind and a namespace in common, or the kind of moves."""
    return not goals_in(goal).isdisjoint(goals_in(other))


def goals_in(goal: str) -> frozenset[str]:
    """Goals of the parts of a batch, of which `goal_of` gave the goal; no name of a namespace has a blank."""
    kind, *namespaces = goal.split(" ")
    return frozenset(f"{kind} {namespace}" for namespace in namespaces) or frozenset({kind})


def loses_more(batch: Batch, asked: Batch) -> bool:
    """True if a step of a batch would lose more than the same step of another one of equal content."""
    return any(_more(_loss(new), _loss(old)) for new, old in zip(batch.steps, asked.steps, strict=True))


def _loss(step: Step) -> Loss:
    return step.loss if isinstance(step.loss, Loss) else NOTHING_LOST


def _more(now: Loss, then: Loss) -> bool:
    return now.bytes > then.bytes or (now.messages or 0) > (then.messages or 0)
