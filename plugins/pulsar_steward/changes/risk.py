"""Risk of a batch, computed from the recorded plan alone, so that every caller gets the same result.

Planners do not declare it. A change's kind, not its step, decides if it loses messages and can be undone. The level is
that of the worst reason; reasons do not offset each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.changes import kind_of
from pulsar_steward.changes.headline import loses
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.loss import Loss
from pulsar_steward.model.risk import BatchRisk, Risk, RiskReason
from pulsar_steward.model.units import bytes_in_words, counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pulsar_steward.model.finding import Finding
    from pulsar_steward.model.plan import Batch, Plan
    from pulsar_steward.model.step import Step

MANY_CLIENTS = ((10_000, Risk.HIGH), (1_000, Risk.MEDIUM))
"""Clients that have to reconnect: 10,000 per minute are the default limit of the pace."""

MANY_PARTITIONS = ((10_000, Risk.HIGH), (1_000, Risk.MEDIUM))
"""Partitions that are briefly not served: brokers load some thousands per minute."""

MANY_AGAIN = ((1_000_000, Risk.HIGH), (100_000, Risk.MEDIUM))
"""Acknowledged messages that are redelivered; at least 10,000 are always left as room."""

MANY_LOST = ((1_000_000, Risk.HIGH), (0, Risk.MEDIUM))
"""Lost messages of non-persistent topics, which lose some whenever their clients reconnect."""

MAX_NAMED = 3
"""Steps, or findings, that a reason names one by one."""

TWICE = 2
"""Number of snapshots in a row that have to show a finding for it to count as confirmed."""


def risk_of(plan: Plan, batch: Batch) -> BatchRisk:
    """Risk of a batch of a plan, for all of its steps, ticked or not."""
    losing = [step for step in batch.steps if loses(step)]
    reasons = [
        *_lost(losing),
        *_final(batch.steps),
        *_warned_of(batch.steps),
        *_touched(batch),
        *_in_flight(batch.steps),
        *_returning(batch),
        *_unsure(plan, batch, loses=bool(losing)),
    ]
    calm = RiskReason(Risk.LOW, "nothing is lost, and every step can be undone")
    return BatchRisk(tuple(sorted(reasons, key=lambda reason: -reason.level.rank)) or (calm,))


def _lost(losing: Sequence[Step]) -> Iterator[RiskReason]:
    """Loss of messages, by the step's figure, which a guard compares; without a figure, the worst is assumed."""
    if not losing:
        return
    known = [(step, step.loss) for step in losing if isinstance(step.loss, Loss) and step.loss.is_known]
    losses = [loss for _, loss in known]
    if unknown := [step for step in losing if step not in [each for each, _ in known]]:
        yield RiskReason(Risk.CRITICAL, f"how much is deleted at once for {_named(unknown)} is not known")
    if messages := sum(loss.messages or 0 for loss in losses):
        unread = counted(messages, "entry that nobody has read is", "entries that nobody has read are")
        yield RiskReason(Risk.CRITICAL, f"up to {unread} deleted at once, a batch of messages counted as one")
    if stored := sum(loss.bytes or 0 for loss in losses):
        yield RiskReason(Risk.HIGH, f"up to {bytes_in_words(stored)} of stored messages are deleted at once")
    yield RiskReason(Risk.HIGH, f"brokers may delete messages for {_named(losing)}, which do not come back")


def _final(steps: Sequence[Step]) -> Iterator[RiskReason]:
    if final := [step for step in steps if step.undo is None or not kind_of(step.change).undoable]:
        yield RiskReason(Risk.MEDIUM, f"{_named(final)} cannot be undone")


def _warned_of(steps: Sequence[Step]) -> Iterator[RiskReason]:
    """Warnings of changes that lose nothing, such as a quota that stops producers."""
    warned: dict[str, list[Step]] = {}
    for step in steps:
        warning = None if loses(step) else kind_of(step.change).warning(step)
        if warning is not None:
            warned.setdefault(warning.headline_after(step.guards), []).append(step)
    for headline, steps_of_it in warned.items():
        yield RiskReason(Risk.MEDIUM, f"{_named(steps_of_it)}: {headline}")


