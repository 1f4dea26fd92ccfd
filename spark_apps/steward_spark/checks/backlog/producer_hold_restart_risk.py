"""Topics at or over a `producer_*` quota: after a restart or an unload their producers cannot connect again.

Producer creation looks at the quota itself, whether the periodic check is on or not: with the check off, producers that
are connected go on over the quota, and lose their topic with the first restart (tried on Pulsar 4.0.7).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from pulsar_steward.model.catalog.backlog import PRODUCER_HOLD_RESTART_RISK
from pulsar_steward.model.finding import Finding, Severity
from steward_spark.checks.backlog._blind import unknown_ages
from steward_spark.checks.backlog._culprits import culprits
from steward_spark.checks.backlog._defaults import defaults_of
from steward_spark.checks.backlog._in_force import holds_producers, pressed, quotas_in_force
from steward_spark.checks.backlog._quota_words import age_quota, capitalised, figures, size_quota
from steward_spark.checks.check import Check, Judgement
from steward_spark.checks.common.listing import worst

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

    from pulsar_steward.policy.checks.backlog import ProducerHoldRestartRiskPolicy
    from pulsar_steward.policy.schema import Policy
    from steward_spark.checks.backlog._culprits import Culprit
    from steward_spark.frames import Frames


def at_risk(in_force: DataFrame, policy: ProducerHoldRestartRiskPolicy) -> DataFrame:
    """Topics at or over `warning_percent` of a quota that shuts producers out.

    Returns:
        The columns of `quotas_in_force`; `held_bytes_percent` and `held_seconds_percent`, null for a quota that evicts,
        and `percent`, the higher of them.
    """
    held = in_force.withColumn(
        "held_bytes_percent", F.when(holds_producers("bytes_policy"), F.col("bytes_percent"))
    ).withColumn("held_seconds_percent", F.when(holds_producers("seconds_policy"), F.col("seconds_percent")))
    percent = F.greatest("held_bytes_percent", "held_seconds_percent")
    return held.withColumn("percent", percent).where(F.col("percent") >= policy.warning_percent)


def _judge(frames: Frames, policy: Policy) -> Judgement:
    in_force = quotas_in_force(frames)
    found = at_risk(pressed(frames), policy.producer_hold_restart_risk)
    rows, more = worst(found, F.desc("percent"), F.desc("producers"), F.asc("topic"))
    if not rows:
        aged = in_force.where(holds_producers("seconds_policy"))
        unknown = defaults_of(frames).unknown("limit_bytes", "limit_seconds", "policy") or unknown_ages(aged)
        return Judgement(quiet="No topic is near a quota that shuts producers out.", cannot_tell=unknown)
    who = culprits(frames, rows)
    limit = policy.producer_hold_restart_risk.critical_percent
    return Judgement(findings=tuple(_finding(row, limit, who.get(row["topic"])) for row in rows), more=more)


def _finding(row: Row, critical_percent: int, culprit: Culprit | None) -> Finding:
    by_size = (row["held_bytes_percent"] or 0) >= (row["held_seconds_percent"] or 0)
    policy = row["bytes_policy"] if by_size else row["seconds_policy"]
    quota = size_quota(row) if by_size else age_quota(row)
    slowest = f" {capitalised(str(culprit))}." if culprit else ""
    return Finding(
        check_id=PRODUCER_HOLD_RESTART_RISK.check_id,
        severity=Severity.CRITICAL if row["percent"] >= critical_percent else Severity.WARNING,
        subject=row["topic"],
        evidence=f"{capitalised(quota)} ({policy}); {_outlook(row)}.{slowest}",
        figures=figures(row),
    )


def _outlook(row: Row) -> str:
    producers = row["producers"] or 0
    if row["percent"] < 100:  # noqa: PLR2004 - all of the quota
        return f"if it is exceeded by then, an unload or restart leaves its {producers:,} producers unable to connect"
    if producers == 0:
        return "no producer is connected, and none can until the backlog is down; an unload does not change that"
    return f"its {producers:,} producers cannot connect again after an unload or restart until the backlog is down"


CHECK = Check(PRODUCER_HOLD_RESTART_RISK, _judge)
