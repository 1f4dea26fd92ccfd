"""Latency of the metadata store as measured by brokers, and the time lost in its stalls.

The judged time is since the snapshot before, or since the process's start if there is none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.checks.check import Query, RowCheck, if_any, if_none, ranked, silent_in
from pulsar_steward.checks.earlier import ComparingPolicy, growth, in_time, looking_back, since_words
from pulsar_steward.model.measures import STARTED, ZOOKEEPER_VERSION
from pulsar_steward.model.section import number, percent
from pulsar_steward.model.trouble import Harm
from pulsar_steward.model.units import KIB, bytes_in_words, counted, named, seconds_in_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsar_steward.checks.check import CheckContext, Queried, Row


class MetadataLatencyPolicy(ComparingPolicy):
    """Thresholds for the latency of the metadata store as brokers measure it."""

    minimum_operations: int = number(
        20, "operations of a kind since the snapshot before; the mean of fewer says nothing"
    )
    warning_mean_milliseconds: int = number(
        100, "mean of a kind of operation; 2 to 7 on a busy machine, 25 in the first seconds of a broker"
    )
    critical_mean_milliseconds: int = number(1000, "the same, when every topic load is felt")
    settling_minutes: int = number(
        10, "age of a process until which a mean since its start is information only: it is of the start"
    )
    minimum_slow_operations: int = number(10, "operations over a second, or reads that failed; fewer are left alone")
    warning_slow_percent: int = percent(1, "operations over a second, of all of a kind")
    warning_lost_percent: int = number(
        5,
        "time that operations over a second took, of the time between two snapshots (many may wait at once,"
        " so it may be over 100): a warning where some took over 5 s, or where two snapshots in a row show it",
    )
    large_node_kilobytes: int = number(
        1024, "of a topic or cursor, uncompressed, that is named where the store is slow: ZooKeeper's own limit"
    )
    warning_failed_percent: int = percent(1, "reads that failed, of all; one of a node that is not there does not fail")


MILLISECONDS = "pulsar_metadata_store_ops_latency_ms_sum"
OPERATIONS = "pulsar_metadata_store_ops_latency_ms_count"
BUCKETS = "pulsar_metadata_store_ops_latency_ms_bucket"
WAITED = "pulsar_batch_metadata_store_queue_wait_time_ms_sum"
WAITS = "pulsar_batch_metadata_store_queue_wait_time_ms_count"

BOUNDS = (1000, 2000, 5000)
"""Bounds of buckets, in milliseconds, above which an operation is slow; 4.0.7 has no higher bound."""

KEYS = ("source", "source_kind", "store", "operation")
COUNTERS = ("operations", "milliseconds", "failed", *(f"over_{bound}" for bound in BOUNDS))

_COUNT = f"sum(value order by value) filter (series = '{OPERATIONS}')"
_OVER = ", ".join(
    f"{_COUNT} - sum(value order by value) filter (series = '{BUCKETS}' and bound = {bound}) as over_{bound}"
    for bound in BOUNDS
)
_ALL_OVER = ", ".join(f"sum(over_{bound} order by over_{bound}) as over_{bound}" for bound in BOUNDS)


def operations_in(samples: str) -> str:
    """SQL for operations by process, store and kind, all since the process's start.

    The rows have the number and total time of successful operations, the number of failed ones, and how many of both
    took longer than each of `BOUNDS` (null without buckets). A slow failed operation timed out. A fast one mostly met a
    version that somebody else had changed, or a node that was already gone. Parsing JSON is slow, and nearly all
    samples are buckets: only buckets with such a bound somewhere in their text are parsed.
    """
    return f"""
    with samples as (
        select source, source_kind, coalesce(labels_json->>'name', '') as store,
            coalesce(labels_json->>'type', '') as operation, labels_json->>'status' as status, series, value,
            try_cast(labels_json->>'le' as double) as bound
        from {samples}
        where series in ('{MILLISECONDS}', '{OPERATIONS}', '{BUCKETS}', '{STARTED}') and isfinite(value)
            and (series <> '{BUCKETS}' or contains(labels_json, '000'))),
    starts as (select source, source_kind, max(value) as started from samples where series = '{STARTED}' group by all),
    by_outcome as (
        select source, source_kind, store, operation, status, {_COUNT} as counted,
            sum(value order by value) filter (series = '{MILLISECONDS}') as milliseconds, {_OVER}
        from samples where status in ('success', 'fail') group by all),
    summed as (
        select source, source_kind, store, operation,
            coalesce(max(counted) filter (status = 'success'), 0) as operations,
            coalesce(max(milliseconds) filter (status = 'success'), 0) as milliseconds,
            coalesce(max(counted) filter (status = 'fail'), 0) as failed, {_ALL_OVER}
        from by_outcome group by source, source_kind, store, operation)
    select summed.*, started from summed left join starts using (source, source_kind)
    where operations + failed > 0
    """


WAITING = f"""
with sums as (
    select source, coalesce(labels_json->>'name', '') as store,
        sum(value order by value) filter (series = '{WAITED}') as waited,
        sum(value order by value) filter (series = '{WAITS}') as waits
    from process_samples where series in ('{WAITED}', '{WAITS}') group by source, store)
