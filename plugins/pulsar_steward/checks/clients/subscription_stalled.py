"""Subscriptions that stand still: there is something to consume and somebody to consume it, and nothing moves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.checks.check import MAX_FINDINGS, Check, Judgement, LookBack, Question, Scope
from pulsar_steward.checks.clients import standstill_rows, standstill_words, stuck_consumers
from pulsar_steward.checks.clients.consumers import SLOWEST, subject_of
from pulsar_steward.checks.clients.standstill import Standstill, SubscriptionStalledPolicy
from pulsar_steward.checks.earlier import EarlierRows, wider
from pulsar_steward.checks.unread import BROKERS_READ, nothing_read
from pulsar_steward.model.finding import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pulsar_steward.checks.check import Answers, CheckAnswer, CheckContext, Row


def _looked_back_minutes(limits: SubscriptionStalledPolicy) -> int:
    return wider(limits.critical_minutes)


def judge(answers: Answers, context: CheckContext[SubscriptionStalledPolicy]) -> Judgement:
    """Judges by the duration of the standstill, from the topic's own statistics or from earlier snapshots."""
    found = list(_standing_still(answers, context))
    subjects = {finding.subject for finding, _ in found}
    found += [each for each in _stuck(answers, context) if each[0].subject not in subjects]
    found.sort(key=lambda each: (-each[0].severity.rank, -each[1], each[0].subject))
    if found:
        more = answers["standing"].more + max(0, len(found) - MAX_FINDINGS)
        return Judgement(findings=tuple(finding for finding, _ in found[:MAX_FINDINGS]), more=more)
    return Judgement(
        quiet=context.in_each_part(
            lambda limits: (
                f"No subscription with consumers and {limits.minimum_due_messages:,} or more due messages stands still."
            )
        ),
        cannot_tell=nothing_read(answers["read"]) or _too_many(answers["possible"]),
    )


def _standing_still(
    answers: Answers, context: CheckContext[SubscriptionStalledPolicy]
) -> Iterator[tuple[Finding, int]]:
    """Yields findings, each with its number of messages."""
    before = EarlierRows.of(answers["before"], context, _looked_back_minutes, "topic", "subscription")
    recent_minutes = context.policy.collect.recent_minutes
    for row in (*answers["standing"].rows, *answers["possible"].rows):
        each = Standstill(row, context.limits_of(row["namespace"]), recent_minutes, before)
        if each.severity is not None:
            evidence, figures = standstill_words.evidence_of(each), standstill_words.figures_of(each)
            yield _finding(row, each.severity, evidence, figures), row["messages"]


def _stuck(answers: Answers, context: CheckContext[SubscriptionStalledPolicy]) -> Iterator[tuple[Finding, int]]:
    before = EarlierRows.of(answers["stuck_before"], context, _looked_back_minutes, *stuck_consumers.COLUMNS)
    for each in stuck_consumers.by_subscription(answers["stuck"].rows, context.limits_of, before):
        if each.severity is not None:
            evidence, figures = stuck_consumers.evidence_of(each), stuck_consumers.figures_of(each)
            yield _finding(each.rows[0], each.severity, evidence, figures), each.held


def _finding(row: Row, severity: Severity, evidence: str, figures: dict[str, int]) -> Finding:
    return Finding(
        check_id=CHECK.check_id, severity=severity, subject=subject_of(row), evidence=evidence, figures=figures
    )


def _too_many(possible: CheckAnswer) -> str | None:
    if not possible.more:
        return None
    return (
        f"More than {standstill_rows.MAX_ROWS:,} subscriptions may stand still with few entries due; the"
        f" {standstill_rows.MAX_ROWS:,} that were looked up do not."
    )


CHECK = Check(
    check_id="subscription-stalled",
    order=20,
    title="A subscription with a backlog and consumers stands still",
    advice=(
        "Look at the consumers that the evidence names, on their hosts: a thread dump shows where their handlers hang.",
        "No permits left: the client is not asking for more, its handlers are stuck or its receiver queue is full.",
        "Permits left: the broker does not dispatch; see `pulsar-admin topics stats-internal TOPIC` and its log.",
        "Delivered again and again: give the consumer a dead letter topic, and read why its handler fails.",
        "Consumers that come and go: look at their hosts for restarts, and at the message that ends them.",
        "Restart the consumer that is stuck first; unload the topic only when its ack holes are few (ack-holes).",
    ),
    source="docs/knowledge.md C; docs/checks/subscription-stalled.md; apache/pulsar#14337",
    scope=Scope.NAMESPACE,
    policy=SubscriptionStalledPolicy,
    shards={
        "standing": Question(
            standstill_rows.STANDING,
            worst_first=standstill_rows.LONGEST_FIRST,
            most=standstill_rows.MAX_ROWS,
            detail=SLOWEST,
        ),
        "possible": Question(
            standstill_rows.POSSIBLE,
            worst_first=standstill_rows.LONGEST_FIRST,
            most=standstill_rows.MAX_ROWS,
            detail=SLOWEST,
        ),
        "stuck": Question(
            stuck_consumers.STUCK, worst_first=stuck_consumers.MOST_FIRST, most=stuck_consumers.MAX_CONSUMERS
        ),
    },
    earlier={
        "before": LookBack(minutes=_looked_back_minutes, sql=standstill_rows.BEFORE),
        "stuck_before": LookBack(minutes=_looked_back_minutes, sql=stuck_consumers.BEFORE),
    },
    cluster={"read": BROKERS_READ},
    judge=judge,
)
