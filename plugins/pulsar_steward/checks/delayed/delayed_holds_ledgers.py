"""Few delayed messages that keep many consumed entries stored: ledgers are deleted from the front only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.checks.check import Query, RowCheck, Scope, critical_or_warning, if_counted
from pulsar_steward.checks.delayed.waiting import (
    BASE,
    GAP_CLUSTER,
    GAP_SHARDS,
    PARTITIONS_KEPT,
    TALLY,
    gap,
    tally_words,
)
from pulsar_steward.model.section import Section, number
from pulsar_steward.model.units import MIB, bytes_in_words, counted, seconds_in_words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulsar_steward.checks.check import Row


class DelayedHoldsLedgersPolicy(Section):
    """Thresholds for consumed bytes that are kept because of a few delayed messages."""

    warning_entries_per_backlog_entry: int = number(
        10, "entries behind the first unacknowledged one, for each that is waited for: nine are done", ge=2
    )
    warning_held_mebibytes: int = number(
        10 * 1024, "consumed bytes that a topic keeps; below 10 GiB a disk does not notice"
    )
    critical_held_mebibytes: int = number(100 * 1024, "the same, where few such topics fill a bookie's disk")
    warning_held_mebibytes_of_partitions: int = number(
        100 * 1024,
        "consumed bytes that partitions of one topic keep together, each less than the above; those that keep"
        " less than a thousandth of this are not added up",
    )
    critical_held_mebibytes_of_partitions: int = number(
        1024 * 1024, "the same: a terabyte, ten bookies' share of 100 GiB"
    )


# Both figures count entries. The backlog is a share of the entries from the first unacknowledged one on. It explains
# the same share of their bytes. A delayed message is an entry of its own, others may be large batches: the held bytes
# are probably more than this.
_HELD = f"""
sizes as (
    select topic, broker, namespace, storage_bytes, backlog_bytes, warning_entries_per_backlog_entry,
        warning_held_mebibytes * {MIB}::bigint as least, critical_held_mebibytes * {MIB}::bigint as much,
        warning_held_mebibytes_of_partitions * {MIB}::bigint as least_together,
        critical_held_mebibytes_of_partitions * {MIB}::bigint as much_together
    from topics semi join delayed_waiting using (topic, broker) join limits using (namespace) where backlog_bytes > 0),
spans as (
    select topic, broker, subscription, backlog_entries, entries_since_first_gap as entries
    from subscriptions semi join delayed_waiting using (topic, broker, subscription)
    where entries_since_first_gap > 0 and entries_since_first_gap >= backlog_entries),