select source, store, waited / waits as wait_ms from sums where waits > 0
"""
"""Mean time since the process's start that an operation waits in the process before it is sent."""

HOLES_IN_STORE = "managedLedgerMaxUnackedRangesToPersistInMetadataStore"
NODE_PART_BYTES = 30
"""Bytes of a ledger, or of an ack hole, in the node of a topic or of a cursor, uncompressed."""

# Beyond that number of ranges, brokers write them into a ledger. Ledgers are known of topics that were looked into.
NODES = f"""
with parts as (
    select broker, topic, max(ledgers) as parts, 'ledger' as part from drilled join topics using (topic)
    where ledgers is not null group by broker, topic
    union all
    select broker, topic || ' subscription ' || subscription, ack_holes, 'ack hole'
    from user_subscriptions join setting('{HOLES_IN_STORE}') using (broker)
    where ack_holes <= try_cast(value as bigint))
select broker as source, topic as node, parts, part from parts
where parts * {NODE_PART_BYTES} >= $large_node_kilobytes * {KIB}
"""
"""Large nodes of the metadata store, by the broker that reads and writes them."""

OLDEST_QUICK_VERSION = (3, 6, 3)
"""Version of ZooKeeper with which answers were quick again for 10,000 clients on a partition (docs/knowledge.md C)."""

OLD_SERVERS = f"""
select source as server, labels_json->>'version' as version from process_samples
where series = '{ZOOKEEPER_VERSION}'
    and string_split(labels_json->>'version', '.')::integer[] < {list(OLDEST_QUICK_VERSION)}
"""
"""ZooKeeper servers that are older than `OLDEST_QUICK_VERSION`."""

SPANS = f"""
with told as ({in_time("timed", "timed_before")}),
spans as ({growth("told", KEYS, COUNTERS)}),
measured as (
    select *, if(grown_operations > 0, grown_milliseconds / grown_operations, null) as mean_ms,
        grown_over_1000 * 100 / nullif(grown_operations + grown_failed, 0) as slow_percent,
        coalesce(grown_over_1000 + grown_over_2000 + 3 * grown_over_5000, 0) as lost_seconds,
        lost_seconds * 100 / nullif(seconds, 0) as lost_percent
    from spans)
select now.*, coalesce(before.grown_over_1000, 0) as slow_before,
    coalesce(before.lost_percent, 0) as lost_percent_before
from measured now left join measured before
    on {" and ".join(f"now.{key} = before.{key}" for key in KEYS)} and before.started = now.started
        and before.moment = now.since and before.since is not null
where now.moment = $now::double
"""
"""Growth of the counters since the snapshot before, or since the start if there is none.

The same for the interval before that. `lost_seconds`: the minimum time of operations over a second, each counted with
the lower bound of its bucket. Many may wait at once for the same stall, so this is not the length of a standstill.
"""

HEARD = f"select distinct source from process_samples where series = '{OPERATIONS}'"

FOUND = """
with judged as (
    select *, coalesce(grown_operations >= $minimum_operations and mean_ms >= $critical_mean_milliseconds, false)
            as standing,
        coalesce(grown_operations >= $minimum_operations and mean_ms >= $warning_mean_milliseconds, false) as late,
        coalesce(since is null and seconds < 60 * $settling_minutes, false) as settling,
        coalesce(grown_over_1000 >= $minimum_slow_operations and slow_percent >= $warning_slow_percent, false)
            as many_slow,
        coalesce(grown_over_1000 >= $minimum_slow_operations and lost_percent >= $warning_lost_percent, false) as lost,
        slow_before >= $minimum_slow_operations and lost_percent_before >= $warning_lost_percent as lost_before,
        coalesce(since is not null and grown_over_5000 >= 1, false) as stalled,
        operation = 'get' and grown_failed >= $minimum_slow_operations
            and grown_failed * 100 >= $warning_failed_percent * (grown_operations + grown_failed) as failing
    from spans),
ranked as (
    select *, case when standing then 2
        when (late and not settling) or many_slow or failing or (lost and (stalled or lost_before)) then 1
        when late or lost or stalled then 0 end as rank
    from judged),
worst as (
    select * from ranked where rank is not null
    qualify row_number() over (
        partition by source, source_kind, store
        order by rank desc, mean_ms desc nulls last, lost_seconds desc, operation desc) = 1)
select worst.*, wait_ms, nodes, (select list(servers order by server) from old_servers servers) as old_servers
from worst left join waiting using (source, store)
    left join (select source, list({'node': node, 'parts': parts, 'part': part} order by parts desc, node) as nodes
        from nodes group by source) using (source)
"""
"""The worst kind of slow operation for each process and store; `rank`: 2 critical, 1 warning, 0 information."""

WORST_FIRST = "rank desc, mean_ms desc nulls last, lost_seconds desc, source, store, source_kind"

JUDGED = """
select count(distinct source) as sources, max(mean_ms) filter (grown_operations >= $minimum_operations) as most
from spans where operations >= $minimum_operations
"""


