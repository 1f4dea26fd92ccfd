"""Quotas that are not below the retention: brokers demand it, but do not compare all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from pulsar_steward.model.catalog.backlog import QUOTA_OVER_RETENTION
from pulsar_steward.model.finding import Finding, Severity
from steward_spark.checks.backlog._defaults import defaults_of
from steward_spark.checks.backlog._quota_words import set_by
from steward_spark.checks.backlog._retention import MIB, MINUTE, compared
from steward_spark.checks.check import Check
from steward_spark.checks.common.words import duration, size
from steward_spark.checks.common.worst import worst_first

if TYPE_CHECKING:
    from pyspark.sql import Row

    from pulsar_steward.policy.schema import Policy
    from steward_spark.checks.check import Judgement
    from steward_spark.frames import Frames


def _judge(frames: Frames, policy: Policy) -> Judgement:
    limit = policy.quota_over_retention.warning_percent
    percent = F.greatest("size_percent", "time_percent")
    return worst_first(
        compared(frames).withColumn("percent", percent).where(F.col("percent") >= limit),
        (F.desc("percent"), F.asc("subject")),
        lambda row: _finding(row, limit),
        lambda: "Every quota is below the retention.",
        lambda: defaults_of(frames).unknown("limit_bytes", "limit_seconds", "retention_minutes", "retention_megabytes"),
    )


def _finding(row: Row, limit: int) -> Finding:
    figures = (
        "limit_bytes",
        "limit_seconds",
        "retention_megabytes",
        "retention_minutes",
        "size_percent",
        "time_percent",
    )
    words = [
        part for part, percent in ((_by_size, "size_percent"), (_by_time, "time_percent")) if _over(row[percent], limit)
    ]
    return Finding(
        check_id=QUOTA_OVER_RETENTION.check_id,
        severity=Severity.WARNING,
        subject=row["subject"],
        evidence=(
            f"{', and '.join(part(row) for part in words)}: a quota has to be below the retention, and the broker may"
            " refuse the next change of either (412)."
        ),
        figures={name: row[name] for name in figures if row[name] is not None},
    )


def _over(percent: int | None, limit: int) -> bool:
    return percent is not None and percent >= limit


def _by_size(row: Row) -> str:
    return (
        f"The size quota of {size(row['limit_bytes'])} ({set_by(row['bytes_by'])}) is {row['size_percent']:,} % of the"
        f" {size(row['retention_megabytes'] * MIB)} that are retained ({set_by(row['retention_by'])})"
    )


def _by_time(row: Row) -> str:
    return (
        f"the age quota of {duration(row['limit_seconds'])} ({set_by(row['seconds_by'])}) is {row['time_percent']:,} %"
        f" of the {duration(row['retention_minutes'] * MINUTE)} of retention ({set_by(row['retention_by'])})"
    )


CHECK = Check(QUOTA_OVER_RETENTION, _judge)
