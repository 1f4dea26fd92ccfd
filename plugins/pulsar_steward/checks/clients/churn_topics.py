"""Larger topics whose clients are mostly new, compared with earlier snapshots."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from pulsar_steward.checks.clients.churn_brokers import COUNTED, YOUNG_SECONDS
from pulsar_steward.checks.clients.in_a_row import each_since
from pulsar_steward.model.finding import Finding, Severity

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Row
    from pulsar_steward.checks.clients.in_a_row import EarlierRows

MAX_TOPICS = 1000
"""Number of topics that are examined, those with most new clients first."""

# Only an older client proves that the topic was not just loaded, which makes all clients new.
NEW_CLIENTS = f"""
with counted as ({COUNTED}),
large as (
    select topic, broker, coalesce(producers, 0) + coalesce(consumers, 0) as clients,
        coalesce(producers_connected_recently, 0) as new_producers
    from user_topics anti join (from counted where uptime_seconds < {YOUNG_SECONDS}) using (broker)
    where clients >= $minimum_clients),
new_consumers as (
    select topic, sum(consumers_connected_recently)::bigint as new_consumers
    from subscriptions semi join large using (topic) where consumers_connected_recently > 0 group by topic)
select topic, broker, clients, new_producers + coalesce(new_consumers, 0) as recent, recent < clients as settled,
    case when not settled then 0 when recent >= $critical_recent_clients then 2 else 1 end as rank
from large left join new_consumers using (topic)
where recent * 100 >= clients * $warning_recent_percent
"""

MOST_FIRST = "rank desc, recent desc, topic"

# Of equal ones, the last by name; null where no consumer is new.
BUSIEST = """
with busiest as (
    select topic, list(subscription order by consumers_connected_recently desc, subscription desc)[1] as busiest
    from subscriptions semi join worst using (topic) where consumers_connected_recently > 0 group by topic)
select worst.*, busiest from worst left join busiest using (topic)
"""

BEFORE = """
with new_consumers as (
    select topic, sum(consumers_connected_recently)::bigint as new_consumers
    from raw_subscriptions semi join new_clients using (topic) where consumers_connected_recently > 0 group by topic)
select topic, broker, coalesce(producers, 0) + coalesce(consumers, 0) as clients,
    coalesce(producers_connected_recently, 0) + coalesce(new_consumers, 0) as recent,
    recent * 100 >= clients * $warning_recent_percent as mostly_new
from raw_topics semi join new_clients using (topic) left join new_consumers using (topic)
"""
"""The same topics in an earlier snapshot."""


@dataclass(frozen=True)
class NewClients:
    """A topic whose clients are mostly new.

    Attributes:
        row: A row of `NEW_CLIENTS`.
        recent_minutes: Minutes for which a client counts as new.
        before: Rows of earlier snapshots.
    """

    row: Row
    recent_minutes: int
    before: EarlierRows

    @cached_property
    def earlier(self) -> list[Row | None]:
        """Rows of snapshots old enough to have had other new clients, the newest first; None: topic not there."""
        until = self.before.taken_at - timedelta(minutes=self.recent_minutes)
        return [row for _, row in self.before.told(self.row, until)]

    @cached_property
    def alike(self) -> list[Row]:
        """Consecutive ones of these with mostly new clients on the same broker, the newest first."""
        until = self.before.taken_at - timedelta(minutes=self.recent_minutes)
        return self.before.in_a_row(self.row, _mostly_new, until)

    @property
    def severity(self) -> Severity | None:
        """Severity by the number of new clients and the earlier snapshots; None: the topic itself is new."""
        rank = int(self.row["rank"])
        if not self.row["settled"]:
            if self.before.keep_on(self.alike, 2 * self.recent_minutes):
                return Severity.WARNING
            return None if self.earlier and not any(self.earlier) else Severity.INFO
        if rank == Severity.WARNING.rank and self.earlier and not self.alike:
            return Severity.INFO
        return tuple(Severity)[rank]

    def finding(self, check_id: str) -> Finding | None:
        """Finding, or None."""
        row, severity = self.row, self.severity
        if severity is None:
            return None
        most = f", most of the consumers in subscription {row['busiest']}" if row["busiest"] is not None else ""
        return Finding(
            check_id=check_id,
            severity=severity,
            subject=row["topic"],
            evidence=(
                f"{row['recent']:,} of the {row['clients']:,} clients of {row['topic']} on {row['broker']} connected in"
                f" the last {self.recent_minutes} min{most}; {self._explained}."
            ),
            figures={"clients": row["clients"], "clients_connected_recently": row["recent"]},
        )

    @property
    def _explained(self) -> str:
        """Other possible explanations."""
        if self.alike:
            return f"most of its clients were new {each_since(self.alike)} too, so they come and go"
        latest = next(iter(self.earlier), None)
        calm = "" if latest is None else f", and {latest['recent']:,} of {latest['clients']:,} were new before"
        if self.row["settled"]:
            return f"others are older, so it was not just loaded{calm}; a deployment would look the same"
        return f"none is older, as when it was just loaded or moved{calm}"


def _mostly_new(newer: Row, older: Row) -> bool:
    return bool(older["mostly_new"]) and older["clients"] > 0 and older["broker"] == newer["broker"]
