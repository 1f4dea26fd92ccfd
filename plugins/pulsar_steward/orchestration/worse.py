"""Comparison of a new proposal with a snoozed one, to see whether the problem got worse."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.changes import kind_of
from pulsar_steward.model.loss import NOTHING_LOST, Loss

if TYPE_CHECKING:
    from pulsar_steward.model.finding import Severity
    from pulsar_steward.model.plan import Batch
    from pulsar_steward.model.step import Step


def got_worse(batch: Batch, asked: Batch | None) -> str | None:
    """The first thing that is worse in a batch than in the earlier one with its goal; None: nothing is worse.

    Worse means: a more severe finding, a new finding, or a change that loses or redelivers more messages. Higher
    figures alone, such as a growing backlog, are not worse: if they matter, they cross a check's next threshold.

    Args:
        batch: The new proposal.
        asked: The earlier batch; None: it cannot be read any more, which counts as worse.
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
        if _loss(step).exceeds(then.get(_subject(step), NOTHING_LOST)):
            return f"more would be lost by {kind_of(step.change).describe()}"
    return _more_in_flight(batch, asked)


def _more_in_flight(batch: Batch, asked: Batch) -> str | None:
    """A move in both batches that now redelivers more messages, or loses more of non-persistent topics."""
    then = {_subject(step): step.moving_messages for step in asked.steps}
    for step in batch.steps:
        before = then.get(_subject(step))
        if before is not None and step.moving_messages.outgrew(before):
            return f"more messages are in flight for {kind_of(step.change).describe()}"
    return None


def _subject(step: Step) -> tuple[str, ...]:
    return (type(step.change).__name__, *kind_of(step.change).subject)


def _loss(step: Step) -> Loss:
    return step.loss if isinstance(step.loss, Loss) else NOTHING_LOST
