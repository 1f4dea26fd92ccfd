"""The index of delayed messages: brokers whose memory it takes, and topics that multiply it by their subscriptions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.checks.check import Query, RowCheck, Scope, critical_or_warning, ranked
from pulsar_steward.checks.delayed.waiting import (
    BASE,
    BUCKET_TRACKER,
    BY_BROKER,
    GAP_CLUSTER,
    GAP_SHARDS,
    PARTITIONS_KEPT,
    TALLY,
    TRACKER,
    gap,
    tally_words,
)
from pulsar_steward.model.measures import DELAYED_INDEX
from pulsar_steward.model.section import Section, number, percent
from pulsar_steward.model.trouble import Harm
from pulsar_steward.model.units import bytes_in_words, counted, named

if TYPE_CHECKING:
    from pulsar_steward.checks.check import CheckContext, Queried, Row


class DelayedIndexMemoryPolicy(Section):
    """Thresholds for the memory that the index of delayed messages takes from a broker."""

    index_bytes_per_message: int = number(
        24, "three longs an entry (time, ledger, entry), where the broker tells no bytes"
    )
    warning_percent_of_memory: int = percent(
        10, "of the smaller of heap and direct memory; caches and buffers need the most of it"
    )
    critical_percent_of_memory: int = percent(30, "the same, where growing doubles a queue's memory for a moment")
    warning_messages_in_memory: int = number(
        10_000_000, "delayed messages of a broker that every load reads again, minutes long"
    )


TOLD = f"""
select source as broker, sum(try_cast(trunc(value) as bigint))::bigint as bytes from metrics
where series = '{DELAYED_INDEX}' and subscription is null and value > 0 and of_users(topic)
group by source
"""

# Up to Pulsar 4.0 the in-memory index is in direct memory, later on the heap: the smaller of the two is judged.
MEMORY = """
select source as broker, min(try_cast(trunc(value) as bigint)) as bytes from metrics
where series in ('jvm_memory_bytes_max', 'jvm_memory_max_bytes', 'jvm_memory_direct_bytes_max')
    and source_kind = 'broker' and value >= 1
    and (series = 'jvm_memory_direct_bytes_max' or labels_json->>'area' = 'heap')
group by source
"""

# The default tracker holds all entries in memory, which is assumed also of a tracker that was not read. Absurd numbers
# of messages are bounded, so that the product fits its type.
INDEXES = f"""
with messages_of as (select broker, sum(messages)::bigint as messages from delayed group by broker),
bytes_of as (select broker, sum(bytes)::bigint as told_bytes from told group by broker having sum(bytes) > 0),
limit_of as (select broker, min(bytes) as limit_bytes from memory group by broker),
tracker_of as (select broker, max(value) as tracker from setting('{TRACKER}') group by broker)
select broker, coalesce(messages, 0) as messages, coalesce(told_bytes, 0) as told_bytes, limit_bytes, tracker,
    tracker is distinct from '{BUCKET_TRACKER}' as in_memory, $index_bytes_per_message as bytes_per_message,
    greatest(coalesce(told_bytes, 0),
        if(in_memory, least(coalesce(messages, 0), {10**15}) * $index_bytes_per_message, 0))::bigint as index_bytes
from messages_of full join bytes_of using (broker) left join limit_of using (broker) left join tracker_of using (broker)
"""

LARGE = """
select *, case
    when index_bytes::hugeint * 100 >= limit_bytes::hugeint * $critical_percent_of_memory then 2
    when index_bytes::hugeint * 100 >= limit_bytes::hugeint * $warning_percent_of_memory
        or (in_memory and messages >= $warning_messages_in_memory) then 1 end as rank