def _quiet(queried: Queried, context: CheckContext[MetadataLatencyPolicy]) -> str:
    row = queried["judged"].one
    if not row["sources"]:
        return "Nothing was judged."
    if row["most"] is None:
        least = f"fewer than {context.limits.minimum_operations} metadata operations of a kind, and none that stalled"
        return f"Since the snapshot before, {row['sources']:,} process(es) had {least}."
    return f"Metadata operations of {row['sources']:,} process(es) take {row['most']:.0f} ms on average at most."


def _sentence(row: Row) -> str:
    since, saw = since_words(row), f"{row['grown_operations']:,.0f}"
    seen = f"as the {row['source_kind']} {row['source']} saw {saw} of them since {since}"
    took = "failed" if row["mean_ms"] is None else f"took {row['mean_ms']:,.0f} ms on average"
    parts = [f"Operations `{row['operation']}` on the {row['store']} {took}, {seen}"]
    if row["grown_over_1000"] is not None:
        share = f"{row['grown_over_1000']:,.0f} ({row['slow_percent']:.1f} %) took over a second"
        lost = ""
        if row["grown_over_1000"]:
            lost = f", together at least {seconds_in_words(row['lost_seconds'], rounded=True)}"
        stalls = f", {row['grown_over_5000']:,.0f} of them over 5 s" if row["grown_over_5000"] else ""
        parts.append(share + stalls + lost)
    if row["grown_failed"]:
        parts.append(f"{row['grown_failed']:,.0f} failed")
    if row["wait_ms"] is not None:
        waits = f"before they are sent, they wait {row['wait_ms']:,.0f} ms on average"
        parts.append(f"{waits} in the {row['source_kind']} itself")
    return "; ".join(parts) + "." + _large_nodes(row["nodes"] or ()) + _old_servers(row["old_servers"] or ())


def _old_servers(servers: Sequence[Row]) -> str:
    if not servers:
        return ""
    told = named([f"{each['server']} ({each['version']})" for each in servers])
    return f" ZooKeeper is older than {'.'.join(map(str, OLDEST_QUICK_VERSION))} there: {told}."


def _large_nodes(nodes: Sequence[Row]) -> str:
    if not nodes:
        return ""
    told = [f"{each['node']} ({counted(each['parts'], each['part'])})" for each in nodes]
    largest = bytes_in_words(nodes[0]["parts"] * NODE_PART_BYTES, rounded=True)
    return (
        f" Large nodes that it holds there, of up to {largest} where they are not compressed: {named(told)}. An answer"
        " longer than `jute.maxbuffer` breaks its connection, with all that waits on it."
    )


# Judges by the mean of each kind of operation, the time lost in operations over a second, and failed reads.
CHECK = RowCheck(
    check_id="metadata-latency",
    harm=Harm.SLOW,
    order=30,
    title="The metadata store answers slowly, stalls, or fails",
    advice=(
        "ZooKeeper: ask each server `echo mntr | nc HOST 2181` (zk_avg_latency, zk_outstanding_requests, zk_fsync...).",
        "ZooKeeper: give its transaction log a disk of its own, and look at the collector pauses of its process.",
        "Oxia: look at its own metrics; these figures are what the brokers see of it.",
        "Where most of the time is spent waiting in the broker, look at that broker's CPU and collections first.",
        "Upgrade ZooKeeper 3.4 (ZOOKEEPER-2044).",
        "Large nodes: compress them (`managedLedgerInfoCompressionType`, `managedCursorInfoCompressionType`).",
        "Large nodes: roll ledgers over in hours, not minutes, and look at messages that are not acknowledged.",
    ),
    source="docs/knowledge.md C; ZOOKEEPER-2044",
    policy=MetadataLatencyPolicy,
    shards={
        "timed": Query(operations_in("process_samples")),
        "waiting": Query(WAITING),
        "heard": Query(HEARD),
        "nodes": Query(NODES, worst_first="parts desc, node, source"),
        "old_servers": Query(OLD_SERVERS),
    },
    earlier={"timed_before": looking_back(operations_in("metrics"))},
    cluster={
        "spans": Query(SPANS),
        "found": Query(FOUND, worst_first=WORST_FIRST),
        "judged": Query(JUDGED),
        "silent": silent_in("heard"),
        "too_few": Query("select source from timed group by source having max(operations) < $minimum_operations"),
    },
    severity=ranked,
    subject="source",
    evidence=_sentence,
    figures=lambda row: {
        "failed_operations": row["grown_failed"],
        "operations": row["grown_operations"],
        "mean_milliseconds": row["mean_ms"],
        "seconds": row["seconds"],
        "slow_operations": row["grown_over_1000"],
        "over_5_seconds_operations": row["grown_over_5000"],
        "waiting_milliseconds": row["wait_ms"],
        "lost_seconds": None if row["grown_over_1000"] is None else row["lost_seconds"],
    },
    missing=(
        if_any("silent", "The snapshot has no metadata latencies of {names}."),
        if_any("too_few", "Too few metadata operations yet (below {limits.minimum_operations}) to judge {names}."),
        if_none("timed", "The snapshot has no metadata latencies."),
    ),
    quiet=_quiet,
)
