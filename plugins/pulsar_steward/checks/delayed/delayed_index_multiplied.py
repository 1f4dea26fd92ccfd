"""Topics whose delayed messages are indexed by each of several subscriptions: the cost is multiplied."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from pulsar_steward.checks.check import Check, Judgement, Query, Scope
from pulsar_steward.checks.delayed.views import BASE, PARTITIONS_KEPT
from pulsar_steward.checks.delayed.waiting import GAP_CLUSTER, GAP_SHARDS, TALLY, gap, tally
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.section import Section
from pulsar_steward.model.units import bytes_in_words, counted

if TYPE_CHECKING:
    from pulsar_steward.checks.check import CheckContext, Queried, Row


class DelayedIndexMultipliedPolicy(Section):
    """Thresholds for delayed messages that several subscriptions of one topic index."""

    minimum_subscriptions: int = Field(
        2, ge=2, description="subscriptions with delayed messages; one multiplies nothing"
    )
    warning_extra_index_entries: int = Field(
        1_000_000, ge=1, description="entries beyond those of the fullest subscription: 24 MB of index for nothing"
    )
    critical_extra_index_entries: int = Field(
        20_000_000, ge=1, description="the same: half a gigabyte, and as many entries to read at each load"
    )
    warning_extra_index_entries_of_partitions: int = Field(
        20_000_000,
        ge=1,
        description="the same of partitions of one topic together, each of fewer than the above; those of less than a"
        " thousandth of this are not added up",
    )
    critical_extra_index_entries_of_partitions: int = Field(
        200_000_000, ge=1, description="the same: five gigabytes over the brokers that hold them"
    )


_SUMS = """
sums as (
    select topic, namespace, broker, count(*) as subscriptions, sum(delayed_messages)::bigint as entries,
        max(delayed_messages) as most, entries - most as extra
    from delayed_waiting group by topic, namespace, broker having count(*) > 1)
"""

MULTIPLIED = f"""
with {_SUMS}
select topic, broker, subscriptions, entries, most, extra, extra >= critical_extra_index_entries as critical
from sums join limits using (namespace)
where subscriptions >= minimum_subscriptions and extra >= warning_extra_index_entries
"""

# Sums over partitions that each repeat too little for a finding. The choice of a partition does not depend on the
# others, so the sum is the same in any division into shards.
IN_PARTS = f"""
with {_SUMS},
based as (
    select {BASE} as base, topic, subscriptions, entries, extra,
        warning_extra_index_entries_of_partitions as many, critical_extra_index_entries_of_partitions as too_many
    from sums join limits using (namespace)
    where subscriptions >= minimum_subscriptions and extra < warning_extra_index_entries
        and extra >= greatest(warning_extra_index_entries_of_partitions // 1000, 1))
select base, many, too_many, min(topic) as first, count(*) as partitions, max(subscriptions) as subscriptions,
    sum(entries)::bigint as entries, sum(extra)::bigint as extra
from based where base <> topic group by base, many, too_many
"""

TOGETHER = """
select base, many, sum(partitions)::bigint as partitions, max(subscriptions) as subscriptions,
    sum(entries)::bigint as entries, sum(extra)::bigint as extra, sum(extra) >= any_value(too_many) as critical
from in_parts group by base, many having sum(extra) >= any_value(many) and sum(partitions) > 1
"""

# Names are looked up only for findings.
FULLEST = """
with fullest as (
    select topic, broker, max({'most': delayed_messages, 'subscription': subscription}).subscription as subscription
    from delayed_waiting semi join worst using (topic, broker) group by topic, broker)
select worst.*, subscription from worst join fullest using (topic, broker)
"""


def judge(queried: Queried, context: CheckContext[DelayedIndexMultipliedPolicy]) -> Judgement:
    """Judges each topic by its indexed entries beyond those of the fullest subscription."""
    multiplied, together = queried["multiplied"], queried["together"]
    per_entry = context.policy.delayed_index_memory.index_bytes_per_message
    found = [_finding(row, per_entry) for row in multiplied.rows]
    found += [_of_partitions(row, per_entry) for row in together.rows]
    if found:
        found.sort(key=lambda each: (-each.severity.rank, -each.figures["extra_index_entries"], each.subject))
        return Judgement(findings=tuple(found), more=multiplied.more + together.more)
    unknown = gap(queried)
    if unknown:
        return Judgement(cannot_tell=unknown)
    subscriptions, messages = tally(queried)
    return Judgement(
        quiet=(
            f"No topic repeats many of the {counted(messages, 'index entry', 'index entries')} of"
            f" {counted(subscriptions, 'subscription')}."
        )
    )


def _finding(row: Row, bytes_per_entry: int) -> Finding:
    return Finding(
        check_id=CHECK.check_id,
        severity=Severity.CRITICAL if row["critical"] else Severity.WARNING,
        subject=row["topic"],
        evidence=(
            f"{counted(row['subscriptions'], 'subscription indexes', 'subscriptions index')}"
            f" {counted(row['entries'], 'delayed message')}, {row['extra']:,} more than {row['subscription']} alone"
            f" ({row['most']:,}): about {bytes_in_words(row['extra'] * bytes_per_entry, rounded=True)} of index more,"
            f" at {bytes_per_entry} bytes an entry."
        ),
        figures={
            "extra_index_entries": row["extra"],
            "index_entries": row["entries"],
            "most_delayed_messages": row["most"],
            "subscriptions": row["subscriptions"],
        },
    )


def _of_partitions(row: Row, bytes_per_entry: int) -> Finding:
    return Finding(
        check_id=CHECK.check_id,
        severity=Severity.CRITICAL if row["critical"] else Severity.WARNING,
        subject=row["base"],
        evidence=(
            f"Up to {counted(row['subscriptions'], 'subscription')} of {counted(row['partitions'], 'partition')}"
            f" {'indexes' if row['subscriptions'] == 1 else 'index'}"
            f" {counted(row['entries'], 'delayed message')}, {row['extra']:,} more than the fullest of each partition"
            f" alone: about {bytes_in_words(row['extra'] * bytes_per_entry, rounded=True)} of index more on their"
            f" brokers together, at {bytes_per_entry} bytes an entry."
        ),
        figures={
            "extra_index_entries": row["extra"],
            "index_entries": row["entries"],
            "partitions": row["partitions"],
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
        "multiplied": Query(MULTIPLIED, worst_first="critical desc, extra desc, topic, broker", detail=FULLEST),
        "in_parts": Query(IN_PARTS, worst_first="extra desc, base, first", most=PARTITIONS_KEPT),
        "tally": TALLY,
        **GAP_SHARDS,
    },
    cluster={"together": Query(TOGETHER, worst_first="critical desc, extra desc, base"), **GAP_CLUSTER},
    judge=judge,
)
