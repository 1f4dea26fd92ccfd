"""Topics whose backlog is close to its quota or over it, in size or in age. The quota's policy decides the effect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from pulsar_steward.checks.backlog.defaults import DEFAULTS, unknown_defaults
from pulsar_steward.checks.backlog.quota_words import (
    CULPRITS,
    PRECISION,
    age_quota,
    capitalised,
    consequence,
    delayed_words,
    figures,
    in_brackets,
    size_quota,
    slowest_words,
    told_once,
)
from pulsar_steward.checks.backlog.quotas import ages_not_read, unknown_ages
from pulsar_steward.checks.check import Check, Judgement, Query, Scope
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.section import Section

if TYPE_CHECKING:
    from pulsar_steward.checks.check import CheckContext, Queried, Row


class BacklogNearQuotaPolicy(Section):
    """Thresholds for backlogs close to their quota."""

    warning_percent: int = Field(80, ge=1, description="of the quota, in size or age: time is left to react")
    critical_percent: int = Field(
        95, ge=1, description="of the quota: brokers check once a minute, so the next check may act"
    )


FOUND = """
with fullest as (select *, greatest(bytes_percent, seconds_percent) as percent from pressed)
select fullest.*, percent >= critical_percent as critical
from fullest join limits using (namespace) where percent >= warning_percent
"""


def judge(queried: Queried, _context: CheckContext[BacklogNearQuotaPolicy]) -> Judgement:
    """Judges by the fuller of the two quotas, whatever the policy."""
    found = queried["found"]
    if found.rows:
        findings = told_once(tuple(map(_finding, found.rows)), queried["precision"])
        return Judgement(findings=findings, more=found.more)
    return Judgement(
        quiet="No topic's backlog is close to its quota.",
        cannot_tell=unknown_defaults(queried, "limit_bytes", "limit_seconds") or unknown_ages(queried["ages_unread"]),
    )


def _finding(row: Row) -> Finding:
    by_size = (row["bytes_percent"] or 0) >= (row["seconds_percent"] or 0)
    quota, policy = (size_quota(row), row["bytes_policy"]) if by_size else (age_quota(row), row["seconds_policy"])
    return Finding(
        check_id=CHECK.check_id,
        severity=Severity.CRITICAL if row["critical"] else Severity.WARNING,
        subject=row["topic"],
        evidence=(
            f"{capitalised(quota)}; once exceeded{in_brackets(policy)}, {consequence(policy)}.{delayed_words(row)}"
            f"{slowest_words(row)}"
        ),
        figures=figures(row),
    )


CHECK = Check(
    check_id="backlog-near-quota",
    order=10,
    title="A topic's backlog is close to its quota, or over it",
    advice=(
        "Find out why the slowest subscription lags: consumers missing, blocked, slow, or without permits.",
        "Delete the subscription if nobody needs it any more: pulsar-admin topics unsubscribe.",
        "Skip or expire messages that nobody needs: pulsar-admin topics skip, expire-messages; both lose them.",
        "Raise the quota, below the retention, if bookies have room; never lower one that is nearly full.",
        "Unload, split or restart nothing that holds this topic until its backlog is down.",
    ),
    source="docs/checks/backlog-near-quota.md; apache/pulsar#14337",
    scope=Scope.NAMESPACE,
    remedied_by="backlog_quota",
    policy=BacklogNearQuotaPolicy,
    shards={
        "found": Query(FOUND, worst_first="critical desc, percent desc, backlog_bytes desc, topic", detail=CULPRITS),
        "ages_unread": ages_not_read(),
    },
    cluster={"defaults": DEFAULTS, "precision": PRECISION},
    judge=judge,
)
