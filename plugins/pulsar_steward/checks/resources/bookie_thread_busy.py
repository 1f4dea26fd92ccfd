"""BookKeeper threads that cannot keep up, by their queues if exported, else by the latency of writes.

A queue is direct evidence, and names the thread. Slow writes are indirect: a busy thread, a slow disk and a slow
network look the same from the broker. Writes that never end are in no latency; entries pending in two snapshots show
them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pulsar_steward.checks.check import Query, RowCheck, if_any, ranked, silent_in
from pulsar_steward.checks.earlier import (
    LOOKS,
    growth,
    in_time,
    looking_back,
    of_previous,
    since_words,
)
from pulsar_steward.checks.resources.slowness import (
    WRITES,
    SlowEventsPolicy,
    of_event,
    slow_before,
    slow_figures,
    slow_of,
    slow_words,
)
from pulsar_steward.model.measures import BOOKIE_READS_REFUSED, BOOKIE_WRITE_CACHE, BOOKIE_WRITES_REFUSED, STARTED
from pulsar_steward.model.section import number, percent
from pulsar_steward.model.trouble import Harm
from pulsar_steward.model.units import counted

if TYPE_CHECKING:
    from pulsar_steward.checks.check import CheckContext, Queried, Row

BOOKIE_QUEUE = "bookkeeper_server_thread_executor_queue"
"""Series of a bookie; its label `thread` names the thread, as ``BookieWriteThreadPool-OrderedExecutor-0-0``."""

BROKER_QUEUE = "^pulsar_managedLedger_client_thread_(.+)_thread_executor_queue$"
"""Series of a broker's BookKeeper client; its name contains the thread.

It is exported if `bookkeeperClientExposeStatsToPrometheus` is on.
"""

QUEUES = f"""
with shown as (
    select source, source_kind, value as queued,
        coalesce(if(series = '{BOOKIE_QUEUE}', labels_json->>'thread', null),
            regexp_extract(series, '{BROKER_QUEUE}', 1)) as thread
    from process_samples where series = '{BOOKIE_QUEUE}' or regexp_matches(series, '{BROKER_QUEUE}')),
pooled as (
    select *, sum(queued) over pool as all_queued, count(*) over pool as threads
    from (select *, regexp_replace(thread, '[-_]OrderedExecutor.*$', '') as pool from shown)
    window pool as (partition by source, pool))
select source, source_kind, pool, thread, queued,
    if(threads > 1, (all_queued - queued) / (threads - 1), null) as others_mean
from pooled
"""
"""Waiting tasks of each thread, and of the other threads of its pool; whole numbers, so that order does not matter."""

REFUSING = {"BookieWriteThreadPool": BOOKIE_WRITES_REFUSED, "BookieReadThreadPool": BOOKIE_READS_REFUSED}
"""Settings of a bookie, by the pool of its threads."""

BUSY = f"""
with queues as ({QUEUES}),
limits as (
    select source, series as setting, max(value)::bigint as refuses_from,
        greatest($least_queued_tasks, refuses_from / 10) as few
    from process_samples
    where series in ({", ".join(f"'{setting}'" for setting in REFUSING.values())}) and value > 0 group by all)
select queues.* exclude (pool), refuses_from, setting,
    if(queued >= least($critical_queued_tasks, 5 * few), 2, 1) as rank
from queues left join limits on queues.source = limits.source
    and setting = case pool {" ".join(f"when '{pool}' then '{setting}'" for pool, setting in REFUSING.items())} end
where queued >= least($warning_queued_tasks, few)
"""
"""Threads for which many tasks wait; fewer are many where the bookie refuses requests earlier than by default."""

SLOW_BEFORE = slow_before("writes", WRITES)
SLOW = slow_of("writes", "slow_before")
"""Brokers with slow writes."""

# As many as are produced in the time limit, in seconds: a busy topic always has some pending. Rates count messages, and
# an entry has one or more of them, so the real time is at least as long. An unknown rate is ignored.
_WAITING = """
raw_topics.pending_add_entries > 0
    and raw_topics.pending_add_entries >= raw_topics.message_rate_in * $minimum_waiting_seconds
