"""Direct memory of brokers and bookies, in which messages travel: how near to its limit it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from pulsar_steward.model.catalog.resources import DIRECT_MEMORY_PRESSURE
from pulsar_steward.model.finding import Finding, Severity
from steward_spark.checks.check import Check
from steward_spark.checks.common.worst import named, worst_first
from steward_spark.checks.resources._metrics import highest, samples

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

    from pulsar_steward.policy.schema import Policy
    from steward_spark.checks.check import Judgement
    from steward_spark.frames import Frames

USED = "jvm_memory_direct_bytes_used"
LIMIT = "jvm_memory_direct_bytes_max"
MEBIBYTE = 1024 * 1024


def direct_memory(frames: Frames) -> DataFrame:
    """How full the direct memory of each process is: by its metrics, and where there are none by its load report.

    Returns:
        `source`, `kind`, `percent`, `used_bytes` and `limit_bytes`; `percent` is null where neither tells it, the bytes
        where only the load report does.
    """
    measured = (
        samples(frames, USED, LIMIT)
        .groupBy("source", "source_kind")
        .agg(highest(USED).alias("used_bytes"), highest(LIMIT).alias("limit_bytes"))
        .where("limit_bytes > 0 and used_bytes is not null")
    )
    reported = frames.brokers.where("read").select(F.col("broker").alias("source"), "direct_memory_percent")
    percent = F.coalesce(F.expr("used_bytes * 100 / limit_bytes"), F.col("direct_memory_percent"))
    return measured.join(reported, "source", "full_outer").select(
        "source",
        F.coalesce("source_kind", F.lit("broker")).alias("kind"),
        percent.alias("percent"),
        "used_bytes",
        "limit_bytes",
    )


def _judge(frames: Frames, policy: Policy) -> Judgement:
    limits = policy.direct_memory_pressure
    memory = direct_memory(frames)
    critical = F.col("percent") >= limits.critical_percent
    full = memory.where(F.col("percent") >= limits.warning_percent).withColumn("critical", critical)
    order = (F.desc("percent"), F.asc("source"))
    return worst_first(full, order, _finding, lambda: _quiet(memory), lambda: _missing(memory))


def _missing(memory: DataFrame) -> str | None:
    silent = sorted(row["source"] for row in memory.where("percent is null").select("source").collect())
    if silent:
        return f"Neither metrics nor load report tell the direct memory of {named(silent)}."
    return None if memory.take(1) else "No direct memory was read of any process."


def _quiet(memory: DataFrame) -> str:
    row = memory.agg(F.count("*").alias("processes"), F.max("percent").alias("most")).first()
    if row is None or row["most"] is None:
        return "Nothing was judged."
    return f"Of {row['processes']:,} process(es), the fullest uses {row['most']:.0f} % of its direct memory."


def _finding(row: Row) -> Finding:
    known = row["used_bytes"] is not None
    bytes_words = f" ({row['used_bytes'] / MEBIBYTE:,.0f} of {row['limit_bytes'] / MEBIBYTE:,.0f} MiB)" if known else ""
    figures = {"percent": int(row["percent"])}
    if known:
        figures |= {"limit_bytes": int(row["limit_bytes"]), "used_bytes": int(row["used_bytes"])}
    return Finding(
        check_id=DIRECT_MEMORY_PRESSURE.check_id,
        severity=Severity.CRITICAL if row["critical"] else Severity.WARNING,
        subject=row["source"],
        evidence=f"{row['source']} ({row['kind']}) has taken {row['percent']:.0f} % of its direct memory{bytes_words}.",
        figures=figures,
    )


CHECK = Check(DIRECT_MEMORY_PRESSURE, _judge)
