"""Risk of a batch, computed from the recorded plan alone, so that whoever asks comes to the same.

No planner declares it. What a change loses and whether it can be undone is asked of its kind, not read from what its
step says of it. The level is that of the gravest reason; no reason outweighs another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.changes import kind_of
from pulsar_steward.model.loss import Loss
from pulsar_steward.model.risk import BatchRisk, Risk, RiskReason
from pulsar_steward.model.units import bytes_in_words, counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pulsar_steward.model.plan import Batch, Plan
    from pulsar_steward.model.step import Step

MANY_CLIENTS = ((10_000, Risk.HIGH), (1_000, Risk.MEDIUM))
"""Clients that have to reconnect: 10,000 are what the pace lets go in a minute by default."""

MANY_PARTITIONS = ((10_000, Risk.HIGH), (1_000, Risk.MEDIUM))
"""Partitions that are not served for a moment: brokers load some thousands of them a minute."""

MAX_NAMED = 3
"""Steps that a reason names one by one."""

TWICE = 2
"""Snapshots in a row that have to show a finding to be more than one look."""


def risk_of(plan: Plan, batch: Batch) -> BatchRisk:
    """Risk of a batch of a plan, whichever of its steps stay ticked."""
    losing = [step for step in batch.steps if _loses(step)]
    reasons = [
        *_lost(losing),
        *_final(batch.steps),
        *_warned_of(batch.steps),
        *_touched(batch),
        *_unsure(plan, batch, loses=bool(losing)),
    ]
    calm = RiskReason(Risk.LOW, "nothing is lost, and every step can be undone")
    return BatchRisk(tuple(sorted(reasons, key=lambda reason: -reason.level.rank)) or (calm,))


def _loses(step: Step) -> bool:
    return kind_of(step.change).loses_messages or isinstance(step.loss, Loss)


def _lost(losing: Sequence[Step]) -> Iterator[RiskReason]:
    if not losing:
        return
    losses = [step.loss for step in losing if isinstance(step.loss, Loss)]
    if messages := sum(loss.messages or 0 for loss in losses):
        unread = counted(messages, "message that nobody has read is", "messages that nobody has read are")
        most = "up to " if any(loss.has_room for loss in losses) else ""
        yield RiskReason(Risk.CRITICAL, f"{most}{unread} deleted at once")
    if stored := sum(loss.bytes for loss in losses):
        yield RiskReason(Risk.HIGH, f"up to {bytes_in_words(stored)} of stored messages are deleted at once")
    yield RiskReason(Risk.HIGH, f"brokers may delete messages for {_named(losing)}, which do not come back")


def _final(steps: Sequence[Step]) -> Iterator[RiskReason]:
    if final := [step for step in steps if step.undo is None or not kind_of(step.change).undoable]:
        yield RiskReason(Risk.MEDIUM, f"{_named(final)} cannot be undone")


def _warned_of(steps: Sequence[Step]) -> Iterator[RiskReason]:
    """Warnings of changes that lose nothing, such as a quota that stops producers."""
    warned: dict[str, list[Step]] = {}
    for step in steps:
        warning = None if _loses(step) else kind_of(step.change).warning(None)
        if warning is not None:
            warned.setdefault(warning.headline, []).append(step)
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
    """Share of the brokers that take part, where the batch says which there are."""
    bundles = [bundle for step in batch.steps if (bundle := kind_of(step.change).disturbs) is not None]
    involved = {broker for bundle in bundles for broker in (bundle.owner_before, bundle.owner_after)}
    listed = {place.broker for place in batch.before} | {place.broker for place in batch.after}
    if not involved or not listed:
        return
    some = len(involved & listed)
    level = Risk.MEDIUM if 2 * some >= len(listed) else Risk.LOW
    yield RiskReason(level, f"brokers that take part: {some:,} of {len(listed):,}")


def _unsure(plan: Plan, batch: Batch, *, loses: bool) -> Iterator[RiskReason]:
    """Evidence that is thin: what would lose messages on it is critical."""
    if batch.is_rollback:
        return  # a person asked for it, not a finding
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
