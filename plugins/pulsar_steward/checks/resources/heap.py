"""Heaps of processes that stay full after collections, and the time that garbage collection takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.checks.check import Query, RowCheck, critical_or_warning, if_any, if_none, silent_in
from pulsar_steward.checks.earlier import WINDOW, ComparingPolicy, growth, in_time, looking_back
from pulsar_steward.model.measures import STARTED
from pulsar_steward.model.section import Section, number, percent
from pulsar_steward.model.trouble import Harm
from pulsar_steward.model.units import MIB, counted, seconds_in_words

if TYPE_CHECKING:
    from pulsar_steward.checks.check import CheckContext, Queried, Row

# A heap fills up and is collected, so its use at one moment says little. Two figures are judged: the use after the
# last collection of the old generation, and, for collectors that collect bit by bit, the lowest use in several
# snapshots.

USED = "'jvm_memory_bytes_used', 'jvm_memory_used_bytes'"
LIMIT = "'jvm_memory_bytes_max', 'jvm_memory_max_bytes'"
LEFT = "jvm_memory_pool_collection_used_bytes"
LEFT_LIMIT = "jvm_memory_pool_collection_max_bytes"
"""Series of the heap (in earlier and later names), and of its pools right after their last collection."""

OLD = "(Tenured|Old) Gen|^ZHeap$|^Shenandoah$"
"""Pools in which objects stay, by the collectors' names for them."""

BIT_BY_BIT = "^(G1|Z|Shenandoah)"
"""Pools among these that are collected while they fill up; others are collected only when full."""


class HeapPressurePolicy(ComparingPolicy):
    """Thresholds for the part of a heap that collections do not free."""

    minimum_snapshots: int = number(
        4, "of one process, this one included, of whose uses of the heap the lowest is judged", ge=2
    )
    minimum_minutes: int = number(30, "from the first to the last of them")
    warning_percent: int = percent(85, "in use after collections; a healthy process keeps half of it free or more")
    critical_percent: int = percent(95, "the same, when it collects without end, or ends")

    @property
    def least_time(self) -> str:
        """`minimum_minutes` in words."""
        return counted(self.minimum_minutes, "minute")


def heaps_in(samples: str) -> str:
    """SQL for heaps by samples of processes: their use, and the old generation's use after the last collection."""
    return f"""
    with told as (
        select *, labels_json->>'area' = 'heap' as heap, coalesce(labels_json->>'pool', '') as pool,
            regexp_matches(pool, '{OLD}') as old
        from {samples}
        where isfinite(value) and series in ('{STARTED}', {USED}, {LIMIT}, '{LEFT}', '{LEFT_LIMIT}'))
    select source, source_kind, max(value) filter (series = '{STARTED}') as started,
        max(value) filter (series in ({USED}) and heap) as used_bytes,
        max(value) filter (series in ({LIMIT}) and heap) as limit_bytes,
        max(value) filter (series = '{LEFT}' and old) as left_bytes,
        max(value) filter (series = '{LEFT_LIMIT}' and old and value > 0) as left_limit_bytes,
        coalesce(bool_or(old and regexp_matches(pool, '{BIT_BY_BIT}')), false) as bit_by_bit,
        coalesce(bool_or(old), false) as tells_pools
    from told group by source, source_kind
    having limit_bytes > 0 and used_bytes is not null
    """


KEPT = f"""
with told as ({in_time("heaps", "heaps_before")}),
seen as (
    select source, source_kind, started, count(*) as snapshots, min(used_bytes * 100 / limit_bytes) as least_percent,
        $now::double - min(moment) as over_seconds
    from told group by source, source_kind, started)
select now.*, now.used_bytes * 100 / now.limit_bytes as used_percent, seen.snapshots, seen.over_seconds,
    if(now.left_bytes > 0, least(now.left_bytes, now.used_bytes) * 100
        / coalesce(now.left_limit_bytes, now.limit_bytes), null) as left_percent,
    if(now.bit_by_bit and seen.snapshots >= $minimum_snapshots and seen.over_seconds >= $minimum_minutes * 60,
        seen.least_percent, null) as lowest_percent,
    greatest(coalesce(left_percent, 0), coalesce(lowest_percent, 0)) as percent
from heaps now left join seen
    on seen.source = now.source and seen.source_kind = now.source_kind
        and seen.started is not distinct from now.started
"""
"""Shares of each heap still in use after collections; both figures are null if not known.

`left_percent` may come from an old collection: if less is in use now, the present use counts.
"""

