"""Parts of a batch: the planners' batches that share its question, one namespace each."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.model.step import UnloadBundle

if TYPE_CHECKING:
    from pulsar_steward.model.plan import Batch


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