"""

MAX_TOPICS = 10_000
"""Topics that are looked up in the snapshot before, the ones with most pending entries."""

WAITING = f"select topic, broker, pending_add_entries from raw_topics where {_WAITING}"
LONGEST_FIRST = "pending_add_entries desc, topic, broker"

WAITING_BEFORE = f"select topic from raw_topics semi join waiting using (topic) where {_WAITING}"

WRITTEN_TO = f"""
select broker, count_if(producers > 0 or message_rate_in > 0 or coalesce({_WAITING}, false))::bigint as topics,
    count_if(coalesce({_WAITING}, false))::bigint as waiting
from raw_topics where broker is not null group by broker
"""

STUCK = f"""
with still as (
    select broker, count(*) as stuck, sum(pending_add_entries)::bigint as entries,
        first(topic order by {LONGEST_FIRST}) as topic
    from waiting semi join {of_previous("waiting_before")} using (topic) group by broker),
of_brokers as (
    select broker, sum(topics)::bigint as topics, sum(waiting)::bigint as waiting from written_to group by broker),
judged as (
    select broker as source, topics, waiting, coalesce(stuck, 0) as stuck, entries, topic,
        waiting >= $minimum_waiting_topics and waiting * 100 >= $waiting_percent * topics as many
    from of_brokers left join still using (broker))
select *, case when stuck >= $minimum_waiting_topics and stuck * 100 >= $waiting_percent * topics then 2
    when stuck > 0 then 1 else 0 end as rank
from judged where stuck > 0 or many
"""
"""Brokers with pending writes: `waiting` topics have them now, `stuck` ones in the snapshot before too.

`rank`: 2 critical, 1 warning, 0 information, as one moment may be a single hiccup.
"""

THROTTLED = "bookie_throttled_write_requests"
REJECTED = "bookie_rejected_write_requests"
"""Counters of a bookie: writes that found its write cache full, and those that were refused after they had waited.

They are `DbLedgerStorageStats` of BookKeeper.
"""


def _caches_in(samples: str) -> str:
    """SQL for the writes that found the write cache of a bookie full, since its start."""
    return f"""
    select source, max(value) filter (series = '{STARTED}') as started,
        sum(value) filter (series = '{THROTTLED}')::bigint as throttled,
        sum(value) filter (series = '{REJECTED}')::bigint as rejected,
        max(value) filter (series = '{BOOKIE_WRITE_CACHE}')::bigint as cache_mb
    from {samples} where source_kind = 'bookie' and isfinite(value)
        and series in ('{STARTED}', '{THROTTLED}', '{REJECTED}', '{BOOKIE_WRITE_CACHE}')
    group by source having throttled is not null or rejected is not null
    """


CACHES = f"""
with moments as ({in_time("caches_now", "caches_before")}),
grown as ({growth("moments", ("source",), ("throttled", "rejected"))})
select source, since, seconds, coalesce(grown_throttled, 0) as throttled, coalesce(grown_rejected, 0) as rejected,
    cache_mb, if(grown_rejected > 0, 1, 0) as rank
from grown where moment = $now and since is not null and (grown_throttled > 0 or grown_rejected > 0)
"""
"""Bookies whose write cache was full since an earlier snapshot. `rank`: 1 if writes were refused, else 0."""


JOURNAL = "bookie_journal_JOURNAL_ADD_ENTRY"
"""Summary of a bookie in milliseconds, of the last minute: how long an entry took to be on its journal's disk."""


def _journals_in(samples: str) -> str:
    """SQL for bookies of which one entry in a thousand took so long to be on the journal's disk."""
    return f"""
    select source, max(value) as journal_ms from {samples}
    where source_kind = 'bookie' and series = '{JOURNAL}' and labels_json->>'quantile' = '0.999'
        and labels_json->>'success' = 'true' and isfinite(value)
    group by source
    """


JOURNALS = f"""
with judged as (
    select journals_now.*, before.journal_ms as before_ms,
        coalesce(before.journal_ms >= $slow_journal_milliseconds, false) as again,
        exists (select 1 from slow where rank > 0) as felt,
        (select max(journal_ms) from journals_now quick where journal_ms < $slow_journal_milliseconds) as quick_ms
    from journals_now left join {of_previous("journals_before")} before using (source))
select *, again::integer + felt::integer as rank from judged where journal_ms >= $slow_journal_milliseconds
"""
"""Bookies with a slow journal. `rank`: 1 if the snapshot before shows it, or brokers' writes are slow; 2 if both."""