FULL_HEAPS = "select *, percent >= $critical_percent as critical from kept where percent >= $warning_percent"

_FULL_NOW = "from kept where used_percent >= $warning_percent and percent < $warning_percent"

UNTOLD = f"select source {_FULL_NOW} and not tells_pools"
"""Full heaps of processes that do not report their pools."""

UNDECIDED = f"select source {_FULL_NOW} and tells_pools and bit_by_bit and lowest_percent is null"
"""Full heaps of processes that were not seen often enough."""


def _quiet_heaps(queried: Queried, _context: CheckContext[HeapPressurePolicy]) -> str:
    rows = queried["kept"].rows
    if not rows:
        return "Nothing was judged."
    most = max(row["percent"] or row["used_percent"] for row in rows)
    heaps = "the only heap has" if len(rows) == 1 else f"of {len(rows):,} heaps, the fullest has"
    return f"After collections, {heaps} at most {most:.0f} % in use."


def _heap_evidence(row: Row) -> str:
    who = f"{row['source']} ({row['source_kind']})"
    now = f"{row['used_bytes'] / MIB:,.0f} of {row['limit_bytes'] / MIB:,.0f} MiB are in use now"
    sentences = []
    if row["left_percent"] is not None and row["left_percent"] == row["percent"]:
        left = min(row["left_bytes"], row["used_bytes"]) / MIB
        sentences.append(
            f"The last collection of the old generation of {who} left {row['left_percent']:.0f} % of it in use"
            f" ({left:,.0f} MiB)."
        )
    if row["lowest_percent"] is not None and row["lowest_percent"] == row["percent"]:
        sentences.append(
            f"In {counted(row['snapshots'], 'snapshot')} over {seconds_in_words(row['over_seconds'], rounded=True)},"
            f" {who} never used less than {row['lowest_percent']:.0f} % of its heap."
        )
    return " ".join([*sentences, f"Of its heap, {now}."])


# Judges the use of each heap after collections; low use now clears a process, high use alone proves nothing.
HEAP_PRESSURE = RowCheck(
    check_id="heap-pressure",
    harm=Harm.SLOW,
    order=12,
    title="A heap stays full",
    advice=(
        "Look what fills it: `jmap -histo:live PID | head -30`, which collects first, and so stops it for a moment.",
        "On a broker, look for delayed messages kept in memory, topics and cursors; spread them over more brokers.",
        "On ZooKeeper, look at the number of nodes (check zookeeper-slow names it): all of them are in its heap.",
        "Give the process a larger heap (`-Xmx`), within what its machine or container has.",
    ),
    source="docs/knowledge.md C, step 1: resources",
    policy=HeapPressurePolicy,
    shards={"heaps": Query(heaps_in("process_samples"))},
    earlier={"heaps_before": looking_back(heaps_in("metrics"))},
    cluster={
        "kept": Query(KEPT),
        "found": Query(FULL_HEAPS, worst_first="critical desc, percent desc, source, source_kind"),
        "untold": Query(UNTOLD),
        "undecided": Query(UNDECIDED),
        "silent": silent_in("heaps"),
    },
    severity=critical_or_warning,
    subject="source",
    evidence=_heap_evidence,
    figures=lambda row: {
        "left_bytes": row["left_bytes"] if row["left_percent"] is not None else None,
        "limit_bytes": row["limit_bytes"],
        "lowest_percent": row["lowest_percent"],
        "percent": row["percent"],
        "snapshots": row["snapshots"],
        "used_bytes": row["used_bytes"],
    },
    missing=(
        if_any("silent", "The snapshot has no figures of the heap of {names}."),
        if_any("untold", "Full now, and without figures of what collections leave: {names}."),
        if_any(
            "undecided",
            "Full now, and seen in fewer than {limits.minimum_snapshots:,} snapshots over {limits.least_time}:"
            " {names}.",
        ),
        if_none("kept", "The snapshot has no figures of any heap."),
    ),
    quiet=_quiet_heaps,
)

# The judged time is since the snapshot before, or since the process's start if there is none.

