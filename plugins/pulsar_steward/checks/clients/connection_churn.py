"""Clients that come and go: topics and namespaces with mostly new clients, and brokers with short connections.

One snapshot cannot tell a deployment from clients that reconnect for ever; earlier snapshots can.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pulsar_steward.checks.check import BROKERS_READ, Check, Judgement, Query, brokers_of, nothing_read
from pulsar_steward.checks.clients import churn_brokers
from pulsar_steward.checks.clients.churn_brokers import ACTIVE, COUNTED, FAILED, SERIES, SUCCEEDED, YOUNG_SECONDS
from pulsar_steward.checks.clients.consumers import named_subscription, subject_of
from pulsar_steward.checks.delayed.waiting import BUCKET_TRACKER, TRACKER
from pulsar_steward.checks.earlier import EarlierRows, each_since, looking_back, window_minutes
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.section import Section, number, percent
from pulsar_steward.model.trouble import Harm
from pulsar_steward.model.units import counted, named

if TYPE_CHECKING:
    from datetime import datetime

    from pulsar_steward.checks.check import CheckContext, Queried, Row
    from pulsar_steward.model.finding import Finding


MAX_TOPICS = 1000
"""Number of larger topics that are examined, the ones with most new clients first."""

_OLD_TOPICS = f"user_topics anti join (from counted where uptime_seconds < {YOUNG_SECONDS}) using (broker)"
"""SQL for topics, without the topics of brokers that just started."""


# Queries of earlier snapshots name no views: a named view would be computed for a whole snapshot.
def _clients_of(topics: str, subscriptions: str) -> str:
    """SQL for topics with the number of their clients and of new ones; a condition in `topics` may use `clients`."""
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


# An older client proves that the topic was not just loaded. Loading makes all clients new.
NEW_CLIENTS = f"""
with counted as ({COUNTED}),
large as ({_clients_of(f"{_OLD_TOPICS} where clients >= $minimum_clients", "subscriptions")})
select topic, broker, clients, recent, recent < clients as settled,
    case when not settled then 0 when recent >= $critical_recent_clients then 2 else 1 end as rank
from large where recent * 100 >= clients * $warning_recent_percent
"""
"""Larger topics with mostly new clients."""

MOST_FIRST = "rank desc, recent desc, topic"

# At a tie, the last by name; null if no consumer is new.
BUSIEST = """
with busiest as (
    select topic, list(subscription order by consumers_connected_recently desc, subscription desc)[1] as busiest
    from subscriptions semi join worst using (topic) where consumers_connected_recently > 0 group by topic)
select worst.*, busiest from worst left join busiest using (topic)
"""

NEW_CLIENTS_BEFORE = f"""
select *, recent * 100 >= clients * $warning_recent_percent as mostly_new
from ({_clients_of("raw_topics semi join new_clients using (topic)", "raw_subscriptions")})
"""
"""The same topics in an earlier snapshot."""


def _of_small_topics(topics: str, subscriptions: str) -> str:
    """SQL for small topics: clients and new clients by namespace, without readers and Pulsar's own clients."""
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
"""Namespaces with many clients on small topics, most of them new."""

_EARLIER_TOPICS = "(select * from raw_topics semi join crowded using (namespace) where of_users(topic))"

_EARLIER_SUBSCRIPTIONS = """(
    select topic, consumers_connected_recently from raw_subscriptions
    where consumers_connected_recently > 0 and not starts_with(subscription, '__') and not is_reader(subscription))"""

SMALL_TOPICS_BEFORE = f"""
with crowded as (select namespace from ({CROWDS})), {_of_small_topics(_EARLIER_TOPICS, _EARLIER_SUBSCRIPTIONS)}
"""
"""The same namespaces in a shard of an earlier snapshot."""

CROWDS_BEFORE = f"{_SUMS}, taken_at from in_small_before group by namespace, taken_at"


# A tracker that holds its index in memory forgets it with the last consumer; the next one has all of the backlog read
# again (apache/pulsar#23912). The bucket tracker keeps it.
READ_AGAIN = f"""
with connected as (
    select topic, subscription, count(*) as named, min(epoch(try_cast(connected_since as timestamptz))) as first
    from clients group by topic, subscription),
waiting as (
    select topic, subscription, max(told.messages) as delayed
    from clients_delayed told join user_subscriptions s using (topic, subscription)
    where told_by is null or told_by = s.broker group by topic, subscription)
select topic, subscription, s.type, s.broker, s.consumers, s.backlog_entries, delayed,
    if(named >= s.consumers, first, null) as first
from user_subscriptions s join waiting using (topic, subscription) left join connected using (topic, subscription)
where delayed > 0 and s.backlog_entries >= $minimum_entries_read_again
    and s.consumers > 0 and s.consumers_connected_recently >= s.consumers
    and s.broker not in (select broker from setting('{TRACKER}') where value = '{BUCKET_TRACKER}')
"""