held as (
    select sizes.*, subscription, delayed_messages, backlog_entries, entries,
        try_cast(floor(backlog_bytes * (1 - greatest(backlog_entries, 0) / entries)) as bigint) as held_bytes
    from sizes join spans using (topic, broker) join delayed_waiting using (topic, broker, subscription)
    where (backlog_bytes >= least or backlog_bytes >= least_together // 1000)
        and entries >= warning_entries_per_backlog_entry * backlog_entries)
"""

# For each topic, the subscription that holds most.
HOLDING = f"""
with {_HELD}
select topic, storage_bytes, max(held_bytes) as held_bytes, max(held_bytes) >= any_value(much) as critical,
    max({{'held_bytes': held_bytes, 'delayed_messages': delayed_messages, 'subscription': subscription,
        'backlog_entries': backlog_entries, 'entries': entries}}) as most
from held where held_bytes >= least group by topic, storage_bytes
"""

# Sums over partitions that each hold too little for a finding. The choice of a partition does not depend on the others,
# so the sum is the same in any division into shards.
IN_PARTS = f"""
with {_HELD},
parts as (
    select topic, max(storage_bytes) as storage_bytes, max(held_bytes) as held_bytes,
        any_value(least) as least, any_value(least_together) as least_together,
        any_value(much_together) as much_together
    from held group by topic),
based as (
    select {BASE} as base, * from parts where held_bytes < least and held_bytes >= greatest(least_together // 1000, 1))
select base, least_together, much_together, count(*) as partitions, sum(held_bytes)::bigint as held_bytes,
    sum(storage_bytes)::bigint as storage_bytes, max({{'held_bytes': held_bytes, 'topic': topic}}) as most
from based where base <> topic group by base, least_together, much_together
"""

TOGETHER = """
select base, least_together, sum(partitions)::bigint as partitions, sum(held_bytes)::bigint as held_bytes,
    sum(storage_bytes)::bigint as storage_bytes, max(most) as most,
    sum(held_bytes) >= any_value(much_together) as critical
from in_parts group by base, least_together
having sum(held_bytes) >= any_value(least_together) and sum(partitions) > 1
"""

DETAIL = """
with counted as (select topic, max(ledgers) as ledgers from drilled semi join worst using (topic) group by topic),
ages as (
    select topic, max(age_seconds) as age_seconds from delayed_backlog_ages semi join worst using (topic)
    group by topic)
select worst.*, ledgers, age_seconds from worst left join counted using (topic) left join ages using (topic)
"""

# The bytes held by a subscription are not known without its topic or its cursor.
UNKNOWN = """
with sized as (
    select topic, broker from topics semi join delayed_waiting using (topic, broker) where backlog_bytes is not null),
known as (
    select topic, broker, subscription from subscriptions semi join delayed_waiting using (topic, broker, subscription)
    semi join sized using (topic, broker)
    where entries_since_first_gap is not null and backlog_entries is not null)
select count(*) as count from delayed_waiting anti join known using (topic, broker, subscription)
"""


FOUND = """
select topic as subject, * exclude (topic) from holding
union all by name select base as subject, * exclude (base, most), most as fullest from together
"""


def _evidence(row: Row) -> str:
    held = (
        f"about {bytes_in_words(row['held_bytes'], rounded=True)} of"
        f" {bytes_in_words(row['storage_bytes'], rounded=True)} stored"
    )
    if row["partitions"] is not None:
        return (
            f"{counted(row['partitions'], 'partition')} together keep {held} that are consumed and cannot be deleted,"
            f" as delayed messages wait before them; {row['fullest']['topic']} keeps most of it,"
            f" {bytes_in_words(row['fullest']['held_bytes'], rounded=True)}."
        )
    most = row["most"]
    words = (
        f"Subscription {most['subscription']} waits for {counted(most['backlog_entries'], 'entry', 'entries')}"
        f" ({most['delayed_messages']:,} delayed), but {counted(most['entries'], 'entry follows', 'entries follow')}"
        f" its first unacknowledged one: {held} are consumed and cannot be deleted"
    )
    if row["ledgers"] is not None:
        words += f"; the topic has {counted(row['ledgers'], 'ledger')}"
    if row["age_seconds"] is not None:
        words += f"; its oldest message waits for {seconds_in_words(row['age_seconds'], rounded=True)}"
    return words + "."


def _figures(row: Row) -> Mapping[str, float | None]:
    sizes = {"held_bytes": row["held_bytes"], "storage_bytes": row["storage_bytes"], "partitions": row["partitions"]}
    if row["most"] is None:
        return sizes
    return sizes | {
        "backlog_entries": row["most"]["backlog_entries"],
        "delayed_messages": row["most"]["delayed_messages"],
        "entries_since_first_gap": row["most"]["entries"],
        "ledgers": row["ledgers"],
        "oldest_backlog_age_seconds": row["age_seconds"],
    }


# Judges by the number of uselessly held bytes, not by their share of the storage.
CHECK = RowCheck(
    check_id="delayed-holds-ledgers",
    order=20,
    title="Few delayed messages keep much consumed data from deletion",
    advice=(
        "Confirm it: `pulsar-admin topics stats-internal TOPIC` shows a markDeletePosition in an old ledger.",
        "Send messages with long delays to a topic of their own, apart from those that are consumed at once.",
        "Bound the delay: maxDeliveryDelayInMillis in the namespace's delayedDelivery policy.",
        "Do not limit such a topic's backlog by age or evict it: that loses what is meant to wait.",
        "Offload to tiered storage where the delays must stay.",
    ),
    source="docs/checks/delayed-holds-ledgers.md; apache/pulsar-site#764, apache/pulsar-site#771",
    scope=Scope.NAMESPACE,
    policy=DelayedHoldsLedgersPolicy,
    shards={
        "holding": Query(HOLDING, worst_first="critical desc, held_bytes desc, topic", detail=DETAIL),
        "in_parts": Query(IN_PARTS, worst_first="held_bytes desc, base, most.topic", most=PARTITIONS_KEPT),
        "unknown": Query(UNKNOWN),
        "tally": TALLY,
        **GAP_SHARDS,
    },
    cluster={
        "together": Query(TOGETHER, worst_first="critical desc, held_bytes desc, base"),
        "found": Query(FOUND, worst_first="critical desc, held_bytes desc, subject"),
        **GAP_CLUSTER,
    },
    severity=critical_or_warning,
    subject="subject",
    evidence=_evidence,
    figures=_figures,
    also_cut=("holding", "together"),
    missing=(
        gap,
        if_counted(
            "unknown",
            lambda count: (
                f"What the cursors of {counted(count, 'subscription')} with delayed messages span was not read."
            ),
        ),
    ),
    quiet=lambda queried, _context: (
        f"The {tally_words(queried)} {'keeps' if tally_words(queried).startswith('1 ') else 'keep'} little else from"
        " deletion."
    ),
)
