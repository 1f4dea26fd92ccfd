"""Ids of batches and steps, derived from their place in a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from pulsar_steward.model.plan import Batch


def batch_id(number: int) -> str:
    """Id of a plan's batch, counted from 1: ``b1``."""
    return f"b{number}"


def step_id(batch: str, number: int) -> str:
    """Id of a batch's step, counted from 1: ``b1.s02``."""
    return f"{batch}.s{number:02d}"


def renumbered(batch: Batch, new_id: str) -> Batch:
    """Returns the batch with another id, and with the ids of its steps, and their order, adapted.

    Raises:
        KeyError: If a step comes after one that is not in the batch.
    """
    ids = {step.step_id: step_id(new_id, number) for number, step in enumerate(batch.steps, start=1)}
    steps = tuple(
        msgspec.structs.replace(step, step_id=ids[step.step_id], after=tuple(ids[earlier] for earlier in step.after))
        for step in batch.steps
    )
    return msgspec.structs.replace(batch, batch_id=new_id, steps=steps)