from indexes where rank is not null
"""


def _memory_words(row: Row) -> str:
    words = (
        f"The index of {counted(row['messages'], 'delayed message')} takes"
        f" {bytes_in_words(row['index_bytes'], rounded=True)}"
    )
    if row["index_bytes"] > row["told_bytes"]:
        words += f" (estimated at {row['bytes_per_message']} bytes a message)"
    if row["limit_bytes"] is None:
        words += "; how much memory the broker has is not known"
    else:
        words += (
            f", {row['index_bytes'] * 100 // row['limit_bytes']} % of"
            f" {bytes_in_words(row['limit_bytes'], rounded=True)}, the smaller of its heap and direct memory as far as"
            " told"
        )
    if not row["in_memory"]:
        return f"{words}; the bucket tracker holds only a part of it in memory."
    if row["tracker"] is None:
        return f"{words}; which tracker it uses is not known, by default it is the in-memory one."
    return f"{words}; the in-memory tracker reads the delayed backlog again whenever a topic is loaded."


def _memory_unknown(queried: Queried, _context: CheckContext[DelayedIndexMemoryPolicy]) -> str | None:
    unlimited = [row["broker"] for row in queried["indexes"].rows if row["limit_bytes"] is None]
    return gap(queried) or (f"Brokers that do not tell their memory: {named(unlimited)}." if unlimited else None)


def _memory_quiet(queried: Queried, _context: CheckContext[DelayedIndexMemoryPolicy]) -> str:
    indexes = queried["indexes"].rows
    taken = bytes_in_words(sum(row["index_bytes"] for row in indexes), rounded=True)
    return f"The index of delayed messages takes {taken} on {counted(len(indexes), 'broker')}."


DELAYED_INDEX_MEMORY = RowCheck(
    check_id="delayed-index-memory",
    beware={Harm.SOON: "Do not restart brokers: they would read all delayed messages again."},
    harm=Harm.SOON,
    order=30,
    title="The index of delayed messages takes much of a broker's memory",
    advice=(
        "Use the bucket tracker (delayedDeliveryTrackerFactoryClassName, Pulsar 3.0 on); restart brokers one by one.",
        "Until then do not unload bundles of topics with a large delayed backlog: it is read again each time.",
        "Spread the topics with most delayed messages over several brokers.",
        "Give the broker more direct memory (up to Pulsar 4.0) or heap (later), where the index lives.",
    ),
    source="docs/checks/delayed-index-memory.md; docs/knowledge.md D",
    policy=DelayedIndexMemoryPolicy,
    shards={"delayed": BY_BROKER, "told": Query(TOLD), "memory": Query(MEMORY), **GAP_SHARDS},
    cluster={
        "indexes": Query(INDEXES),
        "found": Query(LARGE, worst_first="rank desc, index_bytes desc, broker"),
        **GAP_CLUSTER,
    },
    severity=ranked,
    subject="broker",
    evidence=_memory_words,
    figures=lambda row: {
        "delayed_messages": row["messages"],
        "index_bytes": row["index_bytes"],
        "memory_limit_bytes": row["limit_bytes"],
        "share_percent": row["limit_bytes"] and row["index_bytes"] * 100 // row["limit_bytes"],
    },
    missing=_memory_unknown,
    quiet=_memory_quiet,
)


class DelayedIndexMultipliedPolicy(Section):
    """Thresholds for delayed messages that several subscriptions of one topic index."""

    minimum_subscriptions: int = number(2, "subscriptions with delayed messages; one multiplies nothing", ge=2)
    warning_extra_index_entries: int = number(
        1_000_000, "entries beyond those of the fullest subscription: 24 MB of index for nothing"
    )
    critical_extra_index_entries: int = number(
        20_000_000, "the same: half a gigabyte, and as many entries to read at each load"
    )
    warning_extra_index_entries_of_partitions: int = number(
        20_000_000,
        "the same, summed over partitions of one topic that are each below `warning_extra_index_entries`;"
        " those below a thousandth of this are left out",
    )
    critical_extra_index_entries_of_partitions: int = number(
        200_000_000, "the same: five gigabytes over the brokers that hold them"
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

REPEATED = """
select topic as subject, * exclude (topic), $delayed_index_memory__index_bytes_per_message as bytes_per_entry
from multiplied
union all by name
select base as subject, *, $delayed_index_memory__index_bytes_per_message as bytes_per_entry from together
"""


def _multiplied_words(row: Row) -> str:
    more = f"about {bytes_in_words(row['extra'] * row['bytes_per_entry'], rounded=True)} of index more"
    entries = f"{counted(row['entries'], 'delayed message')}, {row['extra']:,} more than"
    if row["partitions"] is None:
        return (
            f"{counted(row['subscriptions'], 'subscription indexes', 'subscriptions index')} {entries}"
            f" {row['subscription']} alone ({row['most']:,}): {more}, at {row['bytes_per_entry']} bytes an entry."
        )
    return (
        f"Up to {counted(row['subscriptions'], 'subscription')} of {counted(row['partitions'], 'partition')}"
        f" {'indexes' if row['subscriptions'] == 1 else 'index'} {entries} the fullest of each partition alone: {more}"
        f" on their brokers together, at {row['bytes_per_entry']} bytes an entry."
    )


# Each topic is judged by its indexed entries beyond those of the fullest subscription.
DELAYED_INDEX_MULTIPLIED = RowCheck(
    check_id="delayed-index-multiplied",
    harm=Harm.SOON,
    explained_by=("delayed-index-memory",),
    order=40,
    title="Several subscriptions of a topic index the same delayed messages",
    advice=(
        "Delete subscriptions that nobody uses: `pulsar-admin topics unsubscribe TOPIC -s SUB`.",
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
    cluster={
        "together": Query(TOGETHER, worst_first="critical desc, extra desc, base"),
        "found": Query(REPEATED, worst_first="critical desc, extra desc, subject, broker"),
        **GAP_CLUSTER,
    },
    severity=critical_or_warning,
    subject="subject",
    evidence=_multiplied_words,
    figures=lambda row: {
        "extra_index_entries": row["extra"],
        "index_entries": row["entries"],
        "most_delayed_messages": row["most"],
        "partitions": row["partitions"],
        "subscriptions": row["subscriptions"],
    },
    also_cut=("multiplied", "together"),
    missing=gap,
    quiet=lambda queried, _context: (
        f"No topic repeats many of the {tally_words(queried, 'index entry', 'index entries')}."
    ),
)
