"""Signs that a broker's threads are stuck. No interface of Pulsar shows its IO threads, so all but one are indirect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from pulsar_steward.model.catalog.resources import IO_THREADS_STUCK
from pulsar_steward.model.finding import Finding, Severity
from steward_spark.checks.check import Check
from steward_spark.checks.common.samples import of_processes
from steward_spark.checks.common.worst import named, worst_first
from steward_spark.checks.resources._metrics import STARTED, highest, label

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row

    from pulsar_steward.policy.schema import Policy
    from steward_spark.checks.check import Judgement
    from steward_spark.frames import Frames

DEADLOCKED = "jvm_threads_deadlocked"
STATES = "jvm_threads_state"
LOOKUPS = "pulsar_broker_lookup_pending_requests"
LOADS = "pulsar_broker_topic_load_pending_requests"
OPEN_FILES = "process_open_fds"
MOST_FILES = "process_max_fds"


def vitals(frames: Frames) -> DataFrame:
    """What is known of each broker's threads and sockets at one moment; null where it is not known.

    Returns:
        `source`, `deadlocked`, `blocked`, `pending`, `open_files`, `files_percent`, `age_seconds`, `producers` and
        `reconnected_percent`.
    """
    blocked = F.max(F.when((F.col("series") == STATES) & (label("state") == "BLOCKED"), F.col("value")))
    gauges = (
        of_processes(frames)
        .where((F.col("source_kind") == "broker") & ~F.isnan("value"))
        .groupBy("source")
        .agg(
            highest(DEADLOCKED).alias("deadlocked"),
            blocked.alias("blocked"),
            (highest(LOOKUPS) + highest(LOADS)).alias("pending"),
            highest(OPEN_FILES).alias("open_files"),
            (highest(OPEN_FILES) * 100 / highest(MOST_FILES)).alias("files_percent"),
            (F.lit(frames.about.taken_at.timestamp()) - highest(STARTED)).alias("age_seconds"),
        )
    )
    return gauges.join(_producers(frames.topics), "source", "left")


def _producers(topics: DataFrame) -> DataFrame:
    by_broker = topics.groupBy(F.col("broker").alias("source")).agg(
        F.sum("producers").alias("producers"), F.sum("producers_connected_recently").alias("recent")
    )
    percent = F.expr("if(producers > 0, recent * 100 / producers, null)").alias("reconnected_percent")
    return by_broker.select("source", "producers", percent)


def _signs(policy: Policy) -> dict[str, Column]:
    """Each sign, without the deadlock, which is none but the thing itself."""
    limits = policy.io_threads_stuck
    settled = F.col("age_seconds") >= 2 * 60 * policy.collect.recent_minutes
    came_back = F.col("reconnected_percent") >= limits.reconnected_percent
    return {
        "many_blocked": F.col("blocked") >= limits.blocked_threads,
        "many_pending": F.col("pending") >= limits.pending_requests,
        "many_files": F.col("files_percent") >= limits.open_files_percent,
        "many_reconnected": settled & came_back & (F.col("producers") >= limits.minimum_producers),
    }


def suspects(brokers: DataFrame, policy: Policy) -> DataFrame:
    """Brokers with any sign: a column for each sign, and their number, `signs`."""
    signs = {name: F.coalesce(sign, F.lit(False)) for name, sign in _signs(policy).items()}
    count = F.expr(" + ".join(f"int({name})" for name in signs))
    return brokers.withColumns(signs).withColumn("signs", count).where("signs > 0 or deadlocked > 0")


def _judge(frames: Frames, policy: Policy) -> Judgement:
    seen = vitals(frames)
    found = suspects(seen, policy)
    order = (F.desc(F.coalesce("deadlocked", F.lit(0.0))), F.desc("signs"), F.asc("source"))
    warning_signs = policy.io_threads_stuck.warning_signs
    quiet = "No broker shows a deadlock, many blocked threads, waiting lookups, used up sockets or mass reconnects."
    return worst_first(
        found, order, lambda row: _finding(row, warning_signs), lambda: quiet, lambda: _missing(frames, seen)
    )


def _missing(frames: Frames, seen: DataFrame) -> str | None:
    unknown = " or ".join(
        f"{name} is null" for name in ("deadlocked", "blocked", "pending", "files_percent", "age_seconds")
    )
    read = frames.brokers.where("read").select(F.col("broker").alias("source"))
    silent = read.join(seen, "source", "left").where(unknown).select("source").collect()
    if silent:
        names = named(sorted(row["source"] for row in silent))
        return f"Metrics of threads, waiting lookups, open files or the start are not in the snapshot for {names}."
    return None if read.take(1) else "No broker was read."


def _finding(row: Row, warning_signs: int) -> Finding:
    figures = {"deadlocked_threads": int(row["deadlocked"] or 0), "signs": row["signs"]}
    for sign, (column, name) in _FIGURES.items():
        if row[sign]:
            figures[name] = int(row[column])
    return Finding(
        check_id=IO_THREADS_STUCK.check_id,
        severity=_severity(row, warning_signs),
        subject=row["source"],
        evidence=_sentence(row),
        figures=figures,
    )


_FIGURES = {
    "many_blocked": ("blocked", "blocked_threads"),
    "many_pending": ("pending", "pending_requests"),
    "many_files": ("open_files", "open_files"),
    "many_reconnected": ("reconnected_percent", "reconnected_percent"),
}


def _severity(row: Row, warning_signs: int) -> Severity:
    if row["deadlocked"]:
        return Severity.CRITICAL
    return Severity.WARNING if row["signs"] >= warning_signs else Severity.INFO


def _sentence(row: Row) -> str:
    signs = ", ".join(_words(row, sign) for sign in _FIGURES if row[sign])
    if row["deadlocked"]:
        dead = f"{row['deadlocked']:,.0f} threads of broker {row['source']} are in a deadlock"
        return f"{dead}; besides, {signs}." if signs else f"{dead}."
    return f"Indirect signs of stuck threads at broker {row['source']}: {signs}; a thread dump would tell."


def _words(row: Row, sign: str) -> str:
    match sign:
        case "many_blocked":
            return f"{row['blocked']:,.0f} threads wait for a lock"
        case "many_pending":
            return f"{row['pending']:,.0f} lookups and topic loads wait"
        case "many_files":
            return f"{row['open_files']:,.0f} files and sockets are open ({row['files_percent']:.0f} % of the limit)"
        case _:
            share = f"{row['reconnected_percent']:.0f} % of {row['producers']:,} producers"
            return f"{share} connected anew within minutes"


CHECK = Check(IO_THREADS_STUCK, _judge)
