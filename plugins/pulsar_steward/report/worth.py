"""Worth of a batch in words: in a few for the list of what waits, in sentences for its question and its page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.model.units import counted, seconds_in_words
from pulsar_steward.model.worth import worth_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pulsar_steward.model.plan import Batch

TOWARDS_QUOTAS = "backlog_quota"
"""Kind of batches about quotas, of which a reader expects to hear when one is reached."""


def worth_in_brief(batch: Batch) -> str:
    """Worth of a batch in a few words, such as ``1 critical, quota in 1.9 h``; empty where nothing is known."""
    worth = worth_of(batch)
    left = worth.seconds_to_quota
    parts = (
        f"{worth.critical:,} critical" if worth.critical else "",
        counted(worth.warnings, "warning") if worth.warnings else "",
        "" if left is None else _quota_in_brief(left),
    )
    return ", ".join(filter(None, parts))


def worth_in_words(batch: Batch) -> Iterator[str]:
    """Sentences on what a batch mends; of a rollback none, as that is for who asked for it to say."""
    if batch.is_rollback:
        return
    worth, found = worth_of(batch), []
    if worth.critical:
        found.append(counted(worth.critical, "critical finding"))
    if worth.warnings:
        found.append(counted(worth.warnings, "warning"))
    yield f"It answers {' and '.join(found)}." if found else "How grave what it answers is, is not known."
    if worth.seconds_to_quota is not None:
        yield _quota_in_words(worth.seconds_to_quota)
    elif batch.kind == TOWARDS_QUOTAS:
        yield "When a topic would reach its quota is not known: none was seen to keep growing towards one."
    if worth.spread_before is not None and worth.spread_after is not None:
        before, after = (_range([place.count for place in each]) for each in (batch.before, batch.after))
        yield f"{batch.unit.capitalize() or 'What it balances'} by broker: {before} now, {after} after all steps."
    if worth.kept_messages is not None:
        yield f"It keeps {counted(worth.kept_messages, 'message')} that nobody has read from being deleted."


def _quota_in_brief(left: int) -> str:
    return f"quota in {seconds_in_words(left, rounded=True)}" if left > 0 else "quota reached"


def _quota_in_words(left: int) -> str:
    if left <= 0:
        return "A topic had reached its quota when the snapshot was taken."
    after = seconds_in_words(left, rounded=True)
    return f"As fast as it grew, the first topic reaches its quota {after} after the snapshot."


def _range(counts: list[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