class BookieThreadBusyPolicy(SlowEventsPolicy):
    """Thresholds for threads of BookKeeper, in bookies and in brokers, that cannot keep up."""

    warning_queued_tasks: int = number(
        1000, "tasks that wait for one thread, or a tenth of the number from which its bookie refuses further ones"
    )
    critical_queued_tasks: int = number(5000, "the same, or half of that number")
    least_queued_tasks: int = number(
        100, "tasks that are no matter, even if the bookie refuses so many; critical from five times as many on"
    )
    minimum_waiting_seconds: int = number(
        1, "entries of a topic that wait to be written, as seconds of what is produced to it"
    )
    minimum_waiting_topics: int = number(
        20, "topics of a broker with such entries at once, for information; critical if they stay"
    )
    slow_journal_milliseconds: int = number(
        1000, "that one in a thousand entries took to be on a bookie's journal disk, or more, in the last minute"
    )
    waiting_percent: int = percent(50, "of a broker's topics that are written to, that these have to be besides")


FOUND = """
select *, 'queue' as kind from busy
union all by name
select *, 'slow' as kind from slow
union all by name
select *, 'stuck' as kind from stuck
union all by name
select *, 'cache' as kind from caches
union all by name
select *, 'journal' as kind from journals
"""
"""Busy threads (each shard returned its worst), brokers whose writes are slow or do not end, and bookies
whose write cache was full or whose journal is slow.
"""

# With equal severity: first bookies whose journal is slow, the culprits; then writes that do not end, by the number of
# topics; then slow writes, the slowest first; then the longest queues.
WORST_FIRST = """
rank desc, journal_ms desc nulls last, stuck desc nulls last, waiting desc nulls last,
    lost_percent + slow_percent desc nulls last, queued desc nulls last, source, thread, source_kind
"""


def _quiet(queried: Queried, _context: CheckContext[BookieThreadBusyPolicy]) -> str:
    writes = queried["writes"].rows
    slow, rate = max((row["slow_percent"] for row in writes), default=0.0), math.fsum(row["rate"] for row in writes)
    words = f"Of {rate:,.0f} writes to bookies a second, at most {slow:.1f} % on any broker took over 200 ms"
    shown = [row for row in queried["shown"].rows if row["threads"]]
    if not shown:
        return f"{words}; the queues of single threads are not in the snapshot."
    threads, most = sum(row["threads"] for row in shown), max(row["most"] for row in shown)
    return f"{words}; of {counted(threads, 'thread')}, the busiest has {counted(most, 'task')} waiting."


def _told(row: Row) -> tuple[str, dict[str, int]]:
    """Evidence and figures of a row, by its kind."""
    source = row["source"]
    if row["kind"] == "slow":
        words = slow_words(row, f"{row['rate']:,.0f} writes a second from broker {source} to bookies", "writes")
        words += ": indirect evidence of a busy thread, a slow disk or the network"
        figures = slow_figures(row, "writes_per_second")
    elif row["kind"] == "queue":
        tasks, figures = counted(row["queued"], "task waits", "tasks wait"), {"queued_tasks": int(row["queued"])}
        words = f"{tasks} for thread {row['thread']} of the {row['source_kind']} {source}"
        mean = row["others_mean"]
        words += (
            ", the only one of its pool" if mean is None else f"; for the others of its pool {mean:,.0f} on average"
        )
        if row["refuses_from"] is not None:
            words += f"; further requests are refused from {row['refuses_from']:,} on ({row['setting']})"
    elif row["kind"] == "journal":
        figures = {"journal_milliseconds": int(row["journal_ms"])}
        words = (
            f"In the last minute, the journal of bookie {source} took {row['journal_ms']:,.0f} ms or more to write one"
            " entry in a thousand to its disk"
        )
        if row["quick_ms"] is not None:
            words += f"; those that are quick took {row['quick_ms']:,.0f} ms at most"
        if row["before_ms"] is not None:
            words += f"; in the snapshot before {row['before_ms']:,.0f} ms"
    elif row["kind"] == "cache":
        figures = {"writes_rejected": int(row["rejected"]), "writes_throttled": int(row["throttled"])}
        size = f" ({row['cache_mb']:,} MiB, {BOOKIE_WRITE_CACHE})" if row["cache_mb"] else ""
        words = (
            f"The write cache of bookie {source}{size} was full for {counted(figures['writes_throttled'], 'write')}"
            f" since {since_words(row)}, which waited until it was flushed; {figures['writes_rejected']:,} were refused"
        )
    else:
        figures = {"topics_stuck": row["stuck"], "topics_waiting": row["waiting"], "topics_written_to": row["topics"]}
        still = "none of them did in the snapshot before"
        if row["stuck"]:
            figures["entries_stuck"] = row["entries"]
            still = (
                f"those of {row['stuck']:,} did in the snapshot before too"
                f" ({counted(row['entries'], 'entry', 'entries')}, most of them of {row['topic']}): these writes are"
                " stuck"
            )
        words = (
            f"On broker {source}, entries of {row['waiting']:,} of {counted(row['topics'], 'topic')} with writes wait"
            f" for bookies, for longer than writes usually take; {still}"
        )
    return f"{words}.", figures