READ_AGAIN_BEFORE = """
select topic, broker, subscription, s.consumers,
    s.consumers > 0 and s.consumers_connected_recently >= s.consumers as anew
from raw_subscriptions s semi join read_again using (topic, subscription) join raw_topics using (topic)
"""

# Consumers that all connected after a snapshot with other new ones, on the same broker: a deployment does that once.
AGAIN = """
with looks as (
    select topic, subscription, count_if(before.consumers = 0) as gone,
        count_if(before.anew and now.first > epoch(taken_at)) as anew
    from read_again now join read_again_before before using (topic, broker, subscription)
    group by topic, subscription)
select * from read_again join looks using (topic, subscription) where anew > 0 and anew + gone > 1
"""


@dataclass(frozen=True)
class _NewClients:
    """A topic or namespace with mostly new clients; a client counts as new for `recent_minutes`."""

    row: Row
    recent_minutes: int
    before: EarlierRows

    @staticmethod
    def _same(_newer: Row, older: Row, /) -> bool:
        """True if most clients were new in the older snapshot too."""
        return bool(older["mostly_new"])

    @property
    def _until(self) -> datetime:
        """Time of the last snapshot whose new clients were other clients than now."""
        return self.before.ago(self.recent_minutes)

    @cached_property
    def alike(self) -> list[Row]:
        """Consecutive earlier snapshots with mostly new clients, which are other clients than now; the newest first."""
        return self.before.in_a_row(self.row, self._same, self._until)

    @property
    def _come_and_go(self) -> bool:
        """True if neither a deployment nor a move explains it."""
        return self.before.keep_on(self.alike, 2 * self.recent_minutes)


