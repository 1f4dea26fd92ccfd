"""Namespaces whose topics keep consumed messages for ever, in time and in size: their storage only grows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from pulsar_steward.model.catalog.backlog import RETENTION_UNBOUNDED
from pulsar_steward.model.finding import Finding, Severity
from steward_spark.checks.backlog._defaults import defaults_of
from steward_spark.checks.backlog._policies import policies_of
from steward_spark.checks.backlog._quota_words import set_by
from steward_spark.checks.backlog._retention import UNBOUNDED, retained
from steward_spark.checks.check import Check
from steward_spark.checks.common.words import size
from steward_spark.checks.common.worst import worst_first

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

    from pulsar_steward.policy.schema import Policy
    from steward_spark.checks.check import Judgement
    from steward_spark.frames import Frames


def kept_for_ever(frames: Frames) -> DataFrame:
    """Namespaces without any bound on retention, or with topics that set theirs apart so.

    Returns:
        `namespace`, `unbounded` (whether the namespace itself is), `retention_own`, `offloaded`; of loaded topics kept
        for ever `topics`, `storage_bytes`, and the largest, `topic` (null: none is loaded) and `most_bytes`.
    """
    largest = F.max(F.struct(F.col("storage_bytes").alias("most_bytes"), "topic")).alias("largest")
    stored = (
        retained(frames)
        .where(UNBOUNDED)
        .groupBy("namespace")
        .agg(F.count("*").alias("topics"), F.sum("storage_bytes").alias("storage_bytes"), largest)
        .select("namespace", "topics", "storage_bytes", "largest.topic", "largest.most_bytes")
    )
    policies = policies_of(frames).select(
        "namespace", F.expr(UNBOUNDED).alias("unbounded"), "retention_own", "offloaded"
    )
    joined = policies.join(stored, "namespace", "left").where("unbounded or topics > 0")
    return joined.fillna(0, ["topics", "storage_bytes", "most_bytes"])


def _judge(frames: Frames, policy: Policy) -> Judgement:
    limit = policy.retention_unbounded.warning_storage_bytes
    trouble = F.expr(f"not offloaded and storage_bytes >= {limit}")
    return worst_first(
        kept_for_ever(frames).withColumn("trouble", trouble),
        (F.desc("trouble"), F.desc("storage_bytes"), F.asc("namespace")),
        _finding,
        lambda: "No namespace retains messages for ever.",
        lambda: defaults_of(frames).unknown("retention_minutes", "retention_megabytes"),
    )


def _finding(row: Row) -> Finding:
    who = set_by("namespace" if row["retention_own"] else "default") if row["unbounded"] else "set on topics"
    stored = (
        f"{row['topics']:,} loaded topics store {size(row['storage_bytes'])} under it, {row['topic']} the most"
        f" ({size(row['most_bytes'])})"
        if row["topics"]
        else "no topic under it is loaded"
    )
    offload = "; old ledgers are offloaded" if row["offloaded"] else ""
    return Finding(
        check_id=RETENTION_UNBOUNDED.check_id,
        severity=Severity.WARNING if row["trouble"] else Severity.INFO,
        subject=row["namespace"],
        evidence=f"Retention has no limit in time nor in size ({who}): {stored}{offload}.",
        figures={
            "most_storage_bytes": row["most_bytes"],
            "storage_bytes": row["storage_bytes"],
            "topics": row["topics"],
        },
    )


CHECK = Check(RETENTION_UNBOUNDED, _judge)
