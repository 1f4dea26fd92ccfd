"""Few delayed messages that keep many consumed entries stored: ledgers are deleted from the front only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from pulsar_steward.checks.check import Check, Judgement, Question, Scope
from pulsar_steward.checks.delayed.waiting import GAP_CLUSTER, GAP_SHARDS, TALLY, gap, tally
from pulsar_steward.checks.words import duration, size
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.section import Section

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Answers, CheckContext, Row


class DelayedHoldsLedgersPolicy(Section):
    """When few delayed messages keep too much stored."""

    warning_entries_per_backlog_message: int = Field(
        10, ge=2, description="entries behind the first unacknowledged one, for each that is waited for: nine are done"
    )
    warning_held_mebibytes: int = Field(
        10 * 1024, ge=1, description="consumed bytes that a topic keeps; below 10 GiB a disk does not notice"
    )
    critical_held_mebibytes: int = Field(
        100 * 1024, ge=1, description="the same, where few such topics fill a bookie's disk"
    )


MIB = 1024 * 1024

# Of the bytes from the first message that is not acknowledged on, the backlog explains as many as its share of the
# entries there; an entry holds one message or more, so what is held is rather more than this. Of each topic, the
# subscription that holds most.
HOLDING = f"""
with sizes as (
    select topic, storage_bytes, backlog_bytes, warning_entries_per_backlog_message,
        warning_held_mebibytes * {MIB}::bigint as least, critical_held_mebibytes * {MIB}::bigint as much
    from topics join limits using (namespace)
    where backlog_bytes >= {MIB} and backlog_bytes >= warning_held_mebibytes * {MIB}::bigint),
spans as (
    select topic, subscription, backlog_messages, entries_since_first_gap as entries
    from subscriptions where entries_since_first_gap > 0),
held as (
    select topic, storage_bytes, least, much, subscription, delayed_messages, backlog_messages, entries,
        try_cast(floor(backlog_bytes * (1 - greatest(backlog_messages, 0) / entries)) as bigint) as held_bytes
    from sizes join spans using (topic) join delayed_waiting using (topic, subscription)
    where entries >= warning_entries_per_backlog_message * backlog_messages)
select topic, storage_bytes, max(held_bytes) as held_bytes, max(held_bytes) >= any_value(much) as critical,
    max({{'held_bytes': held_bytes, 'delayed_messages': delayed_messages, 'subscription': subscription,
        'backlog_messages': backlog_messages, 'entries': entries}}) as most
from held where held_bytes >= least group by topic, storage_bytes
"""

DETAIL = """
with counted as (select topic, max(ledgers) as ledgers from drilled semi join worst using (topic) group by topic),
ages as (
    select topic, max(age_seconds) as age_seconds from delayed_backlog_ages semi join worst using (topic)
    group by topic)
select worst.*, ledgers, age_seconds from worst left join counted using (topic) left join ages using (topic)
"""

# Without its topic or its cursor, nothing is known of what a subscription keeps.
UNKNOWN = """
with sized as (select topic from topics semi join delayed_waiting using (topic) where backlog_bytes is not null),
known as (
    select topic, subscription from subscriptions semi join delayed_waiting using (topic, subscription)
    semi join sized using (topic)
    where entries_since_first_gap is not null and backlog_messages is not null)
select count(*) as count from delayed_waiting anti join known using (topic, subscription)
"""


def judge(answers: Answers, context: CheckContext[DelayedHoldsLedgersPolicy]) -> Judgement:  # noqa: ARG001 - the questions know the limits
    """What is kept for nothing counts, whatever share of the storage it is."""
    holding = answers["holding"]
    if holding.rows:
        return Judgement(findings=tuple(map(_finding, holding.rows)), more=holding.more)
    unknown = gap(answers) or _unknown_spans(sum(row["count"] for row in answers["unknown"].rows))
    if unknown:
        return Judgement(cannot_tell=unknown)
    subscriptions, messages = tally(answers)
    return Judgement(
        quiet=f"The {messages:,} delayed messages of {subscriptions:,} subscriptions keep little else from deletion."
    )


def _unknown_spans(count: int) -> str | None:
    if not count:
        return None
    return f"What the cursors of {count:,} subscriptions with delayed messages span was not read."


def _finding(row: Row) -> Finding:
    most = row["most"]
    words = (
        f"Subscription {most['subscription']} waits for {most['backlog_messages']:,} messages"
        f" ({most['delayed_messages']:,} delayed), but {most['entries']:,} entries follow its first unacknowledged one:"
        f" about {size(row['held_bytes'])} of {size(row['storage_bytes'])} stored are consumed and cannot be deleted"
    )
    figures = {
        "backlog_messages": most["backlog_messages"],
        "delayed_messages": most["delayed_messages"],
        "entries_since_first_gap": most["entries"],
        "held_bytes": row["held_bytes"],
        "storage_bytes": row["storage_bytes"],
    }
    if row["ledgers"] is not None:
        words += f"; the topic has {row['ledgers']:,} ledgers"
        figures["ledgers"] = row["ledgers"]
    if row["age_seconds"] is not None:
        words += f"; its oldest message waits for {duration(row['age_seconds'])}"
        figures["oldest_backlog_age_seconds"] = row["age_seconds"]
    return Finding(
        check_id=CHECK.check_id,
        severity=Severity.CRITICAL if row["critical"] else Severity.WARNING,
        subject=row["topic"],
        evidence=words + ".",
        figures=figures,
    )


CHECK = Check(
    check_id="delayed-holds-ledgers",
    order=20,
    title="Few delayed messages keep much consumed data from deletion",
    advice=(
        "Confirm it: pulsar-admin topics stats-internal shows the cursor's markDeletePosition in an old ledger.",
        "Send messages with long delays to a topic of their own, apart from those that are consumed at once.",
        "Bound the delay: maxDeliveryDelayInMillis in the namespace's delayedDelivery policy.",
        "Do not limit such a topic's backlog by age or evict it: that loses what is meant to wait.",
        "Offload to tiered storage where the delays must stay.",
    ),
    source="docs/checks/delayed-holds-ledgers.md; apache/pulsar-site#764, apache/pulsar-site#771",
    scope=Scope.NAMESPACE,
    policy=DelayedHoldsLedgersPolicy,
    shards={
        "holding": Question(HOLDING, worst_first="critical desc, held_bytes desc, topic", detail=DETAIL),
        "unknown": Question(UNKNOWN),
        "tally": TALLY,
        **GAP_SHARDS,
    },
    cluster=GAP_CLUSTER,
    judge=judge,
)