def _touched(batch: Batch) -> Iterator[RiskReason]:
    clients = sum(step.touched.clients for step in batch.steps)
    topics = sum(step.touched.topics for step in batch.steps if kind_of(step.change).disturbs is not None)
    coordinators = sum(step.touched.coordinators for step in batch.steps)
    if clients:
        yield RiskReason(_level(clients, MANY_CLIENTS), f"{counted(clients, 'client')} will reconnect")
    if topics:
        away = counted(topics, "partition is", "partitions are")
        yield RiskReason(_level(topics, MANY_PARTITIONS), f"{away} not served for a moment")
    if coordinators:
        pausing = counted(coordinators, "transaction coordinator pauses", "transaction coordinators pause")
        yield RiskReason(Risk.LOW, f"{pausing} for a moment")
    yield from _brokers(batch)


def _brokers(batch: Batch) -> Iterator[RiskReason]:
    """Share of the brokers that take part, if the batch lists all brokers."""
    bundles = [bundle for step in batch.steps if (bundle := kind_of(step.change).disturbs) is not None]
    involved = {broker for bundle in bundles for broker in (bundle.owner_before, bundle.owner_after)}
    listed = {place.broker for place in batch.before} | {place.broker for place in batch.after}
    if not involved or not listed:
        return
    some = len(involved & listed)
    level = Risk.MEDIUM if 2 * some >= len(listed) else Risk.LOW
    which = "every broker" if some == len(listed) else f"{some:,} of {counted(len(listed), 'broker')}"
    yield RiskReason(level, f"touches {which}")


def _in_flight(steps: Sequence[Step]) -> Iterator[RiskReason]:
    """Redelivered messages, and lost messages of non-persistent topics."""
    moving = [step.moving_messages for step in steps]
    if again := sum(each.again for each in moving):
        words = f"up to {counted(again, 'acknowledged message is', 'acknowledged messages are')} delivered again"
        yield RiskReason(_level(again, MANY_AGAIN), f"{words}, as batches may be acknowledged in part")
    if topics := sum(each.volatile_topics for each in moving):
        lost = sum(each.lost for each in moving)
        of_topics = counted(topics, "topic that is not persistent", "topics that are not persistent")
        yield RiskReason(_level(lost, MANY_LOST), f"up to about {counted(lost, 'message')} of {of_topics} may be lost")


def _returning(batch: Batch) -> Iterator[RiskReason]:
    """Findings that a rollback brings back, critical ones separately."""
    for severity, level in ((Severity.CRITICAL, Risk.MEDIUM), (Severity.WARNING, Risk.LOW)):
        if words := comes_back(batch, severity):
            yield RiskReason(level, words)


def comes_back(batch: Batch, severity: Severity) -> str:
    """Findings of a severity that come back with a rollback, such as ``1 warning comes back: tc-skew``; empty: none."""
    found = [finding for finding in batch.returning if finding.severity is severity]
    if not found:
        return ""
    if severity is Severity.CRITICAL:
        back = counted(len(found), "critical finding comes back", "critical findings come back")
    else:
        back = counted(len(found), "warning comes back", "warnings come back")
    return f"{back}: {_checks_of(found)}"


def _checks_of(found: Iterable[Finding]) -> str:
    """Checks of findings, each once: the first ones and the number of the others."""
    names = sorted({finding.check_id for finding in found})
    more = len(names) - MAX_NAMED
    return ", ".join([*names[:MAX_NAMED], *([f"{counted(more, 'check')} more"] if more > 0 else [])])


def _unsure(plan: Plan, batch: Batch, *, loses: bool) -> Iterator[RiskReason]:
    """Thin evidence; the risk is critical if messages would be lost because of it."""
    if batch.is_rollback:
        return  # requested by a person, so it has no findings
    if plan.lacking:
        level = Risk.CRITICAL if loses else Risk.MEDIUM
        words = f"the snapshot is partial: {counted(len(plan.lacking), 'broker or namespace', 'brokers or namespaces')}"
        yield RiskReason(level, f"{words} could not be read")
    if not batch.findings:
        yield RiskReason(Risk.CRITICAL if loses else Risk.MEDIUM, "no finding of the snapshot says why")
    elif min(finding.snapshots_in_a_row for finding in batch.findings) < TWICE:
        level = Risk.CRITICAL if loses else Risk.LOW
        rests = "messages are lost on" if loses else "it rests on"
        yield RiskReason(level, f"{rests} a finding that one snapshot alone shows")


def _level(amount: int, bounds: Iterable[tuple[int, Risk]]) -> Risk:
    return next((level for bound, level in bounds if amount >= bound), Risk.LOW)


def _named(steps: Sequence[Step]) -> str:
    names = ", ".join(step.step_id for step in steps[:MAX_NAMED])
    more = len(steps) - MAX_NAMED
    return f"{names} and {counted(more, 'step')} more" if more > 0 else names
