"""Quotas that are not below the retention. Brokers require it, but do not check every combination."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from pulsar_steward.checks.backlog.defaults import DEFAULTS, unknown_defaults
from pulsar_steward.checks.backlog.quota_words import set_by
from pulsar_steward.checks.check import Query, RowCheck, Scope
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.section import Section
from pulsar_steward.model.units import MIB, MINUTE, bytes_in_words, seconds_in_words

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Row


class QuotaOverRetentionPolicy(Section):
    """Thresholds for backlog quotas that are larger than the retention."""

    warning_percent: int = Field(
        100, ge=1, description="quota as a share of the retention: brokers refuse a quota that is not below it"
    )


FOUND = """
select q.*, warning_percent from quotas_beside_retention q join limits using (namespace)
where percent >= warning_percent
"""


def _evidence(row: Row) -> str:
    parts = ((_by_size, "size_percent"), (_by_time, "time_percent"))
    words = [part(row) for part, percent in parts if (row[percent] or 0) >= row["warning_percent"]]
    return (
        f"{', and '.join(words)}: a quota has to be below the retention, and the broker may"
        " refuse the next change of either (412)."
    )


def _by_size(row: Row) -> str:
    return (
        f"The size quota of {bytes_in_words(row['limit_bytes'], rounded=True)} ({set_by(row['bytes_by'])}) is"
        f" {row['size_percent']:,} % of the {bytes_in_words(row['retention_megabytes'] * MIB, rounded=True)} that are"
        f" retained ({set_by(row['retention_by'])})"
    )


def _by_time(row: Row) -> str:
    return (
        f"the age quota of {seconds_in_words(row['limit_seconds'], rounded=True)} ({set_by(row['seconds_by'])}) is"
        f" {row['time_percent']:,} % of the {seconds_in_words(row['retention_minutes'] * MINUTE, rounded=True)} of"
        f" retention ({set_by(row['retention_by'])})"
    )


CHECK = RowCheck(
    check_id="quota-over-retention",
    order=40,
    title="A backlog quota is not below the retention",
    advice=(
        "Raise the retention above the quota first, in size and in time, or lower the quota.",
        "Before lowering a producer_* quota, see that no topic's backlog is over the new one: its producers stop.",
        "Do not rely on the broker to refuse it: it compares size quotas of the same level only.",
    ),
    source="docs/checks/quota-over-retention.md",
    scope=Scope.NAMESPACE,
    remedied_by="backlog_quota",
    policy=QuotaOverRetentionPolicy,
    cluster={"found": Query(FOUND, worst_first="percent desc, subject"), "defaults": DEFAULTS},
    severity=Severity.WARNING,
    subject="subject",
    evidence=_evidence,
    figures=(
        "limit_bytes",
        "limit_seconds",
        "retention_megabytes",
        "retention_minutes",
        "size_percent",
        "time_percent",
    ),
    missing=lambda queried, _context: unknown_defaults(
        queried, "limit_bytes", "limit_seconds", "retention_minutes", "retention_megabytes"
    ),
    quiet="Every quota is below the retention.",
)
