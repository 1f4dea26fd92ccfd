"""Topics, and namespaces of many small topics, whose clients are mostly new, compared with earlier snapshots."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pulsar_steward.checks.clients.churn_brokers import COUNTED, YOUNG_SECONDS
from pulsar_steward.checks.earlier import each_since
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.units import counted

if TYPE_CHECKING:
    from datetime import datetime

    from pulsar_steward.checks.check import Row
    from pulsar_steward.checks.earlier import EarlierRows

MAX_TOPICS = 1000
"""Number of larger topics that are examined, those with most new clients first."""

_OLD_TOPICS = f"user_topics anti join (from counted where uptime_seconds < {YOUNG_SECONDS}) using (broker)"
"""SQL for topics without those of brokers that just started."""


# Views are not named in what is asked of earlier snapshots: naming one would compute it for a whole snapshot.
def _of_topics(topics: str, subscriptions: str) -> str:
    """SQL for topics with the number of their clients and of new ones.

    Args:
        topics: What follows FROM to select the topics; a condition may be about `clients`.
        subscriptions: Table of their subscriptions.
    """
    return f"""
    with chosen as (
        select topic, broker, coalesce(producers, 0) + coalesce(consumers, 0) as clients,
            coalesce(producers_connected_recently, 0) as new_producers
        from {topics}),
    new_consumers as (
        select topic, sum(consumers_connected_recently)::bigint as new_consumers
        from {subscriptions} semi join chosen using (topic) where consumers_connected_recently > 0 group by topic)
    select topic, broker, clients, new_producers + coalesce(new_consumers, 0) as recent
    from chosen left join new_consumers using (topic)
    """


# Only an older client proves that the topic was not just loaded, which makes all clients new.
NEW_CLIENTS = f"""
with counted as ({COUNTED}),
large as ({_of_topics(f"{_OLD_TOPICS} where clients >= $minimum_clients", "subscriptions")})
select topic, broker, clients, recent, recent < clients as settled,
    case when not settled then 0 when recent >= $critical_recent_clients then 2 else 1 end as rank
from large where recent * 100 >= clients * $warning_recent_percent
"""
"""Larger topics, most of whose clients are new."""

MOST_FIRST = "rank desc, recent desc, topic"

# Of equal ones, the last by name; null where no consumer is new.
BUSIEST = """
with busiest as (
    select topic, list(subscription order by consumers_connected_recently desc, subscription desc)[1] as busiest
    from subscriptions semi join worst using (topic) where consumers_connected_recently > 0 group by topic)
select worst.*, busiest from worst left join busiest using (topic)
"""

NEW_CLIENTS_BEFORE = f"""
select *, recent * 100 >= clients * $warning_recent_percent as mostly_new
from ({_of_topics("raw_topics semi join new_clients using (topic)", "raw_subscriptions")})
"""
"""The same topics in an earlier snapshot."""


def _of_small_topics(topics: str, subscriptions: str) -> str:
    """SQL for small topics, their clients and new ones by namespace; readers and Pulsar's own clients are left out."""
    return f"""
    small as (
        select topic, namespace, coalesce(producers, 0) + coalesce(consumers, 0) as connected,
            coalesce(producers_connected_recently, 0) as new_producers
        from {topics} where connected > 0 and connected < $minimum_clients),
    by_topic as (
        select namespace, count(*) as small_topics, sum(connected)::bigint as connected,
            sum(new_producers)::bigint as new_producers
        from small group by namespace),
    by_subscription as (
        select small.namespace, sum(consumers_connected_recently)::bigint as new_consumers
        from {subscriptions} subscribed join small using (topic)
        where consumers_connected_recently > 0 group by small.namespace)
    select namespace, small_topics, connected, new_producers + coalesce(new_consumers, 0) as recent
    from by_topic left join by_subscription using (namespace)
    """


SMALL_TOPICS = f"""
with counted as ({COUNTED}), {_of_small_topics(f"({_OLD_TOPICS})", "user_subscriptions")}
where recent > 0
"""
"""Small topics by namespace."""

_SUMS = """
select namespace, sum(small_topics)::bigint as small_topics, sum(connected)::bigint as connected,
    sum(recent)::bigint as recent, sum(recent) * 100 >= sum(connected) * $warning_recent_percent as mostly_new
"""

