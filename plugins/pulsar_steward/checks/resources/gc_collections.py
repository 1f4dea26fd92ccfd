"""Counters of garbage collections of processes, and their growth between snapshots."""

from __future__ import annotations

from pulsar_steward.checks.earlier import growth, in_time
from pulsar_steward.checks.views import STARTED

SECONDS = "jvm_gc_collection_seconds_sum"
COLLECTIONS = "jvm_gc_collection_seconds_count"

CONCURRENT = "(Cycles|Concurrent GC)$"
"""Collectors (ZGC, Shenandoah, G1's concurrent part) that work while the process does: their time is no pause."""

FULL = "^(G1 Old Generation|MarkSweepCompact|PS MarkSweep)$"
"""Collectors that stop the process for the whole heap; ZGC and Shenandoah have none."""

KEYS = ("source", "source_kind")
COUNTERS = ("paused_seconds", "full_seconds", "full_collections")

APART_SECONDS = 300
"""Minimum interval: over a shorter one, a burst of work distorts the share of time."""


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
"""Cost of collections of each process since the snapshot before; full ones, as they are rare, in the whole window.

`fulls_since`: full ones since the snapshot before. `full_pause_ms`: the mean of full ones between those snapshots
between which it was longest, so that the longest was no shorter. Where no earlier snapshot shows the same process, all
is since its start, and this is the mean.
"""
