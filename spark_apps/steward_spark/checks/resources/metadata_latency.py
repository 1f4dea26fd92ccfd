"""How long the metadata store takes to answer brokers and bookies, since their start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from pulsar_steward.model.catalog.resources import METADATA_LATENCY
from pulsar_steward.model.finding import Finding, Severity
from steward_spark.checks.check import Check
from steward_spark.checks.common.worst import named, worst_first
from steward_spark.checks.resources._metrics import label, samples, silent_brokers, total

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

    from pulsar_steward.policy.checks.resources import MetadataLatencyPolicy
    from pulsar_steward.policy.schema import Policy
    from steward_spark.checks.check import Judgement
    from steward_spark.frames import Frames

MILLISECONDS = "pulsar_metadata_store_ops_latency_ms_sum"
OPERATIONS = "pulsar_metadata_store_ops_latency_ms_count"
BUCKETS = "pulsar_metadata_store_ops_latency_ms_bucket"
WAITED = "pulsar_batch_metadata_store_queue_wait_time_ms_sum"
WAITS = "pulsar_batch_metadata_store_queue_wait_time_ms_count"
SECOND = 1000.0
"""The bound of the bucket, in milliseconds, beyond which an operation is slow."""


def operations(frames: Frames) -> DataFrame:
    """Operations that succeeded, by process, store and kind.

    Returns:
        `source`, `source_kind`, `store`, `operation`, `operations`, `mean_ms`, `slow` (null without buckets) and
        `slow_percent`.
    """
    timed = samples(frames, MILLISECONDS, OPERATIONS, BUCKETS).where(label("status") == "success")
    quick = (F.col("series") == BUCKETS) & (label("le").cast("double") == SECOND)
    by_kind = timed.groupBy(
        "source", "source_kind", label("name").alias("store"), label("type").alias("operation")
    ).agg(
        total(OPERATIONS).alias("operations"),
        total(MILLISECONDS).alias("milliseconds"),
        F.sum(F.when(quick, F.col("value"))).alias("quick"),
    )
    return by_kind.where("operations > 0 and milliseconds is not null").withColumns(
        {
            "mean_ms": F.expr("milliseconds / operations"),
            "slow": F.expr("operations - quick"),
            "slow_percent": F.expr("coalesce((operations - quick) * 100 / operations, 0.0)"),
        }
    )


def waiting(frames: Frames) -> DataFrame:
    """How long an operation waits in the process itself before it is sent: `source`, `store` and `wait_ms`."""
    sums = samples(frames, WAITED, WAITS).groupBy("source", label("name").alias("store"))
    return (
        sums.agg(total(WAITED).alias("waited"), total(WAITS).alias("waits"))
        .where("waits > 0")
        .select("source", "store", F.expr("waited / waits").alias("wait_ms"))
    )


def slow_stores(timed: DataFrame, policy: MetadataLatencyPolicy) -> DataFrame:
    """The slowest kind of operation of each process and store that is slow, with the column `critical`."""
    often = (F.col("slow") >= policy.minimum_slow_operations) & (F.col("slow_percent") >= policy.warning_slow_percent)
    late = F.col("mean_ms") >= policy.warning_mean_milliseconds
    enough = F.col("operations") >= policy.minimum_operations
    worst = F.max(F.struct("mean_ms", "operation", "operations", "slow", "slow_percent")).alias("worst")
    slow = timed.where(enough & (late | often)).groupBy("source", "source_kind", "store").agg(worst)
    critical = F.col("mean_ms") >= policy.critical_mean_milliseconds
    return slow.select("source", "source_kind", "store", "worst.*").withColumn("critical", critical)


def _judge(frames: Frames, policy: Policy) -> Judgement:
    limits = policy.metadata_latency
    timed = operations(frames)
    slow = slow_stores(timed, limits).join(waiting(frames), ["source", "store"], "left")
    order = (F.desc("mean_ms"), F.asc("source"), F.asc("store"))
    judged = timed.where(F.col("operations") >= limits.minimum_operations)
    return worst_first(slow, order, _finding, lambda: _quiet(judged), lambda: _missing(frames, timed, limits))


def _missing(frames: Frames, timed: DataFrame, policy: MetadataLatencyPolicy) -> str | None:
    if silent := silent_brokers(frames, OPERATIONS):
        return f"The snapshot has no metadata latencies of {named(silent)}."
    most = timed.groupBy("source").agg(F.max("operations").alias("most"))
    few = sorted(row["source"] for row in most.where(F.col("most") < policy.minimum_operations).collect())
    if few:
        return f"Too few metadata operations yet (below {policy.minimum_operations}) to judge {named(few)}."
    return None if timed.take(1) else "The snapshot has no metadata latencies."


def _quiet(timed: DataFrame) -> str:
    row = timed.agg(F.count_distinct("source").alias("sources"), F.max("mean_ms").alias("most")).first()
    if row is None or row["most"] is None:
        return "Nothing was judged."
    return f"Metadata operations of {row['sources']:,} process(es) take {row['most']:.0f} ms on average at most."


def _finding(row: Row) -> Finding:
    figures = {"mean_milliseconds": int(row["mean_ms"]), "operations": int(row["operations"])}
    slow = ""
    if row["slow"] is not None:
        slow = f"; {row['slow']:,.0f} ({row['slow_percent']:.1f} %) took over a second"
        figures |= {"slow_operations": int(row["slow"])}
    waits = ""
    if row["wait_ms"] is not None:
        waits = (
            f"; before they are sent, they wait {row['wait_ms']:,.0f} ms on average in the {row['source_kind']} itself"
        )
        figures |= {"waiting_milliseconds": int(row["wait_ms"])}
    return Finding(
        check_id=METADATA_LATENCY.check_id,
        severity=Severity.CRITICAL if row["critical"] else Severity.WARNING,
        subject=row["source"],
        evidence=(
            f"Operations `{row['operation']}` on the {row['store']} took {row['mean_ms']:,.0f} ms on average, as the"
            f" {row['source_kind']} {row['source']} saw {row['operations']:,.0f} of them since its start{slow}{waits}."
        ),
        figures=figures,
    )


CHECK = Check(METADATA_LATENCY, _judge)
