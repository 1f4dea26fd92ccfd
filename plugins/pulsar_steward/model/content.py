"""Content of a batch: the facts that a person decides on, so that the same question is recognised in a later plan.

It consists of the changes, their objects, their order, and the results of the guards. It excludes the snapshot, and all
figures that differ in every snapshot (clients, effects, reasons, the age of findings). It excludes the loss and the
messages in flight too: a question stays open as long as these are at most what it says.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.model.canonical import digest
from pulsar_steward.model.loss import NOTHING_LOST, Loss
from pulsar_steward.model.step import Step, UnloadBundle

if TYPE_CHECKING:
    from pulsar_steward.model.plan import Batch, Plan


def content_digest(plan: Plan, batch: Batch) -> str:
    """Digest of a batch's content: equal in two plans that ask the same about the same Pulsar cluster."""
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
    return digest([plan.cluster, plan.pulsar_cluster, batch.kind, steps])


def changes_digest(plan: Plan, batch: Batch) -> str:
    """Digest of a batch's changes alone, in their order: a rejection applies to them, whatever else a plan says."""
    changes = [[step.change, step.undoes] for step in batch.steps]
    return digest([plan.cluster, plan.pulsar_cluster, changes])


def goal_digest(plan: Plan, batch: Batch) -> str:
    """Digest of a batch's goal alone: the answers snooze and never apply to it, whatever value a plan proposes."""
    return digest([plan.cluster, plan.pulsar_cluster, goal_of(batch)])


def goal_of(batch: Batch) -> str:
    """Goal of a batch: its kind and its namespaces; the kind alone if it moves bundles between brokers."""
    if all(isinstance(step.change, UnloadBundle) for step in batch.steps):
        return batch.kind
    return " ".join([batch.kind, *sorted({step.change.namespace for step in batch.steps})])


def namespace_of(batch: Batch) -> str | None:
    """The only namespace that a batch is about; None: there are several, or it moves bundles between brokers."""
    if all(isinstance(step.change, UnloadBundle) for step in batch.steps):
        return None
    namespaces = {step.change.namespace for step in batch.steps}
    return namespaces.pop() if len(namespaces) == 1 else None


def share_goal(goal: str, other: str) -> bool:
    """True if two goals, as returned by `goal_of`, share a kind and a namespace, or the kind of moves."""
    return not goals_in(goal).isdisjoint(goals_in(other))


def goals_in(goal: str) -> frozenset[str]:
    """Goals of the parts of a batch, from the goal by `goal_of`; names of namespaces have no spaces."""
    kind, *namespaces = goal.split(" ")
    return frozenset(f"{kind} {namespace}" for namespace in namespaces) or frozenset({kind})


def loses_more(batch: Batch, asked: Batch) -> bool:
    """True if a step of a batch would lose or redeliver more than the same step of another batch with equal content."""
    return any(
        _loss(new).exceeds(_loss(old)) or new.moving_messages.outgrew(old.moving_messages)
        for new, old in zip(batch.steps, asked.steps, strict=True)
    )


def _loss(step: Step) -> Loss:
    return step.loss if isinstance(step.loss, Loss) else NOTHING_LOST


def parts_of(batch: Batch) -> tuple[Batch, ...]:
    """Parts of a group, with its steps as numbered in the group; any other batch is its only part.

    A part has the title and the findings of its group, as the group does not record the findings of each part.
    """
    if isinstance(batch.parts, msgspec.UnsetType):
        return (batch,)
    edges = [0]
    for steps in batch.parts:
        edges.append(edges[-1] + steps)
    return tuple(
        msgspec.structs.replace(batch, steps=batch.steps[first:end], parts=msgspec.UNSET)
        for first, end in pairwise(edges)
    )


def namespaces_of(batch: Batch) -> tuple[str, ...]:
    """Namespaces of a batch, in the order of its steps; empty if it moves bundles between brokers."""
    if all(isinstance(step.change, UnloadBundle) for step in batch.steps):
        return ()
    return tuple(dict.fromkeys(step.change.namespace for step in batch.steps))


def is_about_several(batch: Batch) -> bool:
    """True for a group of several namespaces, and for the rollback of one: the answer may leave some of them out."""
    may_be = batch.is_rollback or not isinstance(batch.parts, msgspec.UnsetType)
    return may_be and len(namespaces_of(batch)) > 1
