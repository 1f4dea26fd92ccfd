"""Clients by number and version: partitions with thousands of them, and versions that are old or have a known bug."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pulsar_steward.checks.check import (
    BROKERS_READ,
    MAX_FINDINGS,
    Check,
    Judgement,
    Query,
    RowCheck,
    Scope,
    critical_or_warning,
    nothing_read,
)
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.pulsar_versions import NONE, UNKNOWN, trouble_of
from pulsar_steward.model.section import Section, number
from pulsar_steward.model.trouble import Harm
from pulsar_steward.model.units import counted, named

if TYPE_CHECKING:
    from pulsar_steward.checks.check import CheckContext, Queried, QueryRows, Row


def crowded(clients: str, detail: str | None = None) -> Query:
    """Query for the topics with most `producers` or `consumers`; `critical` is true if the number is critical."""
    return Query(
        f"""
        select topic, broker, producers, consumers, subscriptions, producers_connected_recently,
            {clients} >= critical_{clients} as critical, $collect__recent_minutes as recent_minutes
        from user_topics join limits using (namespace) where {clients} >= warning_{clients}
        """,
        worst_first=f"critical desc, {clients} desc, topic",
        detail=detail,
    )


def most_seen(clients: str) -> Query:
    """Query for the highest number of clients on one topic, for each threshold that is in force anywhere."""
    return Query(
        f"""
        select warning_{clients} as threshold, max({clients}) as most
        from user_topics join limits using (namespace) group by warning_{clients}
        """
    )


def most_of_one(selected: QueryRows, context: CheckContext[Any], clients: str) -> str:
    """Sentence for the case that no topic is crowded: the highest number of clients on one topic."""
    most: dict[int, int] = {}
    for row in selected.rows:
        most[row["threshold"]] = max(most.get(row["threshold"], 0), row["most"] or 0)
    return context.in_each_part(
        lambda limits: f"No partition has more than {most.get(getattr(limits, f'warning_{clients}'), 0):,} {clients}."
    )


def moving(row: Row) -> str:
    """Sentence about the effect of a move of the topic."""
    clients = (row["producers"] or 0) + (row["consumers"] or 0)
    return f"A move or restart makes all {counted(clients, 'client')} of the topic reconnect at once."


class ConsumerFanoutPolicy(Section):
    """Thresholds for the number of consumers of one partition."""

    warning_consumers: int = number(
        2000, "on one partition, of all subscriptions; thousands made trouble in production"
    )
    critical_consumers: int = number(
        10_000, "the same; as many as partitions had whose producers timed out (knowledge.md C)"
    )


# The subscription with most consumers; at a tie, the last by name.
LARGEST = """
with largest as (
    select topic, list({
            'subscription': subscription, 'consumers': consumers, 'type': type, 'ack_holes': ack_holes}
        order by consumers desc, subscription desc)[1] as largest
    from subscriptions semi join worst using (topic) group by topic)
select worst.*, largest from worst left join largest using (topic)
"""


def _consumers(row: Row) -> str:
    largest, most = row["largest"], ""
    if largest is not None:
        kind = f" ({largest['type']})" if largest["type"] else ""
        most = (
            f", {largest['consumers'] or 0:,} of them in {largest['subscription']}{kind},"
            f" which has {counted(largest['ack_holes'] or 0, 'ack hole')}"
        )
    return (
        f"{row['topic']} on {row['broker']} has {counted(row['consumers'], 'consumer')} in"
        f" {counted(row['subscriptions'] or 0, 'subscription')}{most}. {moving(row)}"
    )


CONSUMER_FANOUT = RowCheck(
    check_id="consumer-fanout",
    harm=Harm.AT_RESTART,
    order=50,
    title="Thousands of consumers on one partition",
    advice=(
        "Use fewer consumers with more threads or larger receiver queues, or more partitions.",
        "Watch the ack holes of its subscriptions: they grow with the number of consumers (check ack-holes).",
        "Count the clients before you move its bundle: all of them reconnect at once.",
        "Set `maxConsumersPerTopic` or `maxConsumersPerSubscription` so that it cannot grow without end.",
    ),
    source="docs/knowledge.md C; docs/checks/consumer-fanout.md",
    scope=Scope.NAMESPACE,
    remedied_by="topic_partitions",
    policy=ConsumerFanoutPolicy,
    shards={"found": crowded("consumers", detail=LARGEST), "seen": most_seen("consumers")},
    cluster={"read": BROKERS_READ},
    severity=critical_or_warning,
    subject="topic",
    evidence=_consumers,
    figures=lambda row: {
        "consumers": row["consumers"],
        "producers": row["producers"] or 0,
        "largest_subscription_consumers": row["largest"] and (row["largest"]["consumers"] or 0),
    },
    missing=nothing_read,
    quiet=lambda queried, context: most_of_one(queried["seen"], context, "consumers"),
)


class ProducerFanoutPolicy(Section):
    """Thresholds for the number of producers of one partition."""

    warning_producers: int = number(
        1000, "on one partition; ten times what partitions of a huge cluster in production had"
    )
    critical_producers: int = number(10_000, "the same; no figure is known, so as for consumers")


def _producers(row: Row) -> str:
    recent = row["producers_connected_recently"]
    came = "" if recent is None else f", {recent:,} of which connected in the last {row['recent_minutes']} min"
    return f"{row['topic']} on {row['broker']} has {counted(row['producers'], 'producer')}{came}. {moving(row)}"


PRODUCER_FANOUT = RowCheck(
    check_id="producer-fanout",
    harm=Harm.AT_RESTART,
    order=60,
    title="Thousands of producers on one partition",
    advice=(
        "Share one producer in a process, and keep it: it is safe for threads.",
        "Let producers of a partitioned topic start lazily, so that each connects only to partitions that it uses.",
        "Give the topic more partitions, or put a service between that sends for many.",
        "Set `maxProducersPerTopic` so that it cannot grow without end.",
    ),
    source="docs/knowledge.md C; docs/checks/producer-fanout.md",
    scope=Scope.NAMESPACE,
    remedied_by="topic_partitions",
    policy=ProducerFanoutPolicy,
    shards={"found": crowded("producers"), "seen": most_seen("producers")},
    cluster={"read": BROKERS_READ},
    severity=critical_or_warning,
    subject="topic",
    evidence=_producers,
    figures=lambda row: {
        "consumers": row["consumers"] or 0,
        "producers": row["producers"],
        "producers_connected_recently": row["producers_connected_recently"],
    },
    missing=nothing_read,
    quiet=lambda queried, context: most_of_one(queried["seen"], context, "producers"),
)


class ClientVersionsPolicy(Section):
    """Thresholds for clients with a version that has a known bug or is old."""

    minimum_clients: int = number(
        10, "producers and consumers of a version in a namespace; with fewer it is information"
    )


# Versions are judged by `trouble_of`, as in the collector, which counts hosts only for suspicious versions. Each broker
# counts its own hosts, and a host may have clients on all brokers. So the largest count of one broker is used.
SUSPICIOUS = """
select namespace, client_version, sum(producers)::bigint as producers, sum(consumers)::bigint as consumers,
    max(hosts) as hosts, count(distinct broker) as brokers,
    arg_max(busiest_hosts, (producers + consumers, broker)) as busiest_hosts,
    min({'topic': example_topic, 'client': example_client}) as example
