"""Clients that come and go: topics whose clients are mostly new, and brokers whose connections do not last.

One snapshot cannot tell a deployment from clients that reconnect for ever: that a finding stands in the next one does.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pydantic import Field

from pulsar_steward.checks.check import MAX_FINDINGS, Check, Judgement, Question
from pulsar_steward.checks.unread import BROKERS_READ, nothing_read
from pulsar_steward.checks.views import STARTED
from pulsar_steward.checks.words import duration, named
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.section import Section

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Answer, Answers, CheckContext, Row


class ConnectionChurnPolicy(Section):
    """When clients come and go too often."""

    minimum_clients: int = Field(100, ge=1, description="producers and consumers of a topic; with fewer it is left")
    warning_recent_percent: int = Field(
        50, ge=1, le=100, description="clients of a topic that connected within `collect.recent_minutes`"
    )
    critical_recent_clients: int = Field(
        5000, ge=1, description="as many of them on one topic; half of the largest fan-out known (knowledge.md C)"
    )
    warning_turnovers_per_hour: int = Field(
        1, ge=1, description="how often a broker's connections were replaced as a whole; healthy ones live for days"
    )
    minimum_replaced_per_minute: int = Field(
        60, ge=1, description="connections of a broker; fewer are command-line tools and short jobs"
    )


ACTIVE = "pulsar_active_connections"
SUCCEEDED = "pulsar_connection_create_success_count"
FAILED = "pulsar_connection_create_fail_count"

SERIES = (STARTED, ACTIVE, SUCCEEDED)
"""Without these nothing can be said of a broker's connections."""

YOUNG_SECONDS = "2 * 60 * $collect__recent_minutes"
"""For so long after a broker's start clients are naturally new."""

# Handshakes are counted, not sockets: probes of the port open sockets all the time and shake no hands.
COUNTED = f"""
select source as broker, $now - max(value) filter (series = '{STARTED}') as uptime_seconds,
    max(value) filter (series = '{ACTIVE}') as active, max(value) filter (series = '{SUCCEEDED}') as succeeded,
    coalesce(max(value) filter (series = '{FAILED}'), 0.0) as failed
from metrics
where source_kind = 'broker' and series in {(*SERIES, FAILED)} and isfinite(value)
group by source
"""

# Only where some client is older it is sure that the topic was not just loaded, which makes all of them new.
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

# Of equals, the last by name; null where no consumer is new.
BUSIEST = """
with busiest as (
    select topic, list(subscription order by consumers_connected_recently desc, subscription desc)[1] as busiest
    from subscriptions semi join worst using (topic) where consumers_connected_recently > 0 group by topic)
select worst.*, busiest from worst left join busiest using (topic)
"""

CONNECTIONS = """
select broker, uptime_seconds, active, failed, succeeded,
    case when active is not null and succeeded is not null then greatest(succeeded - active, 0.0) end as replaced,
    replaced * 60 / nullif(uptime_seconds, 0.0) as replaced_per_minute,
    replaced * 3600 / nullif(uptime_seconds, 0.0) / greatest(active, 1.0) as turnovers_per_hour
from brokers left join counted using (broker) where read
"""
"""Of every broker that was read what it tells of its connections, and how many of them since its start are no longer
there; null where it does not."""

SHORT_LIVED = f"""
from connections
where turnovers_per_hour >= $warning_turnovers_per_hour and replaced_per_minute >= $minimum_replaced_per_minute
    and uptime_seconds >= {YOUNG_SECONDS}
"""

SILENT = """
select broker from connections where uptime_seconds is null or active is null or succeeded is null
"""


def judge(answers: Answers, context: CheckContext[ConnectionChurnPolicy]) -> Judgement:
    """Brokers and topics share the room, the worst severity first."""
    topics, brokers = answers["new_clients"], answers["short_lived"]
    of_topic = partial(_of_topic, recent_minutes=context.policy.collect.recent_minutes)
    found = [*map(_of_broker, brokers.rows), *map(of_topic, topics.rows)]
    found.sort(key=lambda finding: -finding.severity.rank)
    return Judgement(
        findings=tuple(found[:MAX_FINDINGS]),
        more=brokers.more + topics.more + max(0, len(found) - MAX_FINDINGS),
        quiet="Clients stay: on no larger topic are most of them new, and no broker's connections are short.",
        cannot_tell=None if found else nothing_read(answers["read"]) or _missing(answers["silent"]),
    )


def _missing(silent: Answer) -> str | None:
    if not silent.rows:
        return None
    names = named([row["broker"] for row in silent.rows])
    return f"On no larger topic are most clients new; but {', '.join(SERIES)} are not in the snapshot for {names}."


def _of_topic(row: Row, recent_minutes: int) -> Finding:
    share = f"{row['recent']:,} of the {row['clients']:,} clients of {row['topic']} on {row['broker']}"
    most = f", most of the consumers in subscription {row['busiest']}" if row["busiest"] is not None else ""
    doubt = (
        "others are older, so it was not just loaded; a deployment would look the same"
        if row["settled"]
        else "none is older, as when it was just loaded or moved"
    )
    return Finding(
        check_id=CHECK.check_id,
        severity=tuple(Severity)[row["rank"]],
        subject=row["topic"],
        evidence=f"{share} connected in the last {recent_minutes} min{most}; {doubt}.",
        figures={"clients": row["clients"], "clients_connected_recently": row["recent"]},
    )


def _of_broker(row: Row) -> Finding:
    failed = f"; {row['failed']:,.0f} handshakes failed" if row["failed"] else ""
    return Finding(
        check_id=CHECK.check_id,
        severity=Severity.WARNING,
        subject=row["broker"],
        evidence=(
            f"Broker {row['broker']} has {row['active']:,.0f} connections, and {row['replaced']:,.0f} others came and"
            f" went in the {duration(row['uptime_seconds'])} since it started: {row['replaced_per_minute']:,.0f} a"
            f" minute, all of them {row['turnovers_per_hour']:,.1f} times an hour{failed}."
        ),
        figures={
            "connections_active": int(row["active"]),
            "connections_failed": int(row["failed"]),
            "connections_replaced": int(row["replaced"]),
            "uptime_seconds": int(row["uptime_seconds"]),
        },
    )


CHECK = Check(
    check_id="connection-churn",
    order=70,
    title="Clients connect anew again and again",
    advice=(
        "See whether a deployment or a bundle move explains it; then it is gone in the next snapshot.",
        "Look at the clients first: CPU that is used up, containers that restart, one client made for each message.",
        "Look at the broker next: stuck IO threads drop clients that they do not hear (check io-threads-stuck).",
        "Renew old SDKs: Java 2.6.2 makes consumers anew after partitions were added; old Go ones drop needlessly.",
    ),
    source="docs/knowledge.md C; docs/checks/connection-churn.md",
    policy=ConnectionChurnPolicy,
    shards={
        "counted": Question(COUNTED),
        "new_clients": Question(NEW_CLIENTS, worst_first="rank desc, recent desc, topic", detail=BUSIEST),
    },
    cluster={
        "read": BROKERS_READ,
        "connections": Question(CONNECTIONS),
        "short_lived": Question(SHORT_LIVED, worst_first="turnovers_per_hour desc, broker"),
        "silent": Question(SILENT),
    },
    judge=judge,
)
