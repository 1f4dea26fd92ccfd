"""Comparison of a proposal with the one that a person snoozed: is it about something worse?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.changes import kind_of
from pulsar_steward.model.loss import Loss

if TYPE_CHECKING:
    from pulsar_steward.model.finding import Severity
    from pulsar_steward.model.plan import Batch
    from pulsar_steward.model.step import Step

NOTHING = Loss(messages=0)


def got_worse(batch: Batch, asked: Batch | None) -> str | None:
    """The first thing that is worse in a batch than in the one of its goal that was asked about; None: nothing.

    Worse is a finding that is more severe, one that was not there, and a change that would lose more. Figures alone,
    such as a growing backlog, are not: where they matter a check's next threshold says so.

    Args:
        batch: The new proposal.
        asked: What was asked; None: it cannot be read any more, so that nobody knows.
    """
    if asked is None:
        return "what was asked then cannot be read any more"
    return _worse_finding(batch, asked) or _greater_loss(batch, asked)


def _worse_finding(batch: Batch, asked: Batch) -> str | None:
    then: dict[tuple[str, str], Severity] = {}
    for finding in asked.findings:
        key = (finding.check_id, finding.subject)
        then[key] = max(then.get(key, finding.severity), finding.severity, key=lambda severity: severity.rank)
    for finding in batch.findings:
        before = then.get((finding.check_id, finding.subject))
        if before is None:
            return f"{finding.check_id} of {finding.subject} is new"
        if finding.severity.rank > before.rank:
            return f"{finding.check_id} of {finding.subject} is {finding.severity} by now, and was {before}"
    return None


def _greater_loss(batch: Batch, asked: Batch) -> str | None:
    then = {_subject(step): _loss(step) for step in asked.steps}
    for step in batch.steps:
        now, before = _loss(step), then.get(_subject(step), NOTHING)
        if now.bytes > before.bytes or (now.messages or 0) > (before.messages or 0):
            return f"more would be lost by {kind_of(step.change).describe()}"
    return None


def _subject(step: Step) -> tuple[str, ...]:
    return (type(step.change).__name__, *kind_of(step.change).subject)


def _loss(step: Step) -> Loss:
    return step.loss if isinstance(step.loss, Loss) else NOTHING
