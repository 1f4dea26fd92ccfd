"""Clients with a version that has a known bug, is old, or is unknown to the brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from pulsar_steward.checks.check import BROKERS_READ, MAX_FINDINGS, Check, Judgement, Query, Scope, nothing_read
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.pulsar_versions import NONE, UNKNOWN, trouble_of
from pulsar_steward.model.section import Section
from pulsar_steward.model.units import counted, named

if TYPE_CHECKING:
    from pulsar_steward.checks.check import CheckContext, Queried, Row


class ClientVersionsPolicy(Section):
    """Thresholds for clients with a version that has a known bug or is old."""

    minimum_clients: int = Field(
        10, ge=1, description="producers and consumers of a version in a namespace; with fewer it is information"
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


def judge(queried: Queried, context: CheckContext[ClientVersionsPolicy]) -> Judgement:
    """A known bug is a warning if enough clients of a namespace have it; all else is information."""
    found = [_finding(row, context) for row in queried["suspicious"].rows]
    found.sort(key=lambda each: (-each.severity.rank, -each.figures["clients"], each.subject, each.evidence))
    return Judgement(
        findings=tuple(found),
        more=queried["suspicious"].more if found else 0,
        quiet=_quiet(queried),
        cannot_tell=None if found else nothing_read(queried["read"]),
    )


def _quiet(queried: Queried) -> str:
    versions = [f"{row['client_version']} ({row['clients']:,})" for row in queried["seen"].rows]
    return f"Nothing is known against the clients' versions: {named(versions)}." if versions else "There is no client."


def _finding(row: Row, context: CheckContext[ClientVersionsPolicy]) -> Finding:
    version, clients = row["client_version"], row["producers"] + row["consumers"]
    trouble = trouble_of(version)
    severity, words = Severity.INFO, UNKNOWN
    if trouble is not None:
        words = f"{trouble.words} ({trouble.source})"
        if clients >= context.limits_of(row["namespace"]).minimum_clients:
            severity = trouble.severity
    who = f"with version {version}" if version != NONE else "of which their brokers know no version"
    joint = ": " if version != NONE else ", "
    example, least = row["example"], "at least " if row["brokers"] > 1 else ""
    evidence = (
        f"{row['namespace']} has {counted(row['producers'], 'producer')} and {counted(row['consumers'], 'consumer')}"
        f" {who}, on {least}{counted(row['hosts'], 'host')} ({named(row['busiest_hosts'])}), such as"
        f" {example['client']} of {example['topic']}{joint}{words}."
    )
    return Finding(
        check_id=CHECK.check_id,
        severity=severity,
        subject=row["namespace"],
        evidence=evidence,
        figures={
            "clients": clients,
            "consumers": row["consumers"],
            "hosts": row["hosts"],
            "producers": row["producers"],
        },
    )


CHECK = Check(
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
        # The most numerous suspicious versions; `judge` decides the severity.
        "suspicious": Query(
            SUSPICIOUS, worst_first="producers + consumers desc, namespace, client_version", most=10 * MAX_FINDINGS
        ),
        "seen": Query(SEEN, worst_first="clients desc, client_version"),
    },
    judge=judge,
)
