"""Namespaces whose topics keep consumed messages for ever, without limit in time and size: storage only grows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from pulsar_steward.checks.backlog.defaults import DEFAULTS, unknown_defaults
from pulsar_steward.checks.backlog.quota_words import set_by
from pulsar_steward.checks.backlog.quotas import UNBOUNDED
from pulsar_steward.checks.check import Query, RowCheck, Scope
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.section import Section
from pulsar_steward.model.units import GIB, bytes_in_words, counted

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Row


class RetentionUnboundedPolicy(Section):
    """Thresholds for topics with unlimited retention."""

    warning_storage_bytes: int = Field(
        100 * GIB, ge=1, description="stored by the loaded topics of the namespace that are kept for ever"
    )


# Data that the loaded topics of a namespace store for ever, by the namespace's setting or by their own.
STORED = f"""
select namespace, count(*) as topics, sum(storage_bytes)::bigint as storage_bytes, max(storage_bytes) as most_bytes,
    arg_max(topic, (coalesce(storage_bytes, -1), topic)) as topic
from retained_topics where {UNBOUNDED} group by namespace
"""

FOUND = f"""
with together as (
    select namespace, sum(topics)::bigint as topics, sum(storage_bytes)::bigint as storage_bytes,
        max(most_bytes) as most_bytes, arg_max(topic, (coalesce(most_bytes, -1), topic)) as topic
    from stored group by namespace),
kept as (
    select p.namespace, {UNBOUNDED} as unbounded, retention_own, offloaded, warning_storage_bytes, topic,
        coalesce(topics, 0) as topics, coalesce(storage_bytes, 0) as storage_bytes,
        coalesce(most_bytes, 0) as most_storage_bytes
    from namespace_policies p join limits using (namespace) left join together using (namespace))
select *, not offloaded and storage_bytes >= warning_storage_bytes as trouble from kept where unbounded or topics > 0
"""


def _evidence(row: Row) -> str:
    who = set_by("namespace" if row["retention_own"] else "default") if row["unbounded"] else "set on topics"
    stored = (
        f"{counted(row['topics'], 'loaded topic')} {'stores' if row['topics'] == 1 else 'store'}"
        f" {bytes_in_words(row['storage_bytes'], rounded=True)} under it, {row['topic']} the most"
        f" ({bytes_in_words(row['most_storage_bytes'], rounded=True)})"
        if row["topics"]
        else "no topic under it is loaded"
    )
    offload = "; old ledgers are offloaded" if row["offloaded"] else ""
    return f"Retention has no limit in time nor in size ({who}): {stored}{offload}."


# A warning if much is stored without limit and nothing is offloaded.
CHECK = RowCheck(
    check_id="retention-unbounded",
    order=70,
    title="Messages are retained for ever",
    advice=(
        "Ask the topics' owners whether consumed messages are really needed for ever.",
        "If not, bound it in time or size: pulsar-admin namespaces set-retention; what is over it is deleted at once.",
        "If so, offload old ledgers to tiered storage: pulsar-admin namespaces set-offload-policies.",
        "Watch the bookies' disks.",
    ),
    source="docs/checks/retention-unbounded.md",
    scope=Scope.NAMESPACE,
    remedied_by="retention",
    policy=RetentionUnboundedPolicy,
    shards={"stored": Query(STORED)},
    cluster={
        "found": Query(FOUND, worst_first="trouble desc, storage_bytes desc, namespace"),
        "defaults": DEFAULTS,
    },
    severity=lambda row: Severity.WARNING if row["trouble"] else Severity.INFO,
    subject="namespace",
    evidence=_evidence,
    figures=("most_storage_bytes", "storage_bytes", "topics"),
    missing=lambda queried, _context: unknown_defaults(queried, "retention_minutes", "retention_megabytes"),
    quiet="No namespace retains messages for ever.",
)
