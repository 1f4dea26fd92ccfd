"""Topics whose backlog is close to its quota or over it, in size or in age: what happens next depends on the policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from pulsar_steward.model.catalog.backlog import BACKLOG_NEAR_QUOTA
from pulsar_steward.model.finding import Finding, Severity
from steward_spark.checks.backlog._blind import unknown_ages
from steward_spark.checks.backlog._culprits import culprits
from steward_spark.checks.backlog._defaults import defaults_of
from steward_spark.checks.backlog._in_force import pressed, quotas_in_force
from steward_spark.checks.backlog._quota_words import age_quota, capitalised, consequence, figures, size_quota
from steward_spark.checks.check import Check, Judgement
from steward_spark.checks.common.listing import worst

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

    from pulsar_steward.policy.checks.backlog import BacklogNearQuotaPolicy
    from pulsar_steward.policy.schema import Policy
    from steward_spark.checks.backlog._culprits import Culprit
    from steward_spark.frames import Frames


def near_quota(in_force: DataFrame, policy: BacklogNearQuotaPolicy) -> DataFrame:
    """Topics at or over `warning_percent` of a quota.

    Returns:
        The columns of `quotas_in_force`, and `percent`: of the fuller quota.
    """
    percent = F.greatest("bytes_percent", "seconds_percent")
    return in_force.withColumn("percent", percent).where(F.col("percent") >= policy.warning_percent)


def _judge(frames: Frames, policy: Policy) -> Judgement:
    in_force = quotas_in_force(frames)
    found = near_quota(pressed(frames), policy.backlog_near_quota)
    rows, more = worst(found, F.desc("percent"), F.desc("backlog_bytes"), F.asc("topic"))
    if not rows:
        unknown = defaults_of(frames).unknown("limit_bytes", "limit_seconds") or unknown_ages(in_force)
        return Judgement(quiet="No topic's backlog is close to its quota.", cannot_tell=unknown)
    who = culprits(frames, rows)
    limit = policy.backlog_near_quota.critical_percent
    return Judgement(findings=tuple(_finding(row, limit, who.get(row["topic"])) for row in rows), more=more)


def _finding(row: Row, critical_percent: int, culprit: Culprit | None) -> Finding:
    by_size = (row["bytes_percent"] or 0) >= (row["seconds_percent"] or 0)
    quota, policy = (size_quota(row), row["bytes_policy"]) if by_size else (age_quota(row), row["seconds_policy"])
    delayed = f" {row['delayed_messages']:,} delayed messages count as backlog." if row["delayed_messages"] else ""
    slowest = f" {capitalised(str(culprit))}." if culprit else ""
    return Finding(
        check_id=BACKLOG_NEAR_QUOTA.check_id,
        severity=Severity.CRITICAL if row["percent"] >= critical_percent else Severity.WARNING,
        subject=row["topic"],
        evidence=f"{capitalised(quota)}; once exceeded ({policy}), {consequence(policy)}.{delayed}{slowest}",
        figures=figures(row),
    )


CHECK = Check(BACKLOG_NEAR_QUOTA, _judge)
