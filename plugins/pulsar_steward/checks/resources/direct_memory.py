"""Direct memory of brokers and bookies, and what brokers promise of it; thread pools that are small for their load."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.checks.check import Check, Judgement, Query, RowCheck, critical_or_warning, if_any, if_none
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.measures import BOOKIE_READ_CACHE, BOOKIE_WRITE_CACHE
from pulsar_steward.model.section import Section, number, percent
from pulsar_steward.model.trouble import Harm
from pulsar_steward.model.units import MIB, bytes_in_words, counted, named, throughput_in_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pulsar_steward.checks.check import CheckContext, Queried, Row
    from pulsar_steward.model.finding import Finding


class DirectMemoryPressurePolicy(Section):
    """Thresholds for direct memory, which holds messages in transit."""

    warning_percent: int = percent(
        85, "used of the limit; the pool keeps what it took, so 50 to 70 are usual under load"
    )
    critical_percent: int = percent(95, "the same, when the next chunk may fail")


USED = "jvm_memory_direct_bytes_used"
LIMIT = "jvm_memory_direct_bytes_max"

_CACHES = {"write_cache": BOOKIE_WRITE_CACHE, "read_cache": BOOKIE_READ_CACHE}
_FIGURES = {"used_bytes": USED, "limit_bytes": LIMIT, **_CACHES}

MEASURED = f"""
select * from (
    select source, source_kind,
        {", ".join(f"max(value) filter (series = '{series}') as {name}" for name, series in _FIGURES.items())}
    from process_samples where series in ({", ".join(f"'{series}'" for series in _FIGURES.values())})
    group by source, source_kind)
where limit_bytes > 0 and used_bytes is not null
"""

MEMORY = """
select source, coalesce(source_kind, 'broker') as kind, used_bytes, limit_bytes, write_cache, read_cache,
    coalesce(used_bytes * 100 / limit_bytes, direct_memory_percent) as percent
from measured full join (select broker as source, direct_memory_percent from brokers where read) using (source)
"""
"""Usage of the direct memory of each process: by its metrics, else by its load report.

The percentage is null if neither has it; the bytes are null if only the load report has it.
"""

FOUND = "select *, percent >= $critical_percent as critical from memory where percent >= $warning_percent"


def _evidence(row: Row) -> str:
    known = row["used_bytes"] is not None
    of_limit = f" ({row['used_bytes'] / MIB:,.0f} of {row['limit_bytes'] / MIB:,.0f} MiB)" if known else ""
    set_there = [f"{setting}={row[name]:.0f}" for name, setting in _CACHES.items() if row[name] is not None]
    within = f", with {' and '.join(set_there)}" if set_there else ""
    return f"{row['source']} ({row['kind']}) has taken {row['percent']:.0f} % of its direct memory{of_limit}{within}."


def _quiet(queried: Queried, _context: CheckContext[DirectMemoryPressurePolicy]) -> str:
    rows = queried["memory"].rows
    known = [row["percent"] for row in rows if row["percent"] is not None]
    fullest = f"Of {len(rows):,} process(es), the fullest uses {max(known, default=0):.0f} % of its direct memory."
    return fullest if known else "Nothing was judged."


# Judges only the usage near the limit: the pool keeps all that it ever allocated.
DIRECT_MEMORY_PRESSURE = RowCheck(
    check_id="direct-memory-pressure",
    harm=Harm.SLOW,
    order=20,
    title="Direct memory is nearly used up",
    advice=(
        "Raise `-XX:MaxDirectMemorySize`, within what the machine or container has.",
        "On a broker, lower `managedLedgerCacheSizeMB` or `maxMessagePublishBufferSizeInMB`, which are taken from it.",
        "On a bookie, lower `dbStorage_writeCacheMaxSizeMb` or `dbStorage_readAheadCacheMaxSizeMb`.",
        "Look for `OutOfDirectMemoryError` in its log: then writes are already failing.",
    ),
    source="docs/knowledge.md C, step 1: resources; apache/pulsar#21168",
    policy=DirectMemoryPressurePolicy,
    shards={"measured": Query(MEASURED)},
    cluster={
        "memory": Query(MEMORY),
        "found": Query(FOUND, worst_first="percent desc, source, kind"),
        "untold": Query("select source from memory where percent is null"),
    },
    severity=critical_or_warning,
    subject="source",
    evidence=_evidence,
    figures=("percent", "limit_bytes", "used_bytes"),
    missing=(
        if_any("untold", "Neither metrics nor load report tell the direct memory of {names}."),
        if_none("memory", "No direct memory was read of any process."),
    ),
    quiet=_quiet,
)


class EntryCacheSizePolicy(Section):
    """Thresholds for entry caches and thread pools."""

    warning_promised_percent: int = number(
        95, "of direct memory, promised to cache, publishing and reads; Pulsar's defaults: 70 to 85"
    )
    critical_promised_percent: int = number(150, "the same, when two of them at once do not fit")
    warning_cached_milliseconds: int = number(
        250, "of what is published, that the cache holds: who reads later than that goes to bookies"
    )
    minimum_megabytes_per_second: int = number(
        1, "published on a broker, or sent to consumers; below it a cache does not matter"
    )
    information_topics_per_thread: int = number(
        10_000, "topics of a broker for each thread of a pool in which a topic has one thread"
    )
    information_connections_per_thread: int = number(5000, "connections of a broker for each of its IO threads")


CACHE = "managedLedgerCacheSizeMB"
EVICTION = "managedLedgerCacheEvictionTimeThresholdMillis"
PUBLISHES = "maxMessagePublishBufferSizeInMB"
READS = "managedLedgerMaxReadsInFlightSizeInMB"
EXECUTORS = "numOrderedExecutorThreads"
WORKERS = "bookkeeperClientNumWorkerThreads"
IO_THREADS = "numIOThreads"
CONNECTIONS = "pulsar_active_connections"

TOLD = f"""
select source as broker, max(value) filter (series = '{LIMIT}') as direct_bytes,
    max(value) filter (series = '{CONNECTIONS}') as connections
