"""Brokers' figures of threads, requests and sockets, at one moment and over the snapshots of a window."""

from __future__ import annotations

from pulsar_steward.checks.views import STARTED

DEADLOCKED = "jvm_threads_deadlocked"
STATES = "jvm_threads_state"
LOOKUPS = "pulsar_broker_lookup_pending_requests"
LOADS = "pulsar_broker_topic_load_pending_requests"
OPEN_FILES = "process_open_fds"
MOST_FILES = "process_max_fds"
SERIES = (DEADLOCKED, STATES, LOOKUPS, LOADS, OPEN_FILES, MOST_FILES, STARTED)


def _highest(series: str, also: str = "") -> str:
    return f"max(value) filter (series = '{series}'{also})"


BLOCKED = " and labels_json->>'state' = 'BLOCKED'"

GAUGES = f"""
select source, {_highest(DEADLOCKED)} as deadlocked, {_highest(STATES, BLOCKED)} as blocked,
    {_highest(LOOKUPS)} + {_highest(LOADS)} as pending, {_highest(OPEN_FILES)} as open_files,
    {_highest(OPEN_FILES)} * 100 / {_highest(MOST_FILES)} as files_percent, {_highest(STARTED)} as started
from process_samples where source_kind = 'broker' and series in {SERIES} group by source
"""

GAUGES_BEFORE = f"""
select source, {_highest(STATES, BLOCKED)} as blocked, {_highest(LOOKUPS)} + {_highest(LOADS)} as pending,
    {_highest(STARTED)} as started
from metrics
where source_kind = 'broker' and series in ('{STATES}', '{LOOKUPS}', '{LOADS}', '{STARTED}') and isfinite(value)
group by source
"""

STEADY_SECONDS = 600
"""Minimum time for which something has to wait in every snapshot; a burst may last for minutes."""

PRODUCERS = """
select broker, sum(producers)::bigint as producers, sum(producers_connected_recently)::bigint as recent
from topics where broker is not null group by broker
"""

VITALS = f"""
with of_brokers as (
    select broker as source, sum(producers)::bigint as producers, sum(recent)::bigint as recent
    from connected group by broker),
all_the_time as (
    select source, started, count(*) + 1 as snapshots, min(blocked) as least_blocked, min(pending) as least_pending,
        count(blocked) + 1 = snapshots as all_blocked, count(pending) + 1 = snapshots as all_pending
    from gauges_before group by source, started
    having snapshots >= $steady_snapshots and $now - min(epoch(taken_at)) >= {STEADY_SECONDS}),
threads as (select broker as source, try_cast(trim(value) as bigint) as io_threads from setting('numIOThreads'))
select gauges.*, $now - started as age_seconds, producers,
    if(producers > 0, recent * 100 / producers, null) as reconnected_percent, snapshots,
    if(all_blocked, least(blocked, least_blocked), null) as steady_blocked,
    if(all_pending, least(pending, least_pending), null) as steady_pending,
    if(io_threads > 0, io_threads, null) as io_threads
from gauges left join of_brokers using (source) left join all_the_time using (source, started)
    left join threads using (source)
"""
"""Threads and sockets of each broker at one moment, and what waited in all snapshots of the window.

Null where a figure is not known.
"""
