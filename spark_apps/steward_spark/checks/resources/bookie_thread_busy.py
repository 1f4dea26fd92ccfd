"""Threads of BookKeeper that cannot keep up: by their queues where these are shown, else by how long writes take.

A queue is direct evidence, and names the thread. Slow writes are indirect: a busy thread, a slow disk and the network
look the same from the broker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from pulsar_steward.model.catalog.resources import BOOKIE_THREAD_BUSY
from pulsar_steward.model.finding import Finding, Severity
from steward_spark.checks.check import Check
from steward_spark.checks.common.samples import of_processes
from steward_spark.checks.common.worst import named, worst_first
from steward_spark.checks.resources._latency import latencies
from steward_spark.checks.resources._metrics import label, without

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

    from pulsar_steward.policy.checks.resources import BookieThreadBusyPolicy
    from pulsar_steward.policy.schema import Policy
    from steward_spark.checks.check import Judgement
    from steward_spark.frames import Frames

WRITES = "pulsar_ml_LedgerAddEntryLatencyBuckets"
BOOKIE_QUEUE = "bookkeeper_server_thread_executor_queue"
"""Of a bookie; the thread is in the label `thread`, as ``BookieWriteThreadPool-OrderedExecutor-0-0``."""

BROKER_QUEUE = "^pulsar_managedLedger_client_thread_(.+)_thread_executor_queue$"
"""Of a broker's BookKeeper client, where `bookkeeperClientExposeStatsToPrometheus` is on: the thread is in the name."""


def queues(frames: Frames) -> DataFrame:
    """Tasks that wait for each thread.

    Returns:
        `source`, `source_kind`, `thread`, `queued`, and `others_mean`: what waits for the others of its pool.
    """
    of_bookie = F.when(F.col("series") == BOOKIE_QUEUE, label("thread"))
    thread = F.coalesce(of_bookie, F.regexp_extract("series", BROKER_QUEUE, 1))
    shown = (F.col("series") == BOOKIE_QUEUE) | F.col("series").rlike(BROKER_QUEUE)
    each = (
        of_processes(frames)
        .where(shown & ~F.isnan("value"))
        .select(
            "source",
            "source_kind",
            thread.alias("thread"),
            F.regexp_replace(thread, "[-_]OrderedExecutor.*$", "").alias("pool"),
            F.col("value").alias("queued"),
        )
    )
    pools = each.groupBy("source", "pool").agg(F.sum("queued").alias("all_queued"), F.count("*").alias("threads"))
    others = F.expr("if(threads > 1, (all_queued - queued) / (threads - 1), null)")
    return each.join(pools, ["source", "pool"]).select(
        "source", "source_kind", "thread", "queued", others.alias("others_mean")
    )


def _judge(frames: Frames, policy: Policy) -> Judgement:
    limits = policy.bookie_thread_busy
    threads, writes = queues(frames), latencies(frames, WRITES)
    queued, slow = _queued(threads, limits), _slow(writes, limits)
    troubles = queued.unionByName(slow, allowMissingColumns=True)
    order = (F.desc("critical"), F.asc_nulls_last("slow_percent"), F.desc("queued"), F.asc("source"), F.asc("thread"))
    return worst_first(
        troubles, order, _finding, lambda: _quiet(threads, writes), lambda: _missing(frames, threads, writes)
    )


def _queued(threads: DataFrame, policy: BookieThreadBusyPolicy) -> DataFrame:
    busy = threads.where(F.col("queued") >= policy.warning_queued_tasks)
    return busy.withColumn("critical", F.col("queued") >= policy.critical_queued_tasks)


def _slow(writes: DataFrame, policy: BookieThreadBusyPolicy) -> DataFrame:
    enough = F.col("rate") >= policy.minimum_writes_per_second
    slow = writes.where(enough & (F.col("slow_percent") >= policy.warning_slow_percent))
    critical = F.col("slow_percent") >= policy.critical_slow_percent
    return slow.select("source", "rate", "slow_percent", "stalled_percent", critical.alias("critical"))


def _missing(frames: Frames, threads: DataFrame, writes: DataFrame) -> str | None:
    if silent := without(frames, writes):
        return f"The snapshot has no latencies of writes to bookies of {named(silent)}."
    if threads.take(1) or writes.where("rate > 0").take(1):
        return None
    return "Nothing was written to bookies in the last minute, and the queues of threads are not in the snapshot."


def _quiet(threads: DataFrame, writes: DataFrame) -> str:
    latency = writes.agg(F.max("slow_percent").alias("slow"), F.sum("rate").alias("rate")).first()
    slow, rate = (latency["slow"] or 0.0, latency["rate"] or 0.0) if latency else (0.0, 0.0)
    words = f"Of {rate:,.0f} writes to bookies a second, at most {slow:.1f} % on any broker took over 200 ms"
    queued = threads.agg(F.count("*").alias("threads"), F.max("queued").alias("most")).first()
    if queued is None or not queued["threads"]:
        return f"{words}; the queues of single threads are not in the snapshot."
    return f"{words}; of {queued['threads']:,} threads, the busiest has {queued['most']:,.0f} tasks waiting."


def _finding(row: Row) -> Finding:
    return Finding(
        check_id=BOOKIE_THREAD_BUSY.check_id,
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


CHECK = Check(BOOKIE_THREAD_BUSY, _judge)
