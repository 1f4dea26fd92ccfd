"""Time for which nobody has been connected to a subscription, from earlier snapshots and what was found in them.

A diagnosis reads a few hours of snapshots; what it found of them holds the beginning, and the next one goes on from
there. So days are counted without reading days of snapshots.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from pydantic import Field

from pulsar_steward.model.finding import Severity
from pulsar_steward.model.section import Section

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulsar_steward.checks.check import Row
    from pulsar_steward.checks.earlier import EarlierRows


class SubscriptionAbandonedPolicy(Section):
    """Thresholds for subscriptions without consumers."""

    warning_hours: int = Field(
        192, ge=1, description="without a consumer: eight days, so that no weekly job looks abandoned"
    )
    information_minutes: int = Field(
        60, ge=1, description="the same; from then on it is told, and the next diagnosis goes on counting from there"
    )
    minimum_entries: int = Field(1000, ge=1, description="of backlog; below it a subscription costs next to nothing")
    window_minutes: int = Field(
        1560, ge=1, description="how old the snapshot before may be; further apart, absence in between is not proved"
    )


MAX_ROWS = 1000
"""Most subscriptions that are looked up in earlier snapshots, those with most entries first."""

# A time to live clears what nobody consumes, and so do those of single topics, which only what expires shows.
WITHOUT_CONSUMERS = """
with moved as (
    select topic, subscription, max(greatest(last_consumed_milliseconds, last_acked_milliseconds)) as moved_milliseconds
    from drilled where subscription is not null group by topic, subscription)
select s.topic, s.subscription, s.namespace, s.broker, s.backlog_entries, t.backlog_bytes,
    coalesce(t.subscriptions, 1) as subscriptions, p.ttl_seconds is null as ttl_unknown, moved_milliseconds
from user_subscriptions s join limits l on l.namespace = s.namespace join topics t on t.topic = s.topic
    left join namespace_policies p on p.namespace = s.namespace
    left join moved on moved.topic = s.topic and moved.subscription = s.subscription
where s.consumers = 0 and s.backlog_entries >= l.minimum_entries and coalesce(s.expired_rate, 0) <= 0
    and coalesce(p.ttl_seconds, 0) <= 0
"""

MOST_FIRST = "backlog_entries desc, topic, subscription"

BEFORE = """
select topic, subscription, consumers, coalesce(backlog_entries, 0) as backlog_entries,
    coalesce(expired_rate, 0) as expired_rate
from raw_subscriptions semi join alone using (topic, subscription)
"""
"""The same subscriptions in an earlier snapshot."""

FOUND_BEFORE = """
select subject, try_cast(figures_json->>'since_epoch_seconds' as bigint) as since_epoch_seconds,
    try_cast(figures_json->>'entries_then' as bigint) as entries_then,
    try_cast(figures_json->>'beginning_seen' as bigint) = 1 as beginning_seen
from findings where check_id = 'subscription-abandoned'
"""
"""Findings about subscriptions in an earlier snapshot."""


@dataclass(frozen=True)
class Absence:
    """A subscription without consumers.

    Attributes:
        row: Its row of this snapshot.
        subject: Its name in findings.
        severity: Its severity.
        since: Time of the first of the snapshots in a row in which it had none.
        seconds: How long that is before this snapshot.
        entries_then: Its backlog at that time.
        beginning_seen: True if the snapshot before that one shows that it had a consumer, or was not there.
    """

    row: Row
    subject: str
    severity: Severity
    since: datetime
    seconds: int
    entries_then: int
    beginning_seen: bool

    @classmethod
    def of(
        cls,
        row: Row,
        subject: str,
        limits: SubscriptionAbandonedPolicy,
        before: EarlierRows,
        found_before: Mapping[tuple[datetime, str], Row],
    ) -> Absence | None:
        """Absence that lasts long enough to be told; None: it does not, or what waits did not grow.

        Args:
            row: A row of `WITHOUT_CONSUMERS`.
            subject: The subscription's name in findings.
            limits: The limits in force for it.
            before: Rows of `BEFORE`.
            found_before: Rows of `FOUND_BEFORE`, by the time of the snapshot and the subject.
        """
        alike = before.in_a_row(row, _without_consumer)
        if not alike:
            return None
        known = next((found for each in alike if (found := found_before.get((each["taken_at"], subject)))), None)
        if known is not None and known["since_epoch_seconds"] is not None:
            since = datetime.fromtimestamp(known["since_epoch_seconds"], UTC)
            entries_then, seen = int(known["entries_then"]), bool(known["beginning_seen"])
        else:
            since, entries_then = alike[-1]["taken_at"], int(alike[-1]["backlog_entries"])
            seen = len(alike) < sum(1 for _ in before.told(row))
        seconds = before.seconds_since(since)
        moved = row["moved_milliseconds"] or 0
        if seconds < 60 * limits.information_minutes or row["backlog_entries"] <= entries_then:
            return None
        if moved > since.timestamp() * 1000:
            return None  # somebody came and consumed between two snapshots
        days = timedelta(seconds=seconds) >= timedelta(hours=limits.warning_hours)
        severity = Severity.WARNING if days and not row["ttl_unknown"] else Severity.INFO
        return cls(row, subject, severity, since, seconds, entries_then, seen)

    @property
    def figures(self) -> dict[str, int]:
        """Its figures, from which the next diagnosis goes on."""
        return {
            "beginning_seen": int(self.beginning_seen),
            "entries": self.row["backlog_entries"],
            "entries_then": self.entries_then,
            "since_epoch_seconds": int(self.since.timestamp()),
            "without_consumer_seconds": self.seconds,
        }


def _without_consumer(newer: Row, older: Row) -> bool:
    """True if an earlier snapshot shows nobody either, and nothing took from the backlog since."""
    fell = newer["backlog_entries"] < older["backlog_entries"]
    return older["consumers"] == 0 and not fell and older["expired_rate"] <= 0
