"""Namespaces where messages expire before their age quota can act: it looks like protection, and messages are lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from pulsar_steward.model.catalog.backlog import TTL_BEFORE_QUOTA
from pulsar_steward.model.finding import Finding, Severity
from steward_spark.checks.backlog._defaults import defaults_of
from steward_spark.checks.backlog._in_force import holds_producers
from steward_spark.checks.backlog._policies import policies_of
from steward_spark.checks.backlog._quota_words import set_by
from steward_spark.checks.check import Check
from steward_spark.checks.common.words import duration
from steward_spark.checks.common.worst import worst_first

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

    from pulsar_steward.policy.checks.backlog import TtlBeforeQuotaPolicy
    from pulsar_steward.policy.schema import Policy
    from steward_spark.checks.check import Judgement
    from steward_spark.frames import Frames


def expiring_first(policies: DataFrame, policy: TtlBeforeQuotaPolicy) -> DataFrame:
    """Namespaces whose TTL is at most `warning_percent` of their age quota.

    Returns:
        The columns of `namespace_policies`, and `held`, whether the quota is one that shuts producers out.
    """
    ttl, limit = F.col("ttl_seconds"), F.col("limit_seconds")
    first = (ttl > 0) & (limit > 0) & (ttl * 100 <= limit * policy.warning_percent)
    return policies.where(first).withColumn("held", holds_producers("seconds_policy"))


def _judge(frames: Frames, policy: Policy) -> Judgement:
    defaults = defaults_of(frames)
    return worst_first(
        expiring_first(policies_of(frames), policy.ttl_before_quota),
        (F.desc("held"), F.asc("namespace")),
        _finding,
        lambda: "No namespace has a TTL below its age quota.",
        lambda: defaults.unknown("limit_seconds", "ttl_seconds"),
    )


def _finding(row: Row) -> Finding:
    meant = (
        f"{row['seconds_policy']} never stops producers, and what nobody consumed in time is lost instead"
        if row["held"]
        else "the TTL drops messages for every subscription, and the quota's eviction has nothing left to do"
    )
    return Finding(
        check_id=TTL_BEFORE_QUOTA.check_id,
        severity=Severity.WARNING if row["held"] else Severity.INFO,
        subject=row["namespace"],
        evidence=(
            f"Messages expire after {duration(row['ttl_seconds'])} ({_by(own=row['ttl_own'])}), the age quota acts"
            f" at {duration(row['limit_seconds'])} ({_by(own=row['seconds_own'])}): {meant}."
        ),
        figures={"limit_seconds": row["limit_seconds"], "ttl_seconds": row["ttl_seconds"]},
    )


def _by(*, own: bool) -> str:
    return set_by("namespace" if own else "default")


CHECK = Check(TTL_BEFORE_QUOTA, _judge)