from client_versions
where hosts is not null and not starts_with(namespace, 'pulsar/') and not is_heartbeat(namespace)
group by namespace, client_version
"""

SEEN = """
select client_version, sum(producers + consumers)::bigint as clients from client_versions
where not starts_with(namespace, 'pulsar/') and not is_heartbeat(namespace)
group by client_version
"""


NO_VERSION = "of which their brokers know no version"


def known_versions(queried: Queried, context: CheckContext[ClientVersionsPolicy]) -> Judgement:
    """A known bug is a warning if enough clients of a namespace have it; all else is information."""
    found = []
    for row in queried["suspicious"].rows:
        version, clients = row["client_version"], row["producers"] + row["consumers"]
        trouble = trouble_of(version)
        severity, words = Severity.INFO, UNKNOWN
        if trouble is not None:
            words = f"{trouble.words} ({trouble.source})"
            if clients >= context.limits_of(row["namespace"]).minimum_clients:
                severity = trouble.severity
        who, joint = (f"with version {version}", ": ") if version != NONE else (NO_VERSION, ", ")
        example, least = row["example"], "at least " if row["brokers"] > 1 else ""
        evidence = (
            f"{row['namespace']} has {counted(row['producers'], 'producer')} and"
            f" {counted(row['consumers'], 'consumer')} {who}, on {least}{counted(row['hosts'], 'host')}"
            f" ({named(row['busiest_hosts'])}), such as {example['client']} of {example['topic']}{joint}{words}."
        )
        figures = {"clients": clients} | {name: row[name] for name in ("consumers", "hosts", "producers")}
        found.append(
            CLIENT_VERSIONS.finding(severity=severity, subject=row["namespace"], evidence=evidence, figures=figures)
        )
    found.sort(key=lambda each: (-each.figures["clients"], each.subject, each.evidence))
    versions = named([f"{row['client_version']} ({row['clients']:,})" for row in queried["seen"].rows])
    return Judgement(
        findings=tuple(found),
        more=queried["suspicious"].more,
        quiet=f"Nothing is known against the clients' versions: {versions}." if versions else "There is no client.",
        cannot_tell=nothing_read(queried),
    )


CLIENT_VERSIONS = Check(
    check_id="client-versions",
    order=80,
    title="Clients of versions that are known for a bug, that are old, or that tell no version",
    advice=(
        (
            "Find whose they are by host and name: `pulsar-admin topics stats TOPIC` tells both of each producer and"
            " consumer."
        ),
        "Have them renew the library: to the newest of its line at least, which the brokers' version need not follow.",
        "Begin with those that connection-churn names as well, and before you add partitions or move their topics.",
    ),
    source="docs/checks/client-versions.md; docs/knowledge.md C",
    policy=ClientVersionsPolicy,
    scope=Scope.NAMESPACE,
    cluster={
        "read": BROKERS_READ,
        # The most numerous suspicious versions; `known_versions` decides the severity.
        "suspicious": Query(
            SUSPICIOUS, worst_first="producers + consumers desc, namespace, client_version", most=10 * MAX_FINDINGS
        ),
        "seen": Query(SEEN, worst_first="clients desc, client_version"),
    },
    judge=known_versions,
)