SECONDS = "jvm_gc_collection_seconds_sum"
COLLECTIONS = "jvm_gc_collection_seconds_count"

CONCURRENT = "(Cycles|Concurrent GC)$"
"""Collectors (ZGC, Shenandoah, G1's concurrent part) that run beside the process: their time is no pause."""

FULL = "^(G1 Old Generation|MarkSweepCompact|PS MarkSweep)$"
"""Collectors that stop the process for the whole heap; ZGC and Shenandoah have none."""

KEYS = ("source", "source_kind")
COUNTERS = ("paused_seconds", "full_seconds", "full_collections")

APART_SECONDS = 300
"""Minimum interval in seconds: over a shorter one, a burst of work distorts the share of time."""


def collections_in(samples: str) -> str:
    """SQL for the cost of collections of each process since it started, by samples of processes."""
    return f"""
    with marked as (
        select *, regexp_matches(coalesce(labels_json->>'gc', ''), '{CONCURRENT}') as beside,
            regexp_matches(coalesce(labels_json->>'gc', ''), '{FULL}') as of_all
        from {samples} where series in ('{SECONDS}', '{COLLECTIONS}', '{STARTED}') and isfinite(value))
    select source, source_kind, max(value) filter (series = '{STARTED}') as started,
        coalesce(sum(value order by value) filter (series = '{SECONDS}' and not beside), 0) as paused_seconds,
        coalesce(sum(value order by value) filter (series = '{SECONDS}' and of_all), 0) as full_seconds,
        coalesce(sum(value order by value) filter (series = '{COLLECTIONS}' and of_all), 0) as full_collections
    from marked group by source, source_kind having bool_or(series = '{COLLECTIONS}')
    """


COSTS = f"""
with told as ({in_time("costs", "costs_before")}),
spans as ({growth("told", KEYS, COUNTERS, APART_SECONDS)}),
longest as (
    select source, source_kind, started, max(grown_full_seconds * 1000 / grown_full_collections) as longest_ms
    from spans where since is not null and grown_full_collections > 0 group by all),
first_told as (
    select source, source_kind, started, min(moment) as first_moment, arg_min(full_collections, moment) as full_before
    from told group by all)
select now.source, now.source_kind, now.since, $now - now.started as age_seconds, now.seconds,
    now.grown_paused_seconds as paused_seconds, now.grown_full_collections as fulls_since,
    if(now.seconds > 0, now.grown_paused_seconds * 100 / now.seconds, null) as share_percent,
    if(now.since is null, now.seconds, $now - first_moment) as full_within_seconds,
    if(now.since is null, now.full_collections, greatest(now.full_collections - full_before, 0)) as fulls,
    if(full_within_seconds > 0, fulls * 3600 / full_within_seconds, null) as fulls_per_hour,
    case when now.since is not null then coalesce(longest_ms, 0)
        when now.full_collections > 0 then now.full_seconds * 1000 / now.full_collections else 0 end as full_pause_ms
from spans now
    left join longest using (source, source_kind, started)
    left join first_told using (source, source_kind, started)
where now.moment = $now::double
"""
"""Cost of collections of each process since the snapshot before; rare full collections count in the whole window.

`fulls_since`: full collections since the snapshot before. `full_pause_ms`: the mean duration of full collections
between two snapshots, for the interval with the longest mean; so the longest collection took at least as long. If no
earlier snapshot shows the same process, all figures count from its start, and this is the overall mean.
"""

LATELY = "collected_lately"
"""Figure of a finding: 1 if collections since the snapshot before took a warning's share of time, or one was full.

Else 0: its full collections are older. If no earlier snapshot shows the process, it counts from the start.
"""


class GcPressurePolicy(Section):
    """Thresholds for the share of a process's time that garbage collection takes."""

    window_minutes: int = number(360, f"{WINDOW}: full collections are rare, so this is long")
    minimum_age_seconds: int = number(
        60, "younger processes are not judged: a broker's start alone collects for 0.7 s of its first 12"
    )
    warning_share_percent: int = percent(
        5, "time stood still for collections, of that since the snapshot before; a healthy process: below 1"
    )
    critical_share_percent: int = percent(15, "the same, when clients time out")
    minimum_full_collections: int = number(10, "fewer full collections are left alone: a start alone makes 2 to 5")
    warning_full_collections_per_hour: int = number(12, "full collections: one in five minutes")
    warning_full_pause_milliseconds: int = number(
        2000, "length of a full collection; producers time out after 30 s, many callers sooner"
    )
    critical_full_pause_milliseconds: int = number(
        10_000, "the same; a third of the 30 s after which the metadata session ends"
    )