@dataclass(frozen=True)
class NewClientsOfTopic(_NewClients):
    """A larger topic with mostly new clients, a row of `NEW_CLIENTS`."""

    @staticmethod
    def _same(newer: Row, older: Row, /) -> bool:
        return bool(older["mostly_new"]) and older["clients"] > 0 and older["broker"] == newer["broker"]

    @cached_property
    def earlier(self) -> list[Row | None]:
        """Rows of snapshots old enough to have had other new clients, the newest first; None: the topic was absent."""
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

    def finding(self) -> Finding | None:
        """Finding, or None."""
        row, severity = self.row, self.severity
        if severity is None:
            return None
        most = f", most of the consumers in subscription {row['busiest']}" if row["busiest"] is not None else ""
        return CHECK.finding(
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
    """A namespace with many clients on small topics, most of them new, a row of `CROWDS`."""

    @property
    def severity(self) -> Severity | None:
        """Severity by the earlier snapshots; None: they were different, as after a deployment or a move."""
        if self._come_and_go:
            return Severity.WARNING
        seen = next(self.before.told(self.row, self._until), None) is not None
        return Severity.INFO if self.alike or not seen else None

    def finding(self, small: int) -> Finding | None:
        """Finding, or None; only topics with fewer than `small` clients are counted."""
        row, severity = self.row, self.severity
        if severity is None:
            return None
        explained = (
            f"it was so {each_since(self.alike)} too" if self.alike else "a deployment or a move would look the same"
        )
        return CHECK.finding(
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


__all__ = ["ACTIVE", "CHECK", "FAILED", "SUCCEEDED", "ConnectionChurnPolicy"]


class ConnectionChurnPolicy(Section):
    """Thresholds for clients that connect again and again."""

    minimum_clients: int = number(100, "producers and consumers of a topic; with fewer it is left")
    warning_recent_percent: int = percent(50, "clients of a topic that connected within `collect.recent_minutes`")
    critical_recent_clients: int = number(
        5000, "as many of them on one topic; half of the largest fan-out known (knowledge.md C)"
    )
    warning_turnovers_per_hour: int = number(
        1, "how often a broker's connections were replaced as a whole; healthy ones live for days"
    )
    minimum_replaced_per_minute: int = number(
        60, "connections of a broker; fewer are command-line tools and short jobs"
    )
    warning_burst_turnovers: int = number(
        3,
        "how often a broker's connections were replaced as a whole since a snapshot of the window; a deployment"
        " replaces them once",
    )
    minimum_clients_of_namespace: int = number(
        1000, "on topics with fewer than `minimum_clients`, together; with fewer it is left"
    )
    minimum_entries_read_again: int = number(
        100_000, "of backlog that are read again, as an index of delayed messages was lost with the last consumer"
    )
    window_minutes: int = number(60, "earlier snapshots that are looked at")


def judge(queried: Queried, context: CheckContext[ConnectionChurnPolicy]) -> Judgement:
    """Findings about brokers, topics and namespaces in one list, the worst severity first."""
    recent_minutes, small = context.policy.collect.recent_minutes, context.limits.minimum_clients
    topics = EarlierRows.of(queried["topics_before"], context, window_minutes, "topic")
    crowds = EarlierRows.of(queried["crowds_before"], context, window_minutes, "namespace")
    every = [
        *(
            churn_brokers.of_broker(row, CHECK.check_id)
            for row in (*queried["bursts"].rows, *queried["short_lived"].rows)
        ),
        *(_read_again(row) for row in queried["again"].rows),
        *(NewClientsOfTopic(row, recent_minutes, topics).finding() for row in queried["new_clients"].rows),
        *(NewClientsOfNamespace(row, recent_minutes, crowds).finding(small) for row in queried["crowds"].rows),
    ]
    silent = named(brokers_of(queried["silent"]))
    untold = f"On no larger topic are most clients new; but {', '.join(SERIES)} are not in the snapshot for {silent}."
    return Judgement(
        findings=tuple(filter(None, every)),
        more=sum(queried[name].more for name in ("bursts", "short_lived", "again", "new_clients", "crowds")),
        quiet=(
            "Clients stay: on no larger topic and in no larger namespace do most of them come and go, and no broker's"
            " connections are short."
        ),
        cannot_tell=nothing_read(queried) or (untold if silent else None),
    )


def _read_again(row: Row) -> Finding:
    entries = counted(row["backlog_entries"], "entry", "entries")
    gone = f", and it had none in {counted(row['gone'], 'snapshot')} between" if row["gone"] else ""
    return CHECK.finding(
        severity=Severity.WARNING,
        subject=subject_of(row),
        evidence=(
            f"All consumers of {named_subscription(row)} on {row['broker']} were new in"
            f" {counted(row['anew'] + 1, 'snapshot')}, others each time{gone}. As the last one leaves, the broker"
            f" forgets its index of delayed messages, and reads all {entries} of the backlog from bookies again;"
            f" {row['delayed']:,} are indexed by now."
        ),
        figures={name: row[name] for name in ("backlog_entries", "consumers")} | {"delayed_messages": row["delayed"]},
    )


CHECK = Check(
    check_id="connection-churn",
    harm=Harm.SLOW,
    order=70,
    title="Clients connect anew again and again",
    advice=(
        "See whether a deployment or a bundle move explains it; then it is gone in the next snapshot.",
        "Look at the clients first: CPU that is used up, containers that restart, one client made for each message.",
        "Look at the broker next: stuck IO threads drop clients that they do not hear (check io-threads-stuck).",
        "Delayed messages in memory: end the restarts, keep two consumers connected, or use the bucket tracker.",
        "Renew old SDKs: Java 2.6.2 makes consumers anew after partitions were added; old Go ones drop needlessly.",
    ),
    source="docs/knowledge.md C; docs/checks/connection-churn.md",
    policy=ConnectionChurnPolicy,
    shards={
        "counted": Query(churn_brokers.COUNTED),
        "new_clients": Query(NEW_CLIENTS, worst_first=MOST_FIRST, most=MAX_TOPICS, detail=BUSIEST),
        "in_small": Query(SMALL_TOPICS),
        "read_again": Query(READ_AGAIN, worst_first="backlog_entries desc, topic, subscription", most=MAX_TOPICS),
    },
    earlier={
        "counted_before": looking_back(churn_brokers.COUNTED),
        "topics_before": looking_back(NEW_CLIENTS_BEFORE),
        "in_small_before": looking_back(SMALL_TOPICS_BEFORE),
        "read_again_before": looking_back(READ_AGAIN_BEFORE),
    },
    cluster={
        "read": BROKERS_READ,
        "connections": Query(churn_brokers.CONNECTIONS),
        "lately": Query(churn_brokers.LATELY),
        "bursts": Query(churn_brokers.BURSTS, worst_first="turnovers desc, broker"),
        "short_lived": Query(churn_brokers.SHORT_LIVED, worst_first="storming desc, turnovers_per_hour desc, broker"),
        "silent": Query(churn_brokers.SILENT),
        "crowds": Query(CROWDS, worst_first="recent desc, namespace"),
        "crowds_before": Query(CROWDS_BEFORE),
        "again": Query(AGAIN, worst_first="backlog_entries desc, topic, subscription"),
    },
    judge=judge,
)
