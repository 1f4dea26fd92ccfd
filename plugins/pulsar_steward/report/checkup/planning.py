"""What would be proposed, and why it is no more than that: silence is no answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.model.finding import Outlook, Severity
from pulsar_steward.report.checkup.document import CheckReport, Planning, ProposedBatch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pulsar_steward.model.plan import Batch, Plan

NOTHING_TO_CHANGE = "No check found anything that Steward could remedy: there is nothing to change."


def planning_of(plan: Plan, checks: Sequence[CheckReport]) -> Planning:
    """A plan in short, beside the checks that it rests on."""
    reasons = (*plan.notes, *_reasons(plan, checks))
    return Planning(
        batches=tuple(_proposed(batch) for batch in plan.batches),
        reasons=reasons if reasons or plan.batches else (NOTHING_TO_CHANGE,),
    )


def _proposed(batch: Batch) -> ProposedBatch:
    return ProposedBatch(
        batch_id=batch.batch_id,
        kind=batch.kind,
        title=batch.title,
        steps=len(batch.steps),
        clients=sum(step.touched.clients for step in batch.steps),
        undoable=all(step.undo is not None for step in batch.steps),
    )


def _reasons(plan: Plan, checks: Sequence[CheckReport]) -> Iterator[str]:
    planned = {batch.kind for batch in plan.batches}
    by_hand = [check.check_id for check in checks if _is_trouble(check) and check.remedied_by is None]
    for check in checks:
        if check.remedied_by is not None and check.remedied_by not in planned:
            yield from _unplanned(check, silent=not plan.notes)
    if by_hand:
        yield f"Steward has no remedy of its own for {', '.join(by_hand)}: the advice says what a person can do."


def _unplanned(check: CheckReport, *, silent: bool) -> Iterator[str]:
    if check.outlook is Outlook.UNKNOWN:
        yield f"{check.check_id} could not be judged, and nothing is proposed on what was not seen."
    elif _is_trouble(check) and silent:
        yield f"{check.remedied_by} found no step that would improve on {check.check_id} within the policy's limits."
    elif check.severity is Severity.INFO:
        yield f"{check.check_id} is information only: a remedy is proposed from a warning on."


def _is_trouble(check: CheckReport) -> bool:
    return check.severity is not None and check.severity.rank >= Severity.WARNING.rank