CROWDS = f"""
{_SUMS} from in_small group by namespace having sum(connected) >= $minimum_clients_of_namespace and mostly_new
"""
"""Namespaces with many clients on small topics, most of which are new."""

_EARLIER_TOPICS = "(select * from raw_topics semi join crowded using (namespace) where of_users(topic))"

_EARLIER_SUBSCRIPTIONS = """(
    select topic, consumers_connected_recently from raw_subscriptions
    where consumers_connected_recently > 0 and not starts_with(subscription, '__') and not is_reader(subscription))"""

SMALL_TOPICS_BEFORE = f"""
with crowded as (select namespace from ({CROWDS})), {_of_small_topics(_EARLIER_TOPICS, _EARLIER_SUBSCRIPTIONS)}
"""
"""The same namespaces in a shard of an earlier snapshot."""

CROWDS_BEFORE = f"{_SUMS}, taken_at from in_small_before group by namespace, taken_at"


@dataclass(frozen=True)
class _NewClients:
    """A topic or namespace whose clients are mostly new.

    Attributes:
        row: A row of this snapshot.
        recent_minutes: Minutes for which a client counts as new.
        before: Rows of earlier snapshots.
    """

    row: Row
    recent_minutes: int
    before: EarlierRows

    @staticmethod
    def _same(_newer: Row, older: Row, /) -> bool:
        """True if most clients were new in the older snapshot too."""
        return bool(older["mostly_new"])

    @property
    def _until(self) -> datetime:
        """Time of the last snapshot that had other new clients than this one."""
        return self.before.ago(self.recent_minutes)

    @cached_property
    def alike(self) -> list[Row]:
        """Consecutive earlier snapshots in which most clients were new, and not the same as now, the newest first."""
        return self.before.in_a_row(self.row, self._same, self._until)

    @property
    def _come_and_go(self) -> bool:
        """True if neither a deployment nor a move explains it."""
        return self.before.keep_on(self.alike, 2 * self.recent_minutes)


@dataclass(frozen=True)
class NewClientsOfTopic(_NewClients):
    """A larger topic whose clients are mostly new, a row of `NEW_CLIENTS`."""

    @staticmethod
    def _same(newer: Row, older: Row, /) -> bool:
        return bool(older["mostly_new"]) and older["clients"] > 0 and older["broker"] == newer["broker"]

    @cached_property
    def earlier(self) -> list[Row | None]:
        """Rows of snapshots old enough to have had other new clients, the newest first; None: topic not there."""
        return [row for _, row in self.before.told(self.row, self._until)]

    @property
    def severity(self) -> Severity | None:
        """Severity by the number of new clients and the earlier snapshots; None: the topic itself is new."""
        rank = int(self.row["rank"])
        if not self.row["settled"]:
            if self._come_and_go:
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
                f"{row['recent']:,} of the {counted(row['clients'], 'client')} of {row['topic']} on {row['broker']}"
                f" connected in the last {self.recent_minutes} min{most}; {self._explained}."
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


@dataclass(frozen=True)
class NewClientsOfNamespace(_NewClients):
    """A namespace with many clients on small topics, most of which are new, a row of `CROWDS`."""

    @property
    def severity(self) -> Severity | None:
        """Severity by the earlier snapshots; None: they were different, as after a deployment or a move."""
        if self._come_and_go:
            return Severity.WARNING
        seen = next(self.before.told(self.row, self._until), None) is not None
        return Severity.INFO if self.alike or not seen else None

    def finding(self, check_id: str, small: int) -> Finding | None:
        """Finding, or None; topics with fewer clients than `small` are those that are counted."""
        row, severity = self.row, self.severity
        if severity is None:
            return None
        explained = (
            f"it was so {each_since(self.alike)} too" if self.alike else "a deployment or a move would look the same"
        )
        return Finding(
            check_id=check_id,
            severity=severity,
            subject=row["namespace"],
            evidence=(
                f"{row['recent']:,} of the {counted(row['connected'], 'client')} of"
                f" {counted(row['small_topics'], 'topic')} of {row['namespace']} that have fewer than {small:,} each"
                f" connected in the last {self.recent_minutes} min; {explained}."
            ),
            figures={
                "clients": row["connected"],
                "clients_connected_recently": row["recent"],
                "topics": row["small_topics"],
            },
        )
