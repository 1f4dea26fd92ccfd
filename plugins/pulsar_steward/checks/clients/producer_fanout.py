"""Partitions with thousands of producers: each costs memory and pings, and all of them reconnect at once."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pydantic import Field

from pulsar_steward.checks.check import Check, Judgement, Scope
from pulsar_steward.checks.clients.fanout import crowded, most_of_one, most_seen, moving
from pulsar_steward.checks.unread import BROKERS_READ, nothing_read
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.section import Section
from pulsar_steward.model.units import counted

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Answers, CheckContext, Row


class ProducerFanoutPolicy(Section):
    """Thresholds for the number of producers of one partition."""

    warning_producers: int = Field(
        1000, ge=1, description="on one partition; ten times what partitions of a huge cluster in production had"
    )
    critical_producers: int = Field(10_000, ge=1, description="the same; no figure is known, so as for consumers")


def judge(answers: Answers, context: CheckContext[ProducerFanoutPolicy]) -> Judgement:
    """Severity depends on the number of producers."""
    found = answers["found"]
    if found.rows:
        finding = partial(_finding, recent_minutes=context.policy.collect.recent_minutes)
        return Judgement(findings=tuple(map(finding, found.rows)), more=found.more)
    return Judgement(
        quiet=most_of_one(answers["seen"], context, "producers"), cannot_tell=nothing_read(answers["read"])
    )


def _finding(row: Row, recent_minutes: int) -> Finding:
    figures = {"consumers": row["consumers"] or 0, "producers": row["producers"]}
    recent = row["producers_connected_recently"]
    if recent is not None:
        figures["producers_connected_recently"] = recent
    came = "" if recent is None else f", {recent:,} of which connected in the last {recent_minutes} min"
    return Finding(
        check_id=CHECK.check_id,
        severity=Severity.CRITICAL if row["critical"] else Severity.WARNING,
        subject=row["topic"],
        evidence=f"{row['topic']} on {row['broker']} has {counted(row['producers'], 'producer')}{came}. {moving(row)}",
        figures=figures,
    )


CHECK = Check(
    check_id="producer-fanout",
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
    policy=ProducerFanoutPolicy,
    shards={"found": crowded("producers"), "seen": most_seen("producers")},
    cluster={"read": BROKERS_READ},
    judge=judge,
)
