"""Garbage collection of brokers and bookies: its share of their time, and the duration of full collections.

The judged time is since the snapshot before, or since the process's start if there is none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from pulsar_steward.checks.check import Query, RowCheck, brokers_of, critical_or_warning, silent_in
from pulsar_steward.checks.earlier import WINDOW, growth, in_time, looking_back
from pulsar_steward.model.measures import STARTED
from pulsar_steward.model.section import Section
from pulsar_steward.model.units import counted, named, seconds_in_words

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Queried, QueryRows, Row


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
    """SQL for the cost of collections of each process since it started.

    Args:
        samples: Table to read: `process_samples`, or `metrics`, which needs no preparation.
    """
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


JUDGED = f"""
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

    window_minutes: int = Field(360, ge=1, description=f"{WINDOW}: full collections are rare, so this is long")
    minimum_age_seconds: int = Field(
        60,
        ge=1,
        description="younger processes are not judged: a broker's start alone collects for 0.7 s of its first 12",
    )
    warning_share_percent: int = Field(
        5,
        ge=1,
        le=100,
        description="time stood still for collections, of that since the snapshot before; a healthy process: below 1",
    )
    critical_share_percent: int = Field(15, ge=1, le=100, description="the same, when clients time out")
    minimum_full_collections: int = Field(
        10, ge=1, description="fewer full collections are left alone: a start alone makes 2 to 5"
    )
    warning_full_collections_per_hour: int = Field(12, ge=1, description="full collections: one in five minutes")
    warning_full_pause_milliseconds: int = Field(
        2000, ge=1, description="length of a full collection; producers time out after 30 s, many callers sooner"
    )
    critical_full_pause_milliseconds: int = Field(
        10_000, ge=1, description="the same; a third of the 30 s after which the metadata session ends"
    )


FOUND = """
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


def _missing(queried: Queried, limits: GcPressurePolicy) -> str | None:
    if silent := brokers_of(queried["silent"]):
        return f"The snapshot has no garbage collection metrics of {named(silent)}."
    if young := [row["source"] for row in queried["young"].rows]:
        least = f"{limits.minimum_age_seconds} s"
        return f"Rates say nothing of a process younger than {least}, or of unknown age: {named(young)}."
    return None if queried["costs"].rows else "The snapshot has no garbage collection metrics."


def _quiet(kinds: QueryRows) -> str:
    parts = [
        f"at most {row['most']:.1f} % of the time of {row['processes']:,} {row['source_kind']}(s)" for row in kinds.rows
    ]
    since = "the snapshot before" if any(row["compared"] for row in kinds.rows) else "their start"
    return f"Since {since}, garbage collection took {', '.join(parts)}." if parts else "Nothing was judged."


def _evidence(row: Row) -> str:
    since = "its start" if row["since"] is None else "the snapshot before"
    return (
        f"{row['source']} ({row['source_kind']}) stood still for garbage collection {row['share_percent']:.1f} %"
        f" of the {counted(row['seconds'] / 60, 'minute')} since {since} ({row['paused_seconds']:,.1f} s)"
        f"{_full_words(row)}."
    )


def _full_words(row: Row) -> str:
    if not row["fulls"]:
        return ""
    full = f"; {counted(row['fulls'], 'full collection')} ({row['fulls_per_hour']:,.1f} an hour)"
    if row["since"] is None:
        return f"{full} of {row['full_pause_ms']:,.0f} ms on average"
    return (
        f"{full} in the last {seconds_in_words(row['full_within_seconds'], rounded=True)}, the longest of"
        f" {row['full_pause_ms']:,.0f} ms at least"
    )


# Judges by the share of time, and by the frequency and duration of full collections.
CHECK = RowCheck(
    check_id="gc-pressure",
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
        "judged": Query(JUDGED),
        "found": Query(FOUND, worst_first="critical desc, share_percent desc, source, source_kind"),
        "kinds": Query(KINDS),
        "silent": silent_in("costs"),
        "young": Query(YOUNG),
    },
    severity=critical_or_warning,
    subject="source",
    evidence=_evidence,
    figures=lambda row: {
        "age_seconds": row["age_seconds"],
        LATELY: row["lately"],
        "full_collections": row["fulls"],
        "full_pause_milliseconds": row["full_pause_ms"],
        "paused_milliseconds": int(row["paused_seconds"] * 1000),
        "seconds": row["seconds"],
        "share_percent": row["share_percent"],
    },
    missing=lambda queried, context: _missing(queried, context.limits),
    quiet=lambda queried, _context: _quiet(queried["kinds"]),
)