COLLECTED = """
select *, share_percent >= $critical_share_percent or full_pause_ms >= $critical_full_pause_milliseconds as critical,
    share_percent >= $warning_share_percent or fulls_since > 0 as lately
from judged
where age_seconds >= $minimum_age_seconds
    and (share_percent >= $warning_share_percent or full_pause_ms >= $warning_full_pause_milliseconds
        or (fulls >= $minimum_full_collections and fulls_per_hour >= $warning_full_collections_per_hour))
"""

KINDS = """
select source_kind, count(*) as processes, max(share_percent) as most, bool_or(since is not null) as compared
from judged where age_seconds >= $minimum_age_seconds group by source_kind
"""

YOUNG = "select source from judged where not coalesce(age_seconds >= $minimum_age_seconds, false)"


def _collected_evidence(row: Row) -> str:
    since = "its start" if row["since"] is None else "the snapshot before"
    words = (
        f"{row['source']} ({row['source_kind']}) stood still for garbage collection {row['share_percent']:.1f} %"
        f" of the {counted(row['seconds'] / 60, 'minute')} since {since} ({row['paused_seconds']:,.1f} s)"
    )
    if not row["fulls"]:
        return f"{words}."
    words += f"; {counted(row['fulls'], 'full collection')} ({row['fulls_per_hour']:,.1f} an hour)"
    if row["since"] is None:
        return f"{words} of {row['full_pause_ms']:,.0f} ms on average."
    within = seconds_in_words(row["full_within_seconds"], rounded=True)
    return f"{words} in the last {within}, the longest of {row['full_pause_ms']:,.0f} ms at least."


# Judges by the share of time, and by the frequency and duration of full collections.
GC_PRESSURE = RowCheck(
    check_id="gc-pressure",
    harm=Harm.SLOW,
    explained_by=("heap-pressure",),
    order=10,
    title="Garbage collection takes too much of a process's time",
    advice=(
        "Look whether it still does: `jstat -gcutil PID 1000 10` on that machine.",
        "Look at what fills the heap (`jmap -histo PID | head -30`): delayed messages kept in memory, cursors, topics.",
        "Give the process a larger heap, or spread its topics over more brokers.",
        "Restart it outside peak hours when full collections no longer free anything; its clients reconnect.",
    ),
    source="docs/knowledge.md C, step 1: resources and GC",
    policy=GcPressurePolicy,
    shards={"costs": Query(collections_in("process_samples"))},
    earlier={"costs_before": looking_back(collections_in("metrics"))},
    cluster={
        "judged": Query(COSTS),
        "found": Query(COLLECTED, worst_first="critical desc, share_percent desc, source, source_kind"),
        "kinds": Query(KINDS),
        "silent": silent_in("costs"),
        "young": Query(YOUNG),
    },
    severity=critical_or_warning,
    subject="source",
    evidence=_collected_evidence,
    figures=lambda row: {
        "age_seconds": row["age_seconds"],
        LATELY: row["lately"],
        "full_collections": row["fulls"],
        "full_pause_milliseconds": row["full_pause_ms"],
        "paused_milliseconds": int(row["paused_seconds"] * 1000),
        "seconds": row["seconds"],
        "share_percent": row["share_percent"],
    },
    missing=(
        if_any("silent", "The snapshot has no garbage collection metrics of {names}."),
        if_any(
            "young",
            "Rates say nothing of a process younger than {limits.minimum_age_seconds} s, or of unknown age: {names}.",
        ),
        if_none("costs", "The snapshot has no garbage collection metrics."),
    ),
    quiet=lambda queried, _context: (
        f"Since {'the snapshot before' if any(row['compared'] for row in kinds) else 'their start'}, garbage collection"
        " took "
        + ", ".join(
            f"at most {row['most']:.1f} % of the time of {row['processes']:,} {row['source_kind']}(s)" for row in kinds
        )
        + "."
        if (kinds := queried["kinds"].rows)
        else "Nothing was judged."
    ),
)
