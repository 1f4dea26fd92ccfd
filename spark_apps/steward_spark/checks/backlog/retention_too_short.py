"""Retention that a topic's backlog has outgrown, or that leaves a quota no room."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from pulsar_steward.model.catalog.backlog import RETENTION_TOO_SHORT
from pulsar_steward.model.finding import Finding, Severity
from steward_spark.checks.backlog._defaults import defaults_of
from steward_spark.checks.backlog._retention import MIB, MINUTE, compared, retained
from steward_spark.checks.check import MOST_FINDINGS, Check, Judgement
from steward_spark.checks.common.listing import worst
from steward_spark.checks.common.words import duration, size

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

    from pulsar_steward.policy.checks.backlog import RetentionTooShortPolicy
    from pulsar_steward.policy.schema import Policy
    from steward_spark.frames import Frames


def outgrown(topics: DataFrame, policy: RetentionTooShortPolicy) -> DataFrame:
    """Topics whose backlog is at least as large or as old as what is retained.

    Args:
        topics: Columns of `retained`.
        policy: Backlogs that are left alone.

    Returns:
        The same, with `size_percent` and `time_percent`: the backlog as a share of the retention, null where it is
        left alone or not known.
    """
    retained_bytes, retained_seconds = F.col("retention_megabytes") * MIB, F.col("retention_minutes") * MINUTE
    large = (F.col("retention_megabytes") > 0) & (F.col("backlog_bytes") >= policy.minimum_backlog_bytes)
    old = (F.col("retention_minutes") > 0) & (F.col("oldest_seconds") >= policy.minimum_backlog_age_seconds)
    shares = topics.withColumn(
        "size_percent", F.when(large, F.floor(F.col("backlog_bytes") * 100.0 / retained_bytes).cast("bigint"))
    ).withColumn(
        "time_percent", F.when(old, F.floor(F.col("oldest_seconds") * 100.0 / retained_seconds).cast("bigint"))
    )
    return shares.where("greatest(size_percent, time_percent) >= 100")


def without_room(quotas: DataFrame, policy: RetentionTooShortPolicy, over_percent: int) -> DataFrame:
    """Namespaces and topics whose quota takes nearly all of the retention; what takes all is another check's.

    Args:
        quotas: Columns of `compared`.
        policy: From which share on.
        over_percent: The share from which `quota-over-retention` speaks.
    """
    percent = F.greatest("size_percent", "time_percent")
    return quotas.where((percent >= policy.info_percent) & (percent < over_percent)).withColumn("percent", percent)


def _judge(frames: Frames, policy: Policy) -> Judgement:
    own = policy.retention_too_short
    order = F.expr("greatest(size_percent, time_percent)").desc()
    topics, more_topics = worst(outgrown(retained(frames), own), order, F.asc("topic"))
    tight = without_room(compared(frames), own, policy.quota_over_retention.warning_percent)
    quotas, more_quotas = worst(tight, order, F.asc("subject"))
    findings = [_backlog_finding(row) for row in topics] + [_quota_finding(row) for row in quotas]
    missing = defaults_of(frames).unknown("limit_bytes", "limit_seconds", "retention_minutes", "retention_megabytes")
    left_out = max(len(findings) - MOST_FINDINGS, 0)
    return Judgement(
        findings=tuple(findings[:MOST_FINDINGS]),
        more=more_topics + more_quotas + left_out,
        quiet="No retention is too short for its quota or for the backlog seen.",
        cannot_tell=missing or (None if findings else _unknown_ages(frames)),
    )


def _unknown_ages(frames: Frames) -> str | None:
    drilled = frames.drilled.select("topic").distinct()
    blind = retained(frames).where("retention_minutes > 0 and backlog_bytes > 0").join(drilled, "topic", "left_anti")
    count = blind.count()
    return f"{count:,} topics under a retention in time have a backlog whose age was not read." if count else None


def _backlog_finding(row: Row) -> Finding:
    if (row["size_percent"] or 0) >= (row["time_percent"] or 0):
        what = f"The backlog is {size(row['backlog_bytes'])}, and {size(row['retention_megabytes'] * MIB)} are retained"
    else:
        what = (
            f"The oldest message of the backlog is {duration(row['oldest_seconds'])} old, and the retention is"
            f" {duration(row['retention_minutes'] * MINUTE)}"
        )
    slowest = f" by subscription {row['slowest_subscription']}" if row["slowest_subscription"] else ""
    names = ("backlog_bytes", "retention_megabytes", "retention_minutes", "size_percent", "time_percent")
    figures = {name: row[name] for name in names if row[name] is not None}
    if row["oldest_seconds"] is not None:
        figures["oldest_backlog_age_seconds"] = row["oldest_seconds"]
    return Finding(
        check_id=RETENTION_TOO_SHORT.check_id,
        severity=Severity.WARNING,
        subject=row["topic"],
        evidence=f"{what}: once it is acknowledged{slowest}, the excess is deleted and cannot be read again.",
        figures=figures,
    )


def _quota_finding(row: Row) -> Finding:
    names = ("limit_bytes", "limit_seconds", "retention_megabytes", "retention_minutes", "size_percent", "time_percent")
    return Finding(
        check_id=RETENTION_TOO_SHORT.check_id,
        severity=Severity.INFO,
        subject=row["subject"],
        evidence=f"The quota takes {row['percent']:,} % of the retention: there is little room to raise it.",
        figures={name: row[name] for name in names if row[name] is not None},
    )


CHECK = Check(RETENTION_TOO_SHORT, _judge)
