"""Worth of a batch in words: brief for the list of waiting questions, in sentences for its question and its page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.changes.risk import comes_back
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.risk import worth_of
from pulsar_steward.model.units import counted, seconds_in_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pulsar_steward.model.plan import Batch

GRAVE = (Severity.CRITICAL, Severity.WARNING)

TOWARDS_QUOTAS = "backlog_quota"
"""Kind of batches about quotas; their worth has to mention the time until a quota is reached."""


def worth_in_brief(batch: Batch) -> str:
    """Worth of a batch in a few words, such as ``1 critical, quota in 1.9 h``; empty if nothing is known."""
    if batch.is_rollback:
        counts = ((severity, sum(each.severity is severity for each in batch.returning)) for severity in GRAVE)
        return ", ".join(f"{count:,} {severity} back" for severity, count in counts if count)
    worth = worth_of(batch)
    quota = ""
    if (left := worth.seconds_to_quota) is not None:
        quota = f"quota in {seconds_in_words(left, rounded=True)}" if left > 0 else "quota reached"
    least = "at least " if worth.more else ""
    parts = (
        f"{least}{worth.critical:,} critical" if worth.critical else "",
        counted(worth.warnings, "warning") if worth.warnings else "",
        quota,
    )
    return ", ".join(filter(None, parts))


def grave_findings(batch: Batch) -> str:
    """Number of critical findings and of warnings that a batch solves, in words; empty: it solves none."""
    worth = worth_of(batch)
    found = [counted(worth.critical, "critical finding")] if worth.critical else []
    found += [counted(worth.warnings, "warning")] if worth.warnings else []
    return f"{'at least ' if found and worth.more else ''}{' and '.join(found)}"


def worth_in_words(batch: Batch) -> Iterator[str]:
    """Sentences on the problems that a batch solves; for a rollback, on the problems that return."""
    if batch.is_rollback:
        if not batch.returning:
            yield "No finding is known to come back."
        yield from (f"{words}." for severity in GRAVE if (words := comes_back(batch, severity)))
        yield from _spread(batch)
        return
    worth, found = worth_of(batch), grave_findings(batch)
    yield f"It answers {found}." if found else "How grave what it answers is, is not known."
    if (left := worth.seconds_to_quota) is not None and left <= 0:
        yield "A topic had reached its quota when the snapshot was taken."
    elif left is not None:
        after = seconds_in_words(left, rounded=True)
        yield f"As fast as it grew, the first topic reaches its quota {after} after the snapshot."
    elif batch.kind == TOWARDS_QUOTAS:
        yield "When a topic would reach its quota is not known: none was seen to keep growing towards one."
    yield from _spread(batch)
    if worth.kept_messages is not None:
        kept = counted(worth.kept_messages, "entry", "entries")
        yield f"It keeps {kept} that nobody has read from being deleted, a batch of messages counted as one."


def levels(batch: Batch) -> list[tuple[str, int, int]]:
    """Each broker with its count of what the batch balances: now, and after all steps."""
    after = {place.broker: place.count for place in batch.after}
    return [(place.broker, place.count, after.get(place.broker, 0)) for place in batch.before]


def _spread(batch: Batch) -> Iterator[str]:
    """Placement before and after, if known."""
    before, after = (_range([place.count for place in each]) for each in (batch.before, batch.after))
    if before and after:
        yield f"{batch.unit.capitalize() or 'What it balances'} by broker: {before} now, {after} after all steps."


def _range(counts: list[int]) -> str:
    if not counts:
        return ""
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