from process_samples where source_kind = 'broker' and series in ('{LIMIT}', '{CONNECTIONS}') group by source
"""


def _number(key: str) -> str:
    return f"max(try_cast(trim(value) as bigint)) filter (key = '{key}')"


# Below 0, and 0 for reads, mean no limit: they promise no amount that could be counted.
SIZES = f"""
with settings as (
    select broker, {_number(CACHE)} as cache_mb, {_number(EVICTION)} as eviction_ms,
        coalesce(greatest({_number(PUBLISHES)}, 0), 0) as publishes_mb,
        coalesce(greatest({_number(READS)}, 0), 0) as reads_mb,
        {_number(EXECUTORS)} as executors, {_number(WORKERS)} as workers, {_number(IO_THREADS)} as io_threads
    from configuration
    where key in ('{CACHE}', '{EVICTION}', '{PUBLISHES}', '{READS}', '{EXECUTORS}', '{WORKERS}', '{IO_THREADS}')
    group by broker)
select brokers.broker, settings.* exclude (broker), direct_bytes, connections, topics, processors,
    coalesce(throughput_in_bytes, 0) as in_bytes, coalesce(throughput_out_bytes, 0) as out_bytes,
    case when cache_mb is not null
        then least(9e18, (greatest(cache_mb, 0)::double + publishes_mb + reads_mb) * {MIB}) end as promised_bytes,
    case when promised_bytes is not null and direct_bytes > 0
        then least(9e18, promised_bytes * 100 / direct_bytes) end as promised_percent,
    case when cache_mb is not null and throughput_in_bytes > 0
        then least(9e18, greatest(cache_mb, 0)::double * {MIB} * 1000 / throughput_in_bytes) end as cached_ms
