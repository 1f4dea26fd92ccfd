"""Threads of BookKeeper that cannot keep up: by their queues where these are shown, else by how long writes take.

A queue is direct evidence, and names the thread. Slow writes are indirect: a busy thread, a slow disk and the network
look the same from the broker.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pydantic import Field

from pulsar_steward.checks.check import Check, Judgement, Question
from pulsar_steward.checks.resources.silence import brokers_of, silent_in
from pulsar_steward.checks.resources.views import WRITES
from pulsar_steward.checks.words import named
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.section import Section

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Answers, CheckContext, Row


class BookieThreadBusyPolicy(Section):
    """When a thread of BookKeeper, at a bookie or in a broker, cannot keep up."""

    warning_queued_tasks: int = Field(
        1000, ge=1, description="tasks that wait for one thread; bookies reject from 10,000 on (as configured there)"
    )
    critical_queued_tasks: int = Field(5000, ge=1, description="the same, at half of that")
    minimum_writes_per_second: int = Field(
        10, ge=1, description="writes of a broker to bookies; the latency of fewer is not judged"
    )
    warning_slow_percent: int = Field(
        5, ge=1, le=100, description="writes to bookies over 200 ms; an overloaded test machine shows 1"
    )
    critical_slow_percent: int = Field(25, ge=1, le=100, description="the same, when producers time out")


BOOKIE_QUEUE = "bookkeeper_server_thread_executor_queue"
"""Of a bookie; the thread is in the label `thread`, as ``BookieWriteThreadPool-OrderedExecutor-0-0``."""

BROKER_QUEUE = "^pulsar_managedLedger_client_thread_(.+)_thread_executor_queue$"
"""Of a broker's BookKeeper client, where `bookkeeperClientExposeStatsToPrometheus` is on: the thread is in the name."""

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
select source, source_kind, thread, queued,
    if(threads > 1, (all_queued - queued) / (threads - 1), null) as others_mean
from pooled
"""
"""Tasks that wait for each thread, and what waits for the others of its pool: whole numbers, in whatever order."""

LONGEST_FIRST = "queued desc, source, thread, source_kind"

BUSY = f"with queues as ({QUEUES}) select * from queues where queued >= $warning_queued_tasks"
SHOWN = f"with queues as ({QUEUES}) select count(*) as threads, max(queued) as most from queues"
OF_BROKERS = f"select * from ledger_latencies where event = '{WRITES}'"

FOUND = """
select *, queued >= $critical_queued_tasks as critical from busy
union all by name
select source, rate, slow_percent, stalled_percent, slow_percent >= $critical_slow_percent as critical from writes
where rate >= $minimum_writes_per_second and slow_percent >= $warning_slow_percent
"""
"""Busy threads, of which each shard gave the worst, and brokers whose writes are slow; the latter are listed first."""


def judge(answers: Answers, _: CheckContext[BookieThreadBusyPolicy]) -> Judgement:
    """By the queue of each thread where it is shown, and by how long writes to bookies take."""
    found = answers["found"]
    if found.rows:
        return Judgement(findings=tuple(map(_finding, found.rows)), more=found.more + answers["busy"].more)
    return Judgement(quiet=_quiet(answers), cannot_tell=_missing(answers))


def _missing(answers: Answers) -> str | None:
    if silent := brokers_of(answers["silent"]):
        return f"The snapshot has no latencies of writes to bookies of {named(silent)}."
    if _threads(answers) or any(row["rate"] > 0 for row in answers["writes"].rows):
        return None
    return "Nothing was written to bookies in the last minute, and the queues of threads are not in the snapshot."


def _threads(answers: Answers) -> int:
    """How many threads show their queues; each shard has counted its own."""
    return sum(row["threads"] for row in answers["shown"].rows)


def _quiet(answers: Answers) -> str:
    writes = answers["writes"].rows
    slow, rate = max((row["slow_percent"] for row in writes), default=0.0), math.fsum(row["rate"] for row in writes)
    words = f"Of {rate:,.0f} writes to bookies a second, at most {slow:.1f} % on any broker took over 200 ms"
    threads = _threads(answers)
    if not threads:
        return f"{words}; the queues of single threads are not in the snapshot."
    most = max(row["most"] for row in answers["shown"].rows if row["threads"])
    return f"{words}; of {threads:,} threads, the busiest has {most:,.0f} tasks waiting."


def _finding(row: Row) -> Finding:
    return Finding(
        check_id=CHECK.check_id,
        severity=Severity.CRITICAL if row["critical"] else Severity.WARNING,
        subject=row["source"],
        evidence=_queue_words(row) if row["thread"] is not None else _latency_words(row),
        figures=_figures(row),
    )


def _queue_words(row: Row) -> str:
    words = f"{row['queued']:,.0f} tasks wait for thread {row['thread']} of the {row['source_kind']} {row['source']}"
    if row["others_mean"] is None:
        return f"{words}, the only one of its pool."
    return f"{words}; for the others of its pool {row['others_mean']:,.0f} on average."


def _latency_words(row: Row) -> str:
    return (
        f"Of {row['rate']:,.0f} writes a second from broker {row['source']} to bookies in the last minute,"
        f" {row['slow_percent']:.0f} % took over 200 ms and {row['stalled_percent']:.0f} % over a second:"
        " indirect evidence of a busy thread, a slow disk or the network."
    )


def _figures(row: Row) -> dict[str, int]:
    if row["thread"] is not None:
        return {"queued_tasks": int(row["queued"])}
    return {
        "over_200_milliseconds_percent": int(row["slow_percent"]),
        "over_second_percent": int(row["stalled_percent"]),
        "writes_per_second": int(row["rate"]),
    }


CHECK = Check(
    check_id="bookie-thread-busy",
    order=50,
    title="A thread of BookKeeper, or a bookie as a whole, cannot keep up",
    advice=(
        "Find the thread: `top -H -p PID`, then `jstack PID`, for BookKeeperClientWorker, bookkeeper-io, BookieWrite*.",
        "Look for full collections of bookies and ZooKeeper first (check gc-pressure), then at the journal's disk.",
        "One ledger is always served by one thread: give the busiest topics more partitions.",
        "Give more threads: `bookkeeperClientNumWorkerThreads`, `bookkeeperClientNumIoThreads`.",
        "At bookies: `numAddWorkerThreads`, `numJournalCallbackThreads`; and look at E, QW and QA.",
    ),
    source="docs/knowledge.md C: one busy bookkeeper-io thread",
    policy=BookieThreadBusyPolicy,
    shards={
        "busy": Question(BUSY, worst_first=LONGEST_FIRST),
        "shown": Question(SHOWN),
        "writes": Question(OF_BROKERS),
    },
    cluster={
        # Slow writes first, the slowest of them before the others; then the longest queues.
        "found": Question(
            FOUND, worst_first="critical desc, slow_percent desc, queued desc, source, thread, source_kind"
        ),
        "silent": silent_in("writes"),
    },
    judge=judge,
)
