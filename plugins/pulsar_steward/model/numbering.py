"""Ids of a plan's batches and steps, and the order of the steps; both follow from their places in the plan."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.model.step import ChangeSetting, SplitBundle, UnloadBundle

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pulsar_steward.model.plan import Batch
    from pulsar_steward.model.step import Step


def step_id(batch: str, number: int) -> str:
    """Id of a batch's step, counted from 1: ``b1.s02``."""
    return f"{batch}.s{number:02d}"


def numbered(batches: Iterable[Batch]) -> tuple[Batch, ...]:
    """The batches of a plan, in order, with their ids (``b1``), and the ids and the order of their steps."""
    return tuple(
        msgspec.structs.replace(batch, batch_id=(name := f"b{number}"), steps=tuple(_numbered(batch.steps, name)))
        for number, batch in enumerate(batches, start=1)
    )


def _numbered(steps: Iterable[Step], batch: str) -> Iterator[Step]:
    """Each step after the split that makes its bundle, or after the earlier settings of its namespace.

    Brokers compare a namespace's settings with each other, and each setting was computed together with the earlier
    ones.
    """
    makers: defaultdict[tuple[str, str], tuple[str, ...]] = defaultdict(tuple)
    for number, step in enumerate(steps, start=1):
        name, change = step_id(batch, number), step.change
        needs, makes = "", tuple[str, ...]()
        match change:
            case UnloadBundle():
                needs = change.bundle
            case SplitBundle():
                needs, makes = change.bundle, change.halves
            case ChangeSetting(topic=None):
                needs, makes = "settings", ("settings",)
        yield msgspec.structs.replace(step, step_id=name, after=makers[change.namespace, needs])
        for made in makes:
            makers[change.namespace, made] += (name,)
