"""Namespaces whose bounded retention stores much more, and for far longer, than quota and outage need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from pulsar_steward.model.catalog.backlog import RETENTION_TOO_LONG
from pulsar_steward.model.finding import Finding, Severity
from steward_spark.checks.backlog._defaults import defaults_of
from steward_spark.checks.backlog._policies import policies_of
from steward_spark.checks.backlog._quota_words import set_by
from steward_spark.checks.backlog._retention import MIB, MINUTE, retained
from steward_spark.checks.check import Check
from steward_spark.checks.common.words import duration, size
from steward_spark.checks.common.worst import worst_first

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

    from pulsar_steward.policy.remedies import BacklogQuotaRemedy
    from pulsar_steward.policy.schema import Policy
    from steward_spark.checks.check import Judgement
    from steward_spark.frames import Frames

BOUNDED = "retention_minutes <> 0 and retention_megabytes <> 0 and (retention_minutes > 0 or retention_megabytes > 0)"
"""Zero in both keeps nothing; brokers refuse it in one alone."""

_RETENTION = ["namespace", "retention_minutes", "retention_megabytes"]


def stored(frames: Frames) -> DataFrame:
    """Namespaces with a bounded retention, and what their topics under it store that every subscription has consumed.

    Topics that are known to retain otherwise are left out.

    Returns:
        The columns of `namespace_policies`; of loaded topics `topics`, `storage_bytes`, `consumed_bytes`;
        `peak_bytes`, the largest backlog, and `busiest`, what comes in per second at most.
    """
    by_retention = (
        _consumed(frames)
        .groupBy(*_RETENTION)
        .agg(
            F.count("*").alias("topics"),
            F.sum("storage_bytes").alias("storage_bytes"),
            F.sum("consumed").alias("consumed_bytes"),
            F.coalesce(F.max("backlog_bytes"), F.lit(0)).alias("peak_bytes"),
            F.coalesce(F.max("throughput_in_bytes"), F.lit(0.0)).alias("busiest"),
        )
    )
    return by_retention.join(policies_of(frames), _RETENTION)


def with_fullest(namespaces: DataFrame, frames: Frames) -> DataFrame:
    """Adds the `topic` that stores most of it to few rows of `stored`: for all of them, Spark would sort all topics."""
    theirs = _consumed(frames).join(F.broadcast(namespaces.select(*_RETENTION)), _RETENTION)
    fullest = F.max_by("topic", F.struct("consumed", "topic")).alias("topic")
    return namespaces.join(theirs.groupBy(*_RETENTION).agg(fullest), _RETENTION)


def _consumed(frames: Frames) -> DataFrame:
    consumed = F.greatest(F.col("storage_bytes") - F.coalesce("backlog_bytes", F.lit(0)), F.lit(0))
    return retained(frames).where(BOUNDED).withColumn("consumed", F.coalesce(consumed, F.lit(0)))


def with_need(namespaces: DataFrame, remedy: BacklogQuotaRemedy) -> DataFrame:
    """What a retention has to have room for: an outage, the quotas, and the backlogs seen, each with its headroom.

    Returns:
        The same, with `needed_seconds`, `needed_bytes` a topic, and `percent` of them that are retained: of what is
        bounded, the tighter one.
    """
    outage = remedy.survive_outage_hours * 3600
    seconds = F.greatest(
        F.lit(outage * (100 + remedy.outage_headroom_percent) // 100), F.coalesce("limit_seconds", F.lit(0))
    )
    room = F.greatest(
        F.col("peak_bytes") * (100 + remedy.peak_headroom_percent) / 100,
        F.col("busiest") * outage,
        F.lit(float(remedy.minimum_megabytes * MIB)),
        F.coalesce("limit_bytes", F.lit(0)).cast("double"),
    )
    needed = namespaces.withColumn("needed_seconds", seconds).withColumn("needed_bytes", room.cast("bigint"))
    in_time = F.when(
        F.col("retention_minutes") > 0, F.col("retention_minutes") * 100.0 * MINUTE / F.col("needed_seconds")
    )
    in_size = F.when(
        F.col("retention_megabytes") > 0, F.col("retention_megabytes") * 100.0 * MIB / F.col("needed_bytes")
    )
    return needed.withColumn("percent", F.floor(F.least(in_time, in_size)).cast("bigint"))


def _judge(frames: Frames, policy: Policy) -> Judgement:
    own = policy.retention_too_long
    namespaces = with_need(stored(frames), policy.backlog_quota_remedy)
    costly = F.col("consumed_bytes") >= own.warning_consumed_bytes
    found = frames.few(namespaces.where(costly & (F.col("percent") >= own.warning_percent)))
    return worst_first(
        with_fullest(found, frames),
        (F.asc("offloaded"), F.desc("consumed_bytes"), F.asc("namespace")),
        _finding,
        lambda: "No namespace stores much more of what is consumed than its quota or an outage need.",
        lambda: defaults_of(frames).unknown("limit_bytes", "limit_seconds", "retention_minutes", "retention_megabytes"),
    )


def _finding(row: Row) -> Finding:
    who = set_by("namespace" if row["retention_own"] else "default")
    offload = "; old ledgers are offloaded" if row["offloaded"] else ""
    names = (
        "consumed_bytes",
        "needed_bytes",
        "needed_seconds",
        "percent",
        "retention_megabytes",
        "retention_minutes",
        "storage_bytes",
        "topics",
    )
    return Finding(
        check_id=RETENTION_TOO_LONG.check_id,
        severity=Severity.INFO if row["offloaded"] else Severity.WARNING,
        subject=row["namespace"],
        evidence=(
            f"Over the cluster, {row['topics']:,} loaded topics store {size(row['consumed_bytes'])} that every"
            f" subscription has consumed, of {size(row['storage_bytes'])} in all and before copies, {row['topic']} the"
            f" most: retention is {_kept(row)} ({who}), {row['percent'] / 100:,.0f} times what quota and outage need"
            f" ({duration(row['needed_seconds'])}, {size(row['needed_bytes'])} a topic){offload}."
        ),
        figures={name: row[name] for name in names},
    )


def _kept(row: Row) -> str:
    limits = []
    if row["retention_minutes"] > 0:
        limits.append(duration(row["retention_minutes"] * MINUTE))
    if row["retention_megabytes"] > 0:
        limits.append(f"{size(row['retention_megabytes'] * MIB)} a topic")
    return " and ".join(limits)


CHECK = Check(RETENTION_TOO_LONG, _judge)
