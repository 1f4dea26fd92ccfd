"""Subscriptions that nobody has been connected to for days, and whose backlog keeps growing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.checks.check import MAX_FINDINGS, Check, Judgement, Question, Scope
from pulsar_steward.checks.clients.absence import (
    BEFORE,
    FOUND_BEFORE,
    MAX_ROWS,
    MOST_FIRST,
    WITHOUT_CONSUMERS,
    Absence,
    SubscriptionAbandonedPolicy,
)
from pulsar_steward.checks.clients.consumers import subject_of
from pulsar_steward.checks.earlier import EarlierRows, looking_back, window_minutes
from pulsar_steward.checks.unread import BROKERS_READ, nothing_read
from pulsar_steward.model.finding import Finding
from pulsar_steward.model.units import bytes_in_words, counted, seconds_in_words, time_in_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pulsar_steward.checks.check import Answers, CheckContext


def judge(answers: Answers, context: CheckContext[SubscriptionAbandonedPolicy]) -> Judgement:
    """A warning once it has been so for days, the longest first."""
    found = sorted(_absences(answers, context), key=lambda each: (-each.severity.rank, each.since, each.subject))
    if found:
        more = max(0, len(found) - MAX_FINDINGS) + answers["alone"].more
        return Judgement(findings=tuple(map(_finding, found[:MAX_FINDINGS])), more=more)
    return Judgement(
        quiet=context.in_each_part(
            lambda limits: (
                f"No subscription with {limits.minimum_entries:,} or more entries grows for"
                f" {counted(limits.information_minutes, 'minute')} without a consumer."
            )
        ),
        cannot_tell=nothing_read(answers["read"]) or _missing(answers, context),
    )


def _absences(answers: Answers, context: CheckContext[SubscriptionAbandonedPolicy]) -> Iterator[Absence]:
    before = EarlierRows.of(answers["before"], context, window_minutes, "topic", "subscription")
    found_before = {(row["taken_at"], row["subject"]): row for row in answers["found_before"].rows}
    for row in answers["alone"].rows:
        limits = context.limits_of(row["namespace"])
        if absence := Absence.of(row, subject_of(row), limits, before, found_before):
            yield absence


def _missing(answers: Answers, context: CheckContext[SubscriptionAbandonedPolicy]) -> str | None:
    """Reason why subscriptions without consumers prove nothing yet."""
    alone = answers["alone"]
    if alone.more:
        return f"More than {counted(MAX_ROWS, 'subscription')} have no consumer; those that were looked up do not grow."
    if not alone.rows or context.about.earlier:
        return None
    have = counted(len(alone.rows), "subscription has", "subscriptions have")
    return f"{have} no consumer, and this is the first snapshot."


def _finding(absence: Absence) -> Finding:
    return Finding(
        check_id=CHECK.check_id,
        severity=absence.severity,
        subject=absence.subject,
        evidence=_evidence(absence),
        figures=absence.figures,
    )


def _evidence(absence: Absence) -> str:
    row = absence.row
    since = f"{time_in_words(absence.since)} ({seconds_in_words(absence.seconds, rounded=True)})"
    reach = "" if absence.beginning_seen else ", as far back as snapshots reach"
    others = row["subscriptions"] - 1
    words = (
        f"{absence.subject} on {row['broker']} had no consumer in any snapshot since {since}{reach}; its backlog grew"
        f" from {absence.entries_then:,} to {counted(row['backlog_entries'], 'entry', 'entries')}. Deleting it would"
        f" lose these; the topic keeps {bytes_in_words(row['backlog_bytes'] or 0, rounded=True)} for its slowest"
        f" subscription, and has {counted(others, 'other')}."
    )
    return words + (" Whether messages expire there was not read." if row["ttl_unknown"] else "")


CHECK = Check(
    check_id="subscription-abandoned",
    order=25,
    title="Nobody consumes a subscription any more, and its backlog grows",
    advice=(
        "Ask the owners of the topic, and whoever last consumed it, whether anybody still needs the subscription.",
        "Needed: start its consumers, or give the namespace a time to live that clears what comes too late.",
        "Not needed: `pulsar-admin topics unsubscribe -s SUBSCRIPTION TOPIC`; what it has not read is lost to it.",
        "Deleted, it cannot be had back: a new one begins at the end, or with what other subscriptions still keep.",
        "Steward asks people to delete it where the policy says so (`subscriptions.delete_abandoned`), and never else.",
    ),
    source="docs/knowledge.md F; docs/checks/subscription-abandoned.md",
    scope=Scope.NAMESPACE,
    remedied_by="subscription_deletion",
    policy=SubscriptionAbandonedPolicy,
    shards={"alone": Question(WITHOUT_CONSUMERS, worst_first=MOST_FIRST, most=MAX_ROWS)},
    earlier={"before": looking_back(BEFORE), "found_before": looking_back(FOUND_BEFORE, small=True)},
    cluster={"read": BROKERS_READ},
    judge=judge,
)
