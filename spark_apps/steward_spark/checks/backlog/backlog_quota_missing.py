"""Namespaces with a backlog that no quota bounds, in size or in age: it may grow until the bookies are full."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from pulsar_steward.model.catalog.backlog import BACKLOG_QUOTA_MISSING
from pulsar_steward.model.finding import Finding, Severity
from steward_spark.checks.backlog._defaults import defaults_of
from steward_spark.checks.backlog._in_force import quotas_in_force
from steward_spark.checks.check import Check
from steward_spark.checks.common.words import size
from steward_spark.checks.common.worst import worst_first

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

    from pulsar_steward.policy.checks.backlog import BacklogQuotaMissingPolicy
    from pulsar_steward.policy.schema import Policy
    from steward_spark.checks.check import Judgement
    from steward_spark.frames import Frames


def without_quota(in_force: DataFrame, policy: BacklogQuotaMissingPolicy) -> DataFrame:
    """Namespaces with topics that have a backlog and no quota.

    Returns:
        `namespace`; of such topics `topics` and `backlog_bytes` in all; `topic` and `most_bytes` of the largest.
    """
    unbounded = in_force.where(
        (F.col("limit_bytes") < 0) & (F.col("limit_seconds") <= 0) & (F.col("backlog_bytes") > 0)
    )
    largest = F.max(F.struct(F.col("backlog_bytes").alias("most_bytes"), "topic")).alias("largest")
    totals = unbounded.groupBy("namespace").agg(
        F.count("*").alias("topics"), F.sum("backlog_bytes").alias("backlog_bytes"), largest
    )
    flat = totals.select("namespace", "topics", "backlog_bytes", "largest.topic", "largest.most_bytes")
    worth_a_word = F.col("backlog_bytes") >= policy.info_backlog_bytes
    return flat.where(worth_a_word | (F.col("most_bytes") >= policy.warning_backlog_bytes))


def _judge(frames: Frames, policy: Policy) -> Judgement:
    limit = policy.backlog_quota_missing.warning_backlog_bytes
    return worst_first(
        without_quota(quotas_in_force(frames), policy.backlog_quota_missing),
        (F.desc("most_bytes"), F.asc("namespace")),
        lambda row: _finding(row, limit),
        lambda: "No topic has a backlog without a quota.",
        lambda: defaults_of(frames).unknown("limit_bytes", "limit_seconds"),
    )


def _finding(row: Row, warning_bytes: int) -> Finding:
    return Finding(
        check_id=BACKLOG_QUOTA_MISSING.check_id,
        severity=Severity.WARNING if row["most_bytes"] >= warning_bytes else Severity.INFO,
        subject=row["namespace"],
        evidence=(
            "Neither the namespace nor the brokers' default sets a backlog quota, and"
            f" {row['topics']:,} topics without one hold {size(row['backlog_bytes'])} of backlog,"
            f" {row['topic']} the most ({size(row['most_bytes'])})."
        ),
        figures={
            "backlog_bytes": row["backlog_bytes"],
            "most_backlog_bytes": row["most_bytes"],
            "topics": row["topics"],
        },
    )


CHECK = Check(BACKLOG_QUOTA_MISSING, _judge)
