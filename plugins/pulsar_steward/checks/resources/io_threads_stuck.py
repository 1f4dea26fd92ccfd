"""Signs of stuck threads in a broker. Pulsar shows its IO threads nowhere, so all signs but one are indirect.

One stuck thread of sixteen serves a sixteenth of the connections: its effect is small, but does not go away. So
requests that wait in every snapshot of a window are a sign too, even if they are few.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.checks.check import BROKERS_READ, Query, RowCheck, if_any, nothing_read, ranked
from pulsar_steward.checks.earlier import ComparingPolicy, looking_back
from pulsar_steward.model.measures import STARTED
from pulsar_steward.model.section import number, percent
from pulsar_steward.model.trouble import Harm
from pulsar_steward.model.units import counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsar_steward.checks.check import Row


class IoThreadsStuckPolicy(ComparingPolicy):
    """Thresholds for the indirect signs of stuck threads in a broker."""

    blocked_threads: int = number(10, "threads that wait for a lock at one moment; usual: 0 to 2")
    pending_requests: int = number(
        1000, "lookups and topic loads under way at one moment; usual: near 0, also with 10,000 clients"
    )
    steady_snapshots: int = number(
        4, "in which threads or requests have to wait, this one and all others of the window", ge=3, le=13
    )
    steady_blocked_threads: int = number(1, "threads that wait for a lock in each of them: one may be an IO thread")
    steady_pending_requests: int = number(
        10, "lookups and topic loads under way in each of them: some of them may never end"
    )
    open_files_percent: int = percent(80, "open files, sockets among them, of the limit")
    minimum_producers: int = number(100, "brokers with fewer producers are not judged by reconnects")
    reconnected_percent: int = percent(
        50, "producers that connected within `collect.recent_minutes`, without a recent start"
    )
    warning_signs: int = number(2, "signs at one broker that make a warning; fewer: information", le=4)


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
"""Minimum time in seconds for which requests have to wait in every snapshot; a burst may last for minutes."""

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
"""Threads and sockets of each broker at one moment, and the minimum that waited in all snapshots of the window.

Null if a figure is not known.
"""

FOUND = """
with marked as (
    select *, coalesce(blocked >= $blocked_threads, false) as many_blocked,
        coalesce(pending >= $pending_requests, false) as many_pending,
        not many_blocked and coalesce(steady_blocked >= $steady_blocked_threads, false) as always_blocked,
        not many_pending and coalesce(steady_pending >= $steady_pending_requests, false) as always_pending,
        coalesce(files_percent >= $open_files_percent, false) as many_files,
        coalesce(age_seconds >= 2 * 60 * $collect__recent_minutes and reconnected_percent >= $reconnected_percent
            and producers >= $minimum_producers, false) as many_reconnected
    from vitals),
counted as (
    select *, (many_blocked or always_blocked)::int + (many_pending or always_pending)::int + many_files::int
        + many_reconnected::int as signs
    from marked)
select *, case when deadlocked > 0 then 2 when signs >= $warning_signs then 1 else 0 end as rank
from counted where signs > 0 or deadlocked > 0
"""
"""Brokers with any sign. A deadlock is not a sign, but the problem itself."""

SILENT = """
select broker from brokers left join vitals on broker = source
where read and (deadlocked is null or blocked is null or pending is null or files_percent is null
    or age_seconds is null)
"""

_FIGURES = {
    "many_blocked": ("blocked", "blocked_threads"),
    "many_pending": ("pending", "pending_requests"),
    "always_blocked": ("steady_blocked", "always_blocked_threads"),
    "always_pending": ("steady_pending", "always_pending_requests"),
    "many_files": ("open_files", "open_files"),
    "many_reconnected": ("reconnected_percent", "reconnected_percent"),
}
"""The column and the figure of each sign."""

_SIGNS: dict[str, Callable[[Row], str]] = {
    "many_blocked": lambda row: f"{counted(row['blocked'], 'thread waits', 'threads wait')} for a lock",
    "many_pending": lambda row: counted(row["pending"], "lookup or topic load waits", "lookups and topic loads wait"),
    "always_blocked": lambda row: (
        f"{row['steady_blocked']:,.0f} or more threads wait for a lock in each of"
        f" {counted(row['snapshots'], 'snapshot')}"
    ),
    "always_pending": lambda row: (
        f"{row['steady_pending']:,.0f} or more lookups and topic loads wait in each of"
        f" {counted(row['snapshots'], 'snapshot')}"
    ),
    "many_files": lambda row: (
        f"{counted(row['open_files'], 'file or socket is', 'files and sockets are')} open"
        f" ({row['files_percent']:.0f} % of the limit)"
    ),
    "many_reconnected": lambda row: (
        f"{row['reconnected_percent']:.0f} % of {counted(row['producers'], 'producer')} connected anew within minutes"
    ),
}
"""The words of each sign."""


def _sentence(row: Row) -> str:
    signs = ", ".join(words(row) for sign, words in _SIGNS.items() if row[sign])
    if row["deadlocked"]:
        are = "is" if row["deadlocked"] == 1 else "are"
        dead = f"{counted(row['deadlocked'], 'thread')} of broker {row['source']} {are} in a deadlock"
        return f"{dead}; besides, {signs}." if signs else f"{dead}."
    share = ""
    if (threads := row["io_threads"]) is not None:  # connections are distributed evenly over all IO threads
        share = f"; one stuck thread of its {threads:,} for IO would be {100 / threads:.0f} % of its connections"
    return f"Indirect signs of stuck threads at broker {row['source']}: {signs}{share}; a thread dump would tell."


# A deadlock is critical; several signs at one broker are a warning, a single sign is information.
CHECK = RowCheck(
    check_id="io-threads-stuck",
    harm=Harm.SLOW,
    order=60,
    title="A broker's threads may be stuck (indirect signs, except deadlocks)",
    advice=(
        "Confirm: `jstack PID | grep -A 20 pulsar-io` three times, 10 s apart: the same stack each time is stuck.",
        "Confirm: `ss -tn state close-wait sport = :6650 | wc -l` on the broker: sockets that nobody closes.",
        "Save the three thread dumps, then restart that broker; its clients reconnect elsewhere.",
        "With CPU to spare and threads that are busy rather than stuck, raise `numIOThreads`.",
    ),
    source="docs/knowledge.md C: pulsar-io threads stuck",
    policy=IoThreadsStuckPolicy,
    shards={"gauges": Query(GAUGES), "connected": Query(PRODUCERS)},
    earlier={"gauges_before": looking_back(GAUGES_BEFORE)},
    cluster={
        "vitals": Query(VITALS),
        "found": Query(FOUND, worst_first="coalesce(deadlocked, 0) desc, signs desc, source"),
        "silent": Query(SILENT),
        "read": BROKERS_READ,
    },
    severity=ranked,
    subject="source",
    evidence=_sentence,
    figures=lambda row: {
        "deadlocked_threads": row["deadlocked"] or 0,
        "signs": row["signs"],
        **{name: row[column] for sign, (column, name) in _FIGURES.items() if row[sign]},
    },
    missing=(
        if_any(
            "silent",
            "Metrics of threads, waiting lookups, open files or the start are not in the snapshot for {names}.",
        ),
        nothing_read,
    ),
    quiet="No broker shows a deadlock, many blocked threads, waiting lookups, used up sockets or mass reconnects.",
)