# Judges by the queues of threads if exported, by the latency of writes, and by writes that do not end.
CHECK = RowCheck(
    check_id="bookie-thread-busy",
    harm=Harm.SLOW,
    order=50,
    title="A thread of BookKeeper, or a bookie as a whole, cannot keep up",
    advice=(
        "Find the thread: `top -H -p PID`, then `jstack PID`, for BookKeeperClientWorker, bookkeeper-io, BookieWrite*.",
        "Look for full collections of bookies and ZooKeeper first (check gc-pressure), then at the journal's disk.",
        "One ledger is always served by one thread: give the busiest topics more partitions.",
        "Give more threads: `bookkeeperClientNumWorkerThreads`, `bookkeeperClientNumIoThreads`.",
        "At bookies: `numAddWorkerThreads`, `numJournalCallbackThreads`; and look at E, QW and QA.",
        "A slow journal: look at its disk (`iostat -x 5`): journal and ledgers apart, reads that catch up, its wear.",
        "Take a bookie whose disk stays slow out of the write path: read-only first, then copy and replace it.",
        "A write cache that was full: look at the ledger disks, then raise `dbStorage_writeCacheMaxSizeMb`.",
        "Where writes are stuck: `pulsar-admin topics stats-internal TOPIC` (state, pendingAddEntriesCount).",
    ),
    source="docs/knowledge.md C: one busy bookkeeper-io thread; apache/pulsar#3347",
    policy=BookieThreadBusyPolicy,
    shards={
        "busy": Query(BUSY, worst_first="queued desc, source, thread, source_kind"),
        "shown": Query(f"with queues as ({QUEUES}) select count(*) as threads, max(queued) as most from queues"),
        "writes": Query(of_event(WRITES)),
        "waiting": Query(WAITING, worst_first=LONGEST_FIRST, most=MAX_TOPICS),
        "written_to": Query(WRITTEN_TO),
        "caches_now": Query(_caches_in("process_samples")),
        "journals_now": Query(_journals_in("process_samples")),
    },
    earlier={
        "looks": LOOKS,
        "slow_before": looking_back(SLOW_BEFORE),
        "waiting_before": looking_back(WAITING_BEFORE),
        "caches_before": looking_back(_caches_in("metrics")),
        "journals_before": looking_back(_journals_in("metrics")),
    },
    cluster={
        "slow": Query(SLOW),
        "stuck": Query(STUCK),
        "caches": Query(CACHES),
        "journals": Query(JOURNALS),
        "found": Query(FOUND, worst_first=WORST_FIRST),
        "silent": silent_in("writes"),
    },
    severity=ranked,
    subject="source",
    evidence=lambda row: _told(row)[0],
    figures=lambda row: _told(row)[1],
    also_cut=("busy",),
    missing=(
        if_any("silent", "The snapshot has no latencies of writes to bookies of {names}."),
        lambda queried, _context: (
            None
            if any(row["threads"] for row in queried["shown"].rows)
            or any(row["rate"] > 0 for row in queried["writes"].rows)
            else "Nothing was written to bookies in the last minute, and the queues of threads are not in the snapshot."
        ),
    ),
    quiet=_quiet,
)
