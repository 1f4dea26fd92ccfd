"""Topics whose delayed messages are indexed once for each subscription: the cost is multiplied by these."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from pulsar_steward.checks.check import Check, Judgement, Question, Scope
from pulsar_steward.checks.delayed.waiting import GAP_CLUSTER, GAP_SHARDS, TALLY, gap, tally
from pulsar_steward.checks.words import size
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.section import Section

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Answers, CheckContext, Row


class DelayedIndexMultipliedPolicy(Section):
    """When several subscriptions of one topic index the same delayed messages."""

    minimum_subscriptions: int = Field(
        2, ge=2, description="subscriptions with delayed messages; one multiplies nothing"
    )
    warning_extra_index_entries: int = Field(
        1_000_000, ge=1, description="entries beyond those of the fullest subscription: 24 MB of index for nothing"
    )
    critical_extra_index_entries: int = Field(
        20_000_000, ge=1, description="the same: half a gigabyte, and as many entries to read at each load"
    )


MULTIPLIED = """
with sums as (
    select topic, namespace, broker, count(*) as subscriptions, sum(delayed_messages)::bigint as entries,
        max(delayed_messages) as most, entries - most as extra
    from delayed_waiting group by topic, namespace, broker having count(*) > 1)
select topic, broker, subscriptions, entries, most, extra, extra >= critical_extra_index_entries as critical
from sums join limits using (namespace)
where subscriptions >= minimum_subscriptions and extra >= warning_extra_index_entries
"""

# Names are only looked at where there is something to say.
FULLEST = """
with fullest as (
    select topic, broker, max({'most': delayed_messages, 'subscription': subscription}).subscription as subscription
    from delayed_waiting semi join worst using (topic, broker) group by topic, broker)
select worst.*, subscription from worst join fullest using (topic, broker)
"""


def judge(answers: Answers, context: CheckContext[DelayedIndexMultipliedPolicy]) -> Judgement:
    """Entries beyond those of the fullest subscription count, topic by topic."""
    multiplied = answers["multiplied"]
    if multiplied.rows:
        per_entry = context.policy.delayed_index_memory.index_bytes_per_message
        return Judgement(findings=tuple(_finding(row, per_entry) for row in multiplied.rows), more=multiplied.more)
    unknown = gap(answers)
    if unknown:
        return Judgement(cannot_tell=unknown)
    subscriptions, messages = tally(answers)
    return Judgement(
        quiet=f"No topic repeats many of the {messages:,} index entries of {subscriptions:,} subscriptions."
    )


def _finding(row: Row, bytes_per_entry: int) -> Finding:
    return Finding(
        check_id=CHECK.check_id,
        severity=Severity.CRITICAL if row["critical"] else Severity.WARNING,
        subject=row["topic"],
        evidence=(
            f"{row['subscriptions']:,} subscriptions index {row['entries']:,} delayed messages,"
            f" {row['extra']:,} more than {row['subscription']} alone ({row['most']:,}):"
            f" about {size(row['extra'] * bytes_per_entry)} of index more, at {bytes_per_entry} bytes an entry."
        ),
        figures={
            "extra_index_entries": row["extra"],
            "index_entries": row["entries"],
            "most_delayed_messages": row["most"],
            "subscriptions": row["subscriptions"],
        },
    )


CHECK = Check(
    check_id="delayed-index-multiplied",
    order=40,
    title="Several subscriptions of a topic index the same delayed messages",
    advice=(
        "Delete subscriptions that nobody uses: pulsar-admin topics unsubscribe.",
        "Let one subscription take what is delayed and, when due, publish it to a topic that the others read.",
        "Use the bucket tracker, which holds only the next part of each index in memory.",
    ),
    source="docs/checks/delayed-index-multiplied.md; docs/knowledge.md D",
    scope=Scope.NAMESPACE,
    policy=DelayedIndexMultipliedPolicy,
    shards={
        "multiplied": Question(MULTIPLIED, worst_first="critical desc, extra desc, topic, broker", detail=FULLEST),
        "tally": TALLY,
        **GAP_SHARDS,
    },
    cluster=GAP_CLUSTER,
    judge=judge,
)
