"""Subscriptions with so many ack holes that acknowledgements are lost, or that one message holds back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.checks.check import MAX_FINDINGS, Check, Judgement, LookBack, Question, Scope
from pulsar_steward.checks.clients import held_entries
from pulsar_steward.checks.clients.consumers import SLOWEST, slowest_words, subject_of
from pulsar_steward.checks.clients.held_entries import AckHolesPolicy, HeldEntries
from pulsar_steward.checks.earlier import EarlierRows, wider
from pulsar_steward.checks.unread import BROKERS_READ, not_telling, nothing_read, setting_unread
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pulsar_steward.checks.check import Answers, CheckContext, Row


MAX_RANGES = "managedLedgerMaxUnackedRangesToPersist"
LONG_ARRAY = "managedLedgerPersistIndividualAckAsLongArray"

FOUND = f"""
with limit_of as (
    select broker, max(try_cast(trim(value) as bigint)) as most from setting('{MAX_RANGES}') group by broker),
arrays as (
    select broker, max(try_cast(trim(value) as boolean)) as long_array from setting('{LONG_ARRAY}') group by broker)
select topic, subscription, consumers, ack_holes, broker, most, long_array, ack_holes > most as beyond
from user_subscriptions join limits using (namespace) join limit_of using (broker) left join arrays using (broker)
where ack_holes > 0 and ack_holes * 100 >= most * warning_percent
"""


def _looked_back_minutes(limits: AckHolesPolicy) -> int:
    return wider(limits.warning_held_minutes)


def judge(answers: Answers, context: CheckContext[AckHolesPolicy]) -> Judgement:
    """Near the limit that a broker persists a warning, beyond it critical; also cursors held by a single message."""
    findings = [_finding(row) for row in answers["found"].rows]
    subjects = {finding.subject for finding in findings}
    findings += [finding for finding in _held(answers, context) if finding.subject not in subjects]
    if findings:
        findings.sort(key=lambda finding: -finding.severity.rank)
        more = answers["found"].more + answers["held"].more + max(0, len(findings) - MAX_FINDINGS)
        return Judgement(findings=tuple(findings[:MAX_FINDINGS]), more=more)
    return Judgement(
        quiet=context.in_each_part(
            lambda limits: f"No subscription has {limits.warning_percent} % of the ack holes that its broker persists."
        ),
        cannot_tell=nothing_read(answers["read"]) or setting_unread(answers["silent"], MAX_RANGES),
    )


def _held(answers: Answers, context: CheckContext[AckHolesPolicy]) -> Iterator[Finding]:
    before = EarlierRows.of(answers["held_before"], context, _looked_back_minutes, "topic", "subscription")
    for row in answers["held"].rows:
        if finding := HeldEntries(row, context.limits_of(row["namespace"]), before).finding(CHECK.check_id):
            yield finding


def _finding(row: Row) -> Finding:
    return Finding(
        check_id=CHECK.check_id,
        severity=Severity.CRITICAL if row["beyond"] else Severity.WARNING,
        subject=subject_of(row),
        evidence=(
            f"Subscription {row['subscription']} of {row['topic']} has {counted(row['ack_holes'], 'ack hole')},"
            f" {_of_limit(row)}"
            f" that {row['broker']} persists ({MAX_RANGES}{_counting(row)}): {_meaning(row)}; {slowest_words(row)}."
        ),
        figures={"ack_holes": row["ack_holes"], "ack_holes_persisted_at_most": row["most"]},
    )


def _of_limit(row: Row) -> str:
    if row["most"] <= 0:
        return "all of them beyond the 0"
    return f"{row['ack_holes'] * 100 // row['most']:,} % of the {row['most']:,}"


def _counting(row: Row) -> str:
    return "; as long arrays are on, it counts single entries and may be passed already" if row["long_array"] else ""


def _meaning(row: Row) -> str:
    if row["beyond"]:
        return "a restart or move now delivers acknowledged messages again"
    return "beyond that, a restart or move delivers acknowledged messages again"


CHECK = Check(
    check_id="ack-holes",
    order=30,
    title="Acknowledgements are about to be lost at the next restart or move: too many ack holes",
    advice=(
        "Beyond the limit: do not unload or restart anything of this topic before the holes are fewer.",
        "Find who holds the first message that is not acknowledged: `pulsar-admin topics stats-internal TOPIC`.",
        "Held back by one message: let it be acknowledged, or skip it: `pulsar-admin topics skip TOPIC -s SUB -n 1`.",
        "Use fewer consumers on the subscription, and quicker ones; acknowledge failures negatively, not never.",
        "Raise `managedLedgerMaxUnackedRangesToPersist` (brokers restart for it); 10,000 is low for Shared and delays.",
        "Send messages with long delays to a topic of their own: each of them is a hole.",
    ),
    source="docs/knowledge.md C; docs/checks/ack-holes.md; apache/pulsar#25540, apache/pulsar#742, apache/pulsar#25992",
    scope=Scope.NAMESPACE,
    policy=AckHolesPolicy,
    shards={
        "found": Question(
            FOUND,
            worst_first="beyond desc, ack_holes / greatest(most, 1) desc, topic, subscription",
            detail=SLOWEST,
        ),
        "held": Question(
            held_entries.HELD,
            worst_first=held_entries.MOST_FIRST,
            most=held_entries.MAX_SUBSCRIPTIONS,
            detail=SLOWEST,
        ),
    },
    earlier={"held_before": LookBack(minutes=_looked_back_minutes, sql=held_entries.BEFORE)},
    cluster={"read": BROKERS_READ, "silent": not_telling(MAX_RANGES)},
    judge=judge,
)
