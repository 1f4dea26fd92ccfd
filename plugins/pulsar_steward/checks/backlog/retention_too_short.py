"""Retention that is smaller than a topic's backlog, or that leaves hardly any room above a quota."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from pulsar_steward.checks.backlog.defaults import DEFAULTS, unknown_defaults
from pulsar_steward.checks.check import Check, Judgement, Query, Scope
from pulsar_steward.decoding import convert
from pulsar_steward.model.finding import Figures, Finding, Severity
from pulsar_steward.model.section import Section
from pulsar_steward.model.units import GIB, MIB, MINUTE, bytes_in_words, counted, seconds_in_words

if TYPE_CHECKING:
    from pulsar_steward.checks.check import CheckContext, Queried, QueryRows, Row


class RetentionTooShortPolicy(Section):
    """Thresholds for retentions that leave too little room above the backlog or its quota."""

    info_percent: int = Field(
        90, ge=1, description="quota as a share of the retention: so close, raising the quota is refused soon"
    )
    minimum_backlog_bytes: int = Field(
        GIB, ge=1, description="backlogs smaller than this are not compared with the retained size"
    )
    minimum_backlog_age_seconds: int = Field(
        3600, ge=1, description="backlogs younger than this are not compared with the retained time"
    )


class RetentionFigures(Figures, frozen=True, kw_only=True):
    """A retention beside a topic's backlog or a quota, and their shares of it; None: absent or unknown."""

    backlog_bytes: int | None = None
    limit_bytes: int | None = None
    limit_seconds: int | None = None
    oldest_backlog_age_seconds: int | None = None
    retention_megabytes: int | None = None
    retention_minutes: int | None = None
    size_percent: int | None = None
    time_percent: int | None = None


# Topics whose backlog is at least as large or as old as the retention. A share is null if it is not judged.
OUTGROWN = f"""
with large_or_old as (
    select topic, backlog_bytes, oldest_seconds, slowest_subscription, retention_minutes, retention_megabytes,
        retention_megabytes > 0 and backlog_bytes >= minimum_backlog_bytes as large,
        retention_minutes > 0 and oldest_seconds >= minimum_backlog_age_seconds as old
    from topics_under_policies join limits using (namespace) where large or old),
shares as (
    select * exclude (large, old),
        case when large then floor(backlog_bytes * 100::double / (retention_megabytes::double * {MIB}))::bigint end
            as size_percent,
        case when old then floor(oldest_seconds * 100::double / (retention_minutes::double * {MINUTE}))::bigint end
            as time_percent
    from large_or_old)
select *, greatest(size_percent, time_percent) as percent from shares where percent >= 100
"""

# If a drilled topic has no age, its broker does not know it either.
BLIND = """
select count(*) as topics from topics_under_policies
where retention_minutes > 0 and backlog_bytes > 0 and not drilled and told_seconds is null
"""

# The threshold of `quota-over-retention` is not among this check's limits: `judge` leaves those quotas out.
TIGHT = "select q.* from quotas_beside_retention q join limits using (namespace) where percent >= info_percent"


def judge(queried: Queried, context: CheckContext[RetentionTooShortPolicy]) -> Judgement:
    """Reports topics whose backlog exceeds the retention first, then the quotas that nearly reach it."""
    outgrown, tight = queried["outgrown"], _without_room(queried["tight"], context)
    findings = [_backlog_finding(row) for row in outgrown.rows] + [_quota_finding(row) for row in tight]
    missing = unknown_defaults(queried, "limit_bytes", "limit_seconds", "retention_minutes", "retention_megabytes")
    return Judgement(
        findings=tuple(findings),
        more=outgrown.more,
        quiet="No retention is too short for its quota or for the backlog seen.",
        cannot_tell=missing or (None if findings else _unknown_ages(queried["blind"])),
    )


def _without_room(quotas: QueryRows, context: CheckContext[RetentionTooShortPolicy]) -> list[Row]:
    """Quotas below the threshold of `quota-over-retention`, the tightest first."""
    over = {
        name: context.policy.for_namespace(name).quota_over_retention.warning_percent
        for _, names in context.parts
        for name in names
    }
    elsewhere = context.policy.quota_over_retention.warning_percent

    def percent_over(namespace: str) -> int:
        return int(over.get(namespace, over.get(namespace.partition("/")[0], elsewhere)))

    tight = [row for row in quotas.rows if row["percent"] < percent_over(row["namespace"])]
    return sorted(tight, key=lambda row: (-row["percent"], row["subject"]))


def _unknown_ages(blind: QueryRows) -> str | None:
    topics = sum(row["topics"] for row in blind.rows)
    if not topics:
        return None
    have = "has" if topics == 1 else "have"
    return f"{counted(topics, 'topic')} under a retention in time {have} a backlog whose age was not read."


def _backlog_finding(row: Row) -> Finding:
    if (row["size_percent"] or 0) >= (row["time_percent"] or 0):
        what = (
            f"The backlog is {bytes_in_words(row['backlog_bytes'], rounded=True)}, and"
            f" {bytes_in_words(row['retention_megabytes'] * MIB, rounded=True)} are retained"
        )
    else:
        what = (
            f"The oldest message of the backlog is {seconds_in_words(row['oldest_seconds'], rounded=True)} old, and"
            f" the retention is {seconds_in_words(row['retention_minutes'] * MINUTE, rounded=True)}"
        )
    slowest = f" by subscription {row['slowest_subscription']}" if row["slowest_subscription"] else ""
    return Finding(
        check_id=CHECK.check_id,
        severity=Severity.WARNING,
        subject=row["topic"],
        evidence=f"{what}: once it is acknowledged{slowest}, the excess is deleted and cannot be read again.",
        figures=convert({**row, "oldest_backlog_age_seconds": row["oldest_seconds"]}, RetentionFigures).by_name,
    )


def _quota_finding(row: Row) -> Finding:
    return Finding(
        check_id=CHECK.check_id,
        severity=Severity.INFO,
        subject=row["subject"],
        evidence=f"The quota takes {row['percent']:,} % of the retention: there is little room to raise it.",
        figures=convert(row, RetentionFigures).by_name,
    )


CHECK = Check(
    check_id="retention-too-short",
    order=80,
    title="The retention leaves little room over the quota or the backlog",
    advice=(
        "Raise the retention well above the quota: pulsar-admin namespaces set-retention.",
        "Bring the slowest subscription up to date: once it has acknowledged, no history is left to go back to.",
        "Set size and time: where both are set, the tighter one holds.",
    ),
    source="docs/checks/retention-too-short.md",
    remedied_by="retention",
    scope=Scope.NAMESPACE,
    reads=("quota_over_retention",),
    policy=RetentionTooShortPolicy,
    shards={"outgrown": Query(OUTGROWN, worst_first="percent desc, topic"), "blind": Query(BLIND)},
    cluster={"tight": Query(TIGHT), "defaults": DEFAULTS},
    judge=judge,
)