from brokers left join settings using (broker) left join told using (broker) where read
"""


Told = tuple[Severity, str, dict[str, int]]
"""Severity, evidence and figures of a finding about a broker."""


def judge(queried: Queried, context: CheckContext[EntryCacheSizePolicy]) -> Judgement:
    """Judges each broker by its promised share of direct memory, the time that its cache covers, and its threads."""
    rows = queried["sizes"].rows
    found = [
        ENTRY_CACHE_SIZE.finding(severity=severity, subject=row["broker"], evidence=words, figures=figures)
        for row in rows
        for judged in (_promised, _cached, _threads)
        for severity, words, figures in judged(row, context.limits)
    ]
    found.sort(key=lambda finding: (finding.subject, finding.evidence))
    most = max((row["promised_percent"] for row in rows if row["promised_percent"] is not None), default=0.0)
    silent = sorted(row["broker"] for row in rows if row["promised_percent"] is None)
    unread = f"{CACHE}, or the limit of direct memory ({LIMIT}), was not read of {named(silent)}." if silent else None
    return Judgement(
        findings=tuple(found),
        quiet=f"Of {counted(len(rows), 'broker')}, none promised more than {most:.0f} % of its direct memory.",
        cannot_tell=unread if rows else "No broker was read.",
    )


def _promised(row: Row, limits: EntryCacheSizePolicy) -> Iterator[Told]:
    if row["promised_percent"] is None or row["promised_percent"] < limits.warning_promised_percent:
        return
    words = (
        f"{row['broker']} may take {bytes_in_words(row['promised_bytes'])} of direct memory, of"
        f" {bytes_in_words(row['direct_bytes'])} that it has ({row['promised_percent']:.0f} %): {row['cache_mb']:,}"
        f" MiB for entries ({CACHE}), {row['publishes_mb']:,} MiB for messages that are being published"
        f" ({PUBLISHES}), {row['reads_mb']:,} MiB for reads ({READS}). Connections and BookKeeper's client need"
        " room besides: once it is used up, allocations fail."
    )
    figures = {
        "cache_megabytes": row["cache_mb"],
        "direct_memory_bytes": int(row["direct_bytes"]),
        "promised_bytes": int(row["promised_bytes"]),
        "promised_percent": int(row["promised_percent"]),
        "publish_megabytes": row["publishes_mb"],
        "read_megabytes": row["reads_mb"],
    }
    critical = row["promised_percent"] >= limits.critical_promised_percent
    yield Severity.CRITICAL if critical else Severity.WARNING, words, figures


def _cached(row: Row, limits: EntryCacheSizePolicy) -> Iterator[Told]:
    if row["cache_mb"] is None:
        return
    figures = {
        "cache_megabytes": row["cache_mb"],
        "throughput_in_bytes": int(row["in_bytes"]),
        "throughput_out_bytes": int(row["out_bytes"]),
    }
    if row["cached_ms"] is not None:
        figures["cached_milliseconds"] = int(row["cached_ms"])
    least = limits.minimum_megabytes_per_second * 1_000_000
    if row["cache_mb"] <= 0:
        if row["out_bytes"] >= least:
            words = f"The entry cache of {row['broker']} is off ({CACHE}={row['cache_mb']}): all of"
            words += f" {throughput_in_words(row['out_bytes'])} is read of bookies."
            yield Severity.WARNING, words, figures
        return
    if row["in_bytes"] < least or row["cached_ms"] is None:
        return
    short = row["cached_ms"] < limits.warning_cached_milliseconds
    if not short and row["cached_ms"] >= (row["eviction_ms"] or 0):
        return
    evicted = "" if row["eviction_ms"] is None else f", and would keep them for {row['eviction_ms']:,} ms ({EVICTION})"
    words = (
        f"The entry cache of {row['broker']} has {row['cache_mb']:,} MiB ({CACHE}), which are {row['cached_ms']:,.0f}"
        f" ms of the {throughput_in_words(row['in_bytes'])} that are published there{evicted}: a consumer that is"
        " further behind has its messages read of bookies."
    )
    yield Severity.WARNING if short else Severity.INFO, words, figures


def _threads(row: Row, limits: EntryCacheSizePolicy) -> Iterator[Told]:
    """Thread pools that are small for their load: harmless by itself, but the place to look if threads are busy."""
    pools = (
        (EXECUTORS, row["executors"], row["topics"], "topic", limits.information_topics_per_thread),
        (WORKERS, row["workers"], row["topics"], "topic", limits.information_topics_per_thread),
        (IO_THREADS, row["io_threads"], row["connections"], "connection", limits.information_connections_per_thread),
    )
    for setting, threads, served, thing, most in pools:
        if threads is None or served is None or threads <= 0 or served < most * threads:
            continue
        words = (
            f"On {row['broker']}, {counted(threads, 'thread serves', 'threads serve')} {counted(served, thing)}"
            f" ({setting}), {served / threads:,.0f} each: one that is busy holds up as many."
        )
        if row["processors"] is not None:
            helps = "threads may help" if threads < row["processors"] else "threads alone hardly help"
            words += f" It has {counted(round(row['processors']), 'processor')}, so more {helps}."
        figures = {f"{thing}s": int(served), f"{thing}s_per_thread": int(served / threads), "threads": threads}
        yield Severity.INFO, words, figures


def _by_crowd(cause: Finding, finding: Finding) -> bool:
    """True if the clients of a crowded topic are most of the connections that the broker's few threads serve."""
    crowd = cause.figures.get("consumers", 0) + cause.figures.get("producers", 0)
    return finding.subject in cause.evidence.split() and 0 < finding.figures.get("connections", 0) < 2 * crowd


ENTRY_CACHE_SIZE = Check(
    check_id="entry-cache-size",
    explained_by=("consumer-fanout", "producer-fanout"),
    tied=_by_crowd,
    order=25,
    title="Entry cache or thread pools do not fit the broker",
    advice=(
        "Promised too much: raise `-XX:MaxDirectMemorySize` within what the machine has, or lower the settings named.",
        "Cache too small: raise `managedLedgerCacheSizeMB`, at run time too; the default is a fifth of direct memory.",
        "Look at hits first: `pulsar_ml_cache_hits_rate` beside `pulsar_ml_cache_misses_rate` of that broker.",
        "Threads: only where `top -H -p PID` shows one of the pool at 100 % while CPU is left; it takes a restart.",
    ),
    source="docs/knowledge.md C: entry caches, numbers of threads",
    policy=EntryCacheSizePolicy,
    shards={"told": Query(TOLD)},
    cluster={"sizes": Query(SIZES)},
    judge=judge,
)
