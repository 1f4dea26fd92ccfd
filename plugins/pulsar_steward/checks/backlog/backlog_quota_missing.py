"""Namespaces with a backlog that no quota bounds, in size or in age: it may grow until the bookies are full."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from pulsar_steward.checks.backlog.defaults import DEFAULTS, unknown_defaults
from pulsar_steward.checks.check import Query, RowCheck, Scope
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.section import Section
from pulsar_steward.model.units import GIB, bytes_in_words, counted

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Row


class BacklogQuotaMissingPolicy(Section):
    """Thresholds for backlogs without a quota."""

    info_backlog_bytes: int = Field(
        1, ge=1, description="of all topics of the namespace that have no quota; 1: any backlog at all"
    )
    warning_backlog_bytes: int = Field(
        10 * GIB, ge=1, description="of one topic; 10 GiB was the default quota of Pulsar before it became none"
    )


# A namespace's topics are in several shards: the shards' results are added up.
UNBOUNDED = """
select namespace, count(*) as topics, sum(backlog_bytes)::bigint as backlog_bytes,
    max({'bytes': backlog_bytes, 'topic': topic}) as largest
from quotas_in_force where limit_bytes < 0 and limit_seconds <= 0 and backlog_bytes > 0 group by namespace
"""
FOUND = """
with totals as (
    select namespace, sum(topics)::bigint as topics, sum(backlog_bytes)::bigint as backlog_bytes,
        max(largest) as largest
    from unbounded group by namespace)
select namespace, topics, backlog_bytes, largest.topic as topic, largest.bytes as most_backlog_bytes,
    largest.bytes >= warning_backlog_bytes as warning
from totals join limits using (namespace) where warning or backlog_bytes >= info_backlog_bytes
"""


def _evidence(row: Row) -> str:
    return (
        "Neither the namespace nor the brokers' default sets a backlog quota, and"
        f" {counted(row['topics'], 'topic')} without one {'holds' if row['topics'] == 1 else 'hold'}"
        f" {bytes_in_words(row['backlog_bytes'], rounded=True)} of backlog, {row['topic']} the most"
        f" ({bytes_in_words(row['most_backlog_bytes'], rounded=True)})."
    )


CHECK = RowCheck(
    check_id="backlog-quota-missing",
    order=30,
    title="No backlog quota bounds the topics of a namespace",
    advice=(
        "Find the subscription that holds the backlog, and delete it if nobody needs it.",
        "Set a size quota well above the present backlog: pulsar-admin namespaces set-backlog-quota.",
        "Choose its policy with the topic's owners: producer_* stops producers, eviction loses messages.",
        "Keep the quota below the retention, in size and in time.",
    ),
    source="docs/checks/backlog-quota-missing.md",
    scope=Scope.NAMESPACE,
    remedied_by="backlog_quota",
    policy=BacklogQuotaMissingPolicy,
    shards={"unbounded": Query(UNBOUNDED)},
    cluster={
        "found": Query(FOUND, worst_first="warning desc, most_backlog_bytes desc, namespace"),
        "defaults": DEFAULTS,
    },
    severity=lambda row: Severity.WARNING if row["warning"] else Severity.INFO,
    subject="namespace",
    evidence=_evidence,
    figures=("backlog_bytes", "most_backlog_bytes", "topics"),
    missing=lambda queried, _context: unknown_defaults(queried, "limit_bytes", "limit_seconds"),
    quiet="No topic has a backlog without a quota.",
)
