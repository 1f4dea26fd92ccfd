"""Clients that come and go: topics and namespaces with mostly new clients, and brokers with short connections.

One snapshot cannot tell a deployment from clients that reconnect for ever; those before it do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from pulsar_steward.checks.check import MAX_FINDINGS, Check, Judgement, Question
from pulsar_steward.checks.clients import churn_brokers, new_clients
from pulsar_steward.checks.clients.churn_brokers import ACTIVE, FAILED, SERIES, SUCCEEDED
from pulsar_steward.checks.clients.new_clients import NewClientsOfNamespace, NewClientsOfTopic
from pulsar_steward.checks.earlier import EarlierRows, looking_back, window_minutes
from pulsar_steward.checks.unread import BROKERS_READ, nothing_read
from pulsar_steward.checks.words import named
from pulsar_steward.model.section import Section

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pulsar_steward.checks.check import Answers, CheckAnswer, CheckContext
    from pulsar_steward.model.finding import Finding

__all__ = ["ACTIVE", "CHECK", "FAILED", "SUCCEEDED", "ConnectionChurnPolicy"]


class ConnectionChurnPolicy(Section):
    """Thresholds for clients that connect again and again."""

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
    warning_burst_turnovers: int = Field(
        3,
        ge=1,
        description="how often a broker's connections were replaced as a whole since a snapshot of the window; a"
        " deployment replaces them once",
    )
    minimum_clients_of_namespace: int = Field(
        1000, ge=1, description="on topics with fewer than `minimum_clients`, together; with fewer it is left"
    )
    window_minutes: int = Field(60, ge=1, description="earlier snapshots that are looked at")


def judge(answers: Answers, context: CheckContext[ConnectionChurnPolicy]) -> Judgement:
    """Findings about brokers, topics and namespaces in one list, the worst severity first."""
    found = [*_of_brokers(answers), *_of_topics(answers, context), *_of_namespaces(answers, context)]
    found.sort(key=lambda finding: -finding.severity.rank)
    beyond = sum(answers[name].more for name in ("bursts", "short_lived", "new_clients", "crowds"))
    return Judgement(
        findings=tuple(found[:MAX_FINDINGS]),
        more=max(0, len(found) - MAX_FINDINGS) + beyond if found else 0,
        quiet=(
            "Clients stay: on no larger topic and in no larger namespace do most of them come and go, and no broker's"
            " connections are short."
        ),
        cannot_tell=None if found else nothing_read(answers["read"]) or _missing(answers["silent"]),
    )


def _missing(silent: CheckAnswer) -> str | None:
    if not silent.rows:
        return None
    names = named([row["broker"] for row in silent.rows])
    return f"On no larger topic are most clients new; but {', '.join(SERIES)} are not in the snapshot for {names}."


def _before(answer: CheckAnswer, context: CheckContext[ConnectionChurnPolicy], column: str) -> EarlierRows:
    return EarlierRows.of(answer, context, window_minutes, column)


def _of_brokers(answers: Answers) -> Iterator[Finding]:
    for row in answers["bursts"].rows:
        yield churn_brokers.burst_of(row, CHECK.check_id)
    for row in answers["short_lived"].rows:
        yield churn_brokers.average_of(row, CHECK.check_id)


def _of_topics(answers: Answers, context: CheckContext[ConnectionChurnPolicy]) -> Iterator[Finding]:
    before = _before(answers["topics_before"], context, "topic")
    for row in answers["new_clients"].rows:
        if finding := NewClientsOfTopic(row, context.policy.collect.recent_minutes, before).finding(CHECK.check_id):
            yield finding


def _of_namespaces(answers: Answers, context: CheckContext[ConnectionChurnPolicy]) -> Iterator[Finding]:
    before = _before(answers["crowds_before"], context, "namespace")
    for row in answers["crowds"].rows:
        crowd = NewClientsOfNamespace(row, context.policy.collect.recent_minutes, before)
        if finding := crowd.finding(CHECK.check_id, context.limits.minimum_clients):
            yield finding


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
        "counted": Question(churn_brokers.COUNTED),
        "new_clients": Question(
            new_clients.NEW_CLIENTS,
            worst_first=new_clients.MOST_FIRST,
            most=new_clients.MAX_TOPICS,
            detail=new_clients.BUSIEST,
        ),
        "in_small": Question(new_clients.SMALL_TOPICS),
    },
    earlier={
        "counted_before": looking_back(churn_brokers.COUNTED),
        "topics_before": looking_back(new_clients.NEW_CLIENTS_BEFORE),
        "in_small_before": looking_back(new_clients.SMALL_TOPICS_BEFORE),
    },
    cluster={
        "read": BROKERS_READ,
        "connections": Question(churn_brokers.CONNECTIONS),
        "lately": Question(churn_brokers.LATELY),
        "bursts": Question(churn_brokers.BURSTS, worst_first="turnovers desc, broker"),
        "short_lived": Question(
            churn_brokers.SHORT_LIVED, worst_first="storming desc, turnovers_per_hour desc, broker"
        ),
        "silent": Question(churn_brokers.SILENT),
        "crowds": Question(new_clients.CROWDS, worst_first="recent desc, namespace"),
        "crowds_before": Question(new_clients.CROWDS_BEFORE),
    },
    judge=judge,
)
