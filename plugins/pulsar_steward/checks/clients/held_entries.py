"""Cursors held back by one message: nearly all that follows is acknowledged, and none of it can be deleted."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pydantic import Field

from pulsar_steward.checks.clients.consumers import slowest_words, subject_of
from pulsar_steward.checks.earlier import each_since
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.section import Section
from pulsar_steward.model.units import counted

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Row
    from pulsar_steward.checks.earlier import EarlierRows


class AckHolesPolicy(Section):
    """Thresholds for ack holes, as a share of what a broker persists; above that they are always critical."""

    warning_percent: int = Field(
        50, ge=1, le=100, description="ack holes of `managedLedgerMaxUnackedRangesToPersist`: time to act is left"
    )
    warning_held_entries: int = Field(
        1_000_000,
        ge=1,
        description="entries from the first that is not acknowledged to what is read next, nine in ten acknowledged",
    )
    warning_held_minutes: int = Field(
        60, ge=1, description="for which they became no fewer in any snapshot; shorter: information"
    )


MAX_SUBSCRIPTIONS = 1000
"""Number of subscriptions that are examined, those with most entries first."""

ACKNOWLEDGED_SHARE = 10
"""Of so many entries at most one may be unacknowledged; in a backlog that is only long, nearly all are."""

# A delayed message holds as much, and is left to the check for that.
HELD = f"""
with spans as (
    select topic, subscription, s.namespace, broker, consumers, ack_holes, backlog_entries,
        entries_since_first_gap as entries
    from user_subscriptions s join limits using (namespace)
    where entries_since_first_gap >= warning_held_entries and ack_holes > 0
        and backlog_entries <= entries_since_first_gap // {ACKNOWLEDGED_SHARE}),
delayed as (
    select topic, subscription from clients_delayed told join spans using (topic, subscription)
    where told.messages > 0 and (told_by is null or told_by = broker))
select * from spans anti join delayed using (topic, subscription)
"""

MOST_FIRST = "entries desc, topic, subscription"

BEFORE = """
select topic, subscription, max(entries_since_first_gap) as entries
from raw_subscriptions semi join held using (topic, subscription) group by topic, subscription
"""
"""The same subscriptions in an earlier snapshot."""


@dataclass(frozen=True)
class HeldEntries:
    """A cursor that a message holds back.

    Attributes:
        row: A row of `HELD`.
        limits: The limits in force for it.
        before: Rows of earlier snapshots.
    """

    row: Row
    limits: AckHolesPolicy
    before: EarlierRows

    @cached_property
    def alike(self) -> list[Row]:
        """Consecutive earlier snapshots in which the first entry may have been the same, the newest first."""
        return self.before.in_a_row(self.row, _no_fewer)

    @property
    def severity(self) -> Severity | None:
        """Severity by duration; None: there were more entries a short while ago, so the first one is another by now."""
        if not self.alike:
            return Severity.INFO if next(self.before.told(self.row), None) is None else None
        long = self.before.lasted_seconds(self.alike) >= 60 * self.limits.warning_held_minutes
        return Severity.WARNING if long else Severity.INFO

    def finding(self, check_id: str) -> Finding | None:
        """Finding, or None."""
        row, severity = self.row, self.severity
        if severity is None:
            return None
        holes = counted(row["ack_holes"], "ack hole")
        return Finding(
            check_id=check_id,
            severity=severity,
            subject=subject_of(row),
            evidence=(
                f"{counted(row['entries'], 'entry', 'entries')} of {row['topic']}"
                f" {'follows' if row['entries'] == 1 else 'follow'} the first one that subscription"
                f" {row['subscription']} has not acknowledged, and only {row['backlog_entries']:,} of them wait"
                f" ({holes}): what nobody acknowledges holds the cursor back, and no ledger from"
                f" there on is deleted ({self._since}); {slowest_words(row)}."
            ),
            figures={
                "ack_holes": row["ack_holes"],
                "backlog_entries": row["backlog_entries"],
                "entries_since_first_gap": row["entries"],
            },
        )

    @property
    def _since(self) -> str:
        if not self.alike:
            return "since when is not known; a message that takes long, or waits for its time, would look the same"
        return (
            f"{self.row['entries'] - self.alike[-1]['entries']:,} more by now; it was so {each_since(self.alike)} too"
        )


def _no_fewer(newer: Row, older: Row) -> bool:
    return bool(older["entries"] is not None and 0 < older["entries"] <= newer["entries"])
