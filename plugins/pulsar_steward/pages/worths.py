"""Order of the questions that wait: what is worth most first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.errors import LedgerError
from pulsar_steward.model.worth import Worth, worth_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulsar_steward.ledger.waiting import WaitingQuestion
    from pulsar_steward.pages.sources import Sources

UNKNOWN = Worth(critical=0, warnings=0)
"""Worth of a batch whose plan cannot be read any more: it comes last."""


def by_worth(sources: Sources, waiting: Sequence[WaitingQuestion]) -> tuple[WaitingQuestion, ...]:
    """Questions in order of their worth; of equal ones the oldest first."""
    return tuple(sorted(waiting, key=lambda each: _worths(sources, each.plan_id).get(each.batch_id, UNKNOWN).rank))


def _worths(sources: Sources, plan_id: str) -> Mapping[str, Worth]:
    """Worth of a plan's batches; kept, as a recorded plan never changes."""
    try:
        return sources.kept.get(("worth", plan_id), lambda: _read(sources, plan_id))
    except LedgerError:  # a question is listed all the same
        return {}


def _read(sources: Sources, plan_id: str) -> dict[str, Worth]:
    return {batch.batch_id: worth_of(batch) for batch in sources.ledger.plan(plan_id).batches}
