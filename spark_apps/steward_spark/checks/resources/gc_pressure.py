"""Garbage collection of brokers and bookies: how much of their time it takes, and how long full collections last."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from pulsar_steward.model.catalog.resources import GC_PRESSURE
from pulsar_steward.model.finding import Finding, Severity
from steward_spark.checks.check import Check
from steward_spark.checks.common.worst import named, worst_first
from steward_spark.checks.resources._metrics import STARTED, highest, label, samples, silent_brokers, total

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import DataFrame, Row

    from pulsar_steward.policy.checks.resources import GcPressurePolicy
    from pulsar_steward.policy.schema import Policy
    from steward_spark.checks.check import Judgement
    from steward_spark.frames import Frames

SECONDS = "jvm_gc_collection_seconds_sum"
COLLECTIONS = "jvm_gc_collection_seconds_count"

CONCURRENT = "(Cycles|Concurrent GC)$"
"""Collectors (ZGC, Shenandoah, G1's concurrent part) that work while the process does: their time is no pause."""

FULL = "^(G1 Old Generation|MarkSweepCompact|PS MarkSweep)$"
"""Collectors that stop the process for the whole heap; ZGC and Shenandoah have none."""


def collected(frames: Frames, taken_at: datetime) -> DataFrame:
    """What collections cost each process since it started.

    Returns:
        `source`, `source_kind`, `age_seconds`, `paused_seconds`, `share_percent`, `full`, `full_per_hour` and
        `full_pause_ms`, the mean length of a full collection.
    """
    pauses = ~F.coalesce(label("gc").rlike(CONCURRENT), F.lit(False))
    full = F.coalesce(label("gc").rlike(FULL), F.lit(False))
    marked = samples(frames, SECONDS, COLLECTIONS, STARTED).withColumns({"pauses": pauses, "full": full})
    seconds, full_value = F.col("series") == SECONDS, F.when(F.col("full"), F.col("value"))
    zero = F.lit(0.0)
    summed = marked.groupBy("source", "source_kind").agg(
        (F.lit(taken_at.timestamp()) - highest(STARTED)).alias("age_seconds"),
        F.coalesce(F.sum(F.when(seconds & F.col("pauses"), F.col("value"))), zero).alias("paused_seconds"),
        F.coalesce(F.sum(F.when(seconds, full_value)), zero).alias("full_seconds"),
        F.coalesce(F.sum(F.when(F.col("series") == COLLECTIONS, full_value)), zero).alias("full"),
        total(COLLECTIONS).alias("collections"),
    )
    return summed.where("collections is not null").withColumns(
        {
            "share_percent": F.expr("if(age_seconds > 0, paused_seconds * 100 / age_seconds, null)"),
            "full_per_hour": F.expr("if(age_seconds > 0, full * 3600 / age_seconds, null)"),
            "full_pause_ms": F.expr("if(full > 0, full_seconds * 1000 / full, 0.0)"),
        }
    )


def strained(costs: DataFrame, policy: GcPressurePolicy) -> DataFrame:
    """Those for which collections cost too much, with the column `critical`."""
    often = (F.col("full") >= policy.minimum_full_collections) & (
        F.col("full_per_hour") >= policy.warning_full_collections_per_hour
    )
    much = F.col("share_percent") >= policy.warning_share_percent
    long = F.col("full_pause_ms") >= policy.warning_full_pause_milliseconds
    critical = (F.col("share_percent") >= policy.critical_share_percent) | (
        F.col("full_pause_ms") >= policy.critical_full_pause_milliseconds
    )
    return costs.where(much | often | long).withColumn("critical", critical)


def _judge(frames: Frames, policy: Policy) -> Judgement:
    limits = policy.gc_pressure
    costs = collected(frames, frames.about.taken_at)
    grown = costs.where(F.col("age_seconds") >= limits.minimum_age_seconds)
    order = (F.desc("critical"), F.desc("share_percent"), F.asc("source"))
    return worst_first(
        strained(grown, limits), order, _finding, lambda: _quiet(grown), lambda: _missing(frames, costs, limits)
    )


def _missing(frames: Frames, costs: DataFrame, policy: GcPressurePolicy) -> str | None:
    if silent := silent_brokers(frames, COLLECTIONS):
        return f"The snapshot has no garbage collection metrics of {named(silent)}."
    known_grown = F.coalesce(F.col("age_seconds") >= policy.minimum_age_seconds, F.lit(False))
    young = sorted(row["source"] for row in costs.where(~known_grown).select("source").collect())
    if young:
        least = f"{policy.minimum_age_seconds} s"
        return f"Rates say nothing of a process younger than {least}, or of unknown age: {named(young)}."
    return None if costs.take(1) else "The snapshot has no garbage collection metrics."


def _quiet(costs: DataFrame) -> str:
    by_kind = costs.groupBy("source_kind").agg(F.count("*").alias("processes"), F.max("share_percent").alias("most"))
    parts = [
        f"at most {row['most']:.1f} % of the time of {row['processes']:,} {row['source_kind']}(s)"
        for row in by_kind.orderBy("source_kind").collect()
    ]
    return f"Since their start, garbage collection took {', '.join(parts)}." if parts else "Nothing was judged."


def _finding(row: Row) -> Finding:
    minutes = row["age_seconds"] / 60
    full = (
        f"; {row['full']:,.0f} full collections ({row['full_per_hour']:,.1f} an hour)"
        f" of {row['full_pause_ms']:,.0f} ms on average"
        if row["full"]
        else ""
    )
    return Finding(
        check_id=GC_PRESSURE.check_id,
        severity=Severity.CRITICAL if row["critical"] else Severity.WARNING,
        subject=row["source"],
        evidence=(
            f"{row['source']} ({row['source_kind']}) stood still for garbage collection {row['share_percent']:.1f} %"
            f" of the {minutes:,.0f} minutes since its start ({row['paused_seconds']:,.1f} s){full}."
        ),
        figures={
            "age_seconds": int(row["age_seconds"]),
            "full_collections": int(row["full"]),
            "full_pause_milliseconds": int(row["full_pause_ms"]),
            "paused_milliseconds": int(row["paused_seconds"] * 1000),
            "share_percent": int(row["share_percent"]),
        },
    )


CHECK = Check(GC_PRESSURE, _judge)
