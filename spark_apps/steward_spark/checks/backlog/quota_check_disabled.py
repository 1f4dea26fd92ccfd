"""Brokers that do not check backlog quotas: nothing is evicted, no connected producer is stopped, nobody is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from pulsar_steward.model.catalog.backlog import QUOTA_CHECK_DISABLED
from pulsar_steward.model.finding import Finding, Severity
from steward_spark.checks.backlog._policies import policies_of
from steward_spark.checks.check import Check, Judgement
from steward_spark.checks.common.worst import named

if TYPE_CHECKING:
    from pulsar_steward.policy.schema import Policy
    from steward_spark.frames import Frames

_KEY = "backlogQuotaCheckEnabled"


def enabled_by_broker(frames: Frames) -> dict[str, bool]:
    """Whether each broker that told checks quotas."""
    rows = frames.configuration.where((F.col("key") == _KEY) & F.col("value").isNotNull()).select("broker", "value")
    return {row["broker"]: row["value"].lower() == "true" for row in rows.collect()}


def _judge(frames: Frames, policy: Policy) -> Judgement:
    told = enabled_by_broker(frames)
    disabled = sorted(broker for broker, enabled in told.items() if not enabled)
    if not disabled:
        read = frames.brokers.where("read").select("broker").collect()
        silent = sorted({row["broker"] for row in read} - set(told))
        if silent or not told:
            return Judgement(cannot_tell=f"{_KEY} was not read of {named(silent) or 'any broker'}.")
        return Judgement(quiet=f"All {len(told)} brokers check backlog quotas.")
    namespaces = policies_of(frames).where("limit_bytes >= 0 or limit_seconds > 0").count()
    trouble = namespaces >= policy.quota_check_disabled.warning_namespaces
    finding = Finding(
        check_id=QUOTA_CHECK_DISABLED.check_id,
        severity=Severity.WARNING if trouble else Severity.INFO,
        subject=frames.about.cluster,
        evidence=(
            f"{_KEY} is false on {len(disabled)} of {len(told)} brokers ({named(disabled)}) while {namespaces:,}"
            " namespaces are under a quota: there nothing is evicted and connected producers are not stopped, yet new"
            " ones are refused over a producer_* quota."
        ),
        figures={"brokers_disabled": len(disabled), "brokers_told": len(told), "namespaces_under_quota": namespaces},
    )
    return Judgement(findings=(finding,))


CHECK = Check(QUOTA_CHECK_DISABLED, _judge)
