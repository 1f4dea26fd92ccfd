"""Namespaces whose bounded retention stores much more, and for far longer, than quota and outage need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from pulsar_steward.checks.backlog.defaults import DEFAULTS, unknown_defaults
from pulsar_steward.checks.backlog.quota_words import set_by
from pulsar_steward.checks.backlog.quotas import BOUNDED
from pulsar_steward.checks.check import Query, RowCheck, Scope
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.section import Section
from pulsar_steward.model.units import GIB, MIB, MINUTE, bytes_in_words, counted, seconds_in_words

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Row


class RetentionTooLongPolicy(Section):
    """Thresholds for bounded retentions that store far more than is needed after an outage."""

    warning_consumed_bytes: int = Field(
        1024 * GIB,
        ge=1,
        description="stored by the loaded topics of the namespace though all of it is consumed; each copy comes on top",
    )
    warning_percent: int = Field(
        1_000,
        ge=101,
        description="of what quota and outage need, in time and in size: a week is usual, ten times an outage is not",
    )


# Consumed data stored by the loaded topics of a namespace. Topics known to have another retention are left out.
STORED = f"""
with bounded as (select namespace, retention_minutes, retention_megabytes from namespace_policies where {BOUNDED}),
consumed as (
    select namespace, topic, storage_bytes, backlog_bytes, throughput_in_bytes,
        coalesce(greatest(storage_bytes - coalesce(backlog_bytes, 0), 0), 0) as consumed
    from retained_topics join bounded using (namespace, retention_minutes, retention_megabytes))
select namespace, count(*) as topics, sum(storage_bytes)::bigint as storage_bytes,
    sum(consumed)::bigint as consumed_bytes, max(consumed) as most_consumed,
    arg_max(topic, (consumed, topic)) as topic,
    coalesce(max(backlog_bytes), 0) as peak_bytes, coalesce(max(throughput_in_bytes), 0) as busiest
from consumed group by namespace
"""

# A retention needs room for an outage, for the quotas and for the present backlogs, each with its headroom. If there
# are several bounds, the tighter one counts.
FOUND = f"""
with together as (
    select namespace, sum(topics)::bigint as topics, sum(storage_bytes)::bigint as storage_bytes,
        sum(consumed_bytes)::bigint as consumed_bytes, arg_max(topic, (most_consumed, topic)) as topic,
        max(peak_bytes) as peak_bytes, max(busiest) as busiest
    from stored group by namespace),
outage as (select $backlog_quota_remedy__survive_outage_hours::bigint * 3600 as outage_seconds),
needs as (
    select t.*, retention_minutes, retention_megabytes, retention_own, offloaded, warning_consumed_bytes,
        warning_percent,
        greatest(
            outage_seconds * (100 + $backlog_quota_remedy__outage_headroom_percent) // 100,
            coalesce(limit_seconds, 0)
        ) as needed_seconds,
        -- The largest number that counts as a limit does not fit once it was a double.
        trunc(least(9e18, greatest(
            peak_bytes * (100 + $backlog_quota_remedy__peak_headroom_percent) / 100,
            busiest * outage_seconds,
            $backlog_quota_remedy__minimum_megabytes::double * {MIB},
            coalesce(limit_bytes, 0)::double
        )))::bigint as needed_bytes
    from together t join namespace_policies using (namespace) join limits using (namespace) cross join outage),
shares as (
    select *, floor(least(
            case when retention_minutes > 0 then retention_minutes * 100::double * {MINUTE} / needed_seconds end,
            case when retention_megabytes > 0 then retention_megabytes * 100::double * {MIB} / needed_bytes end
        ))::bigint as percent
    from needs)
select * from shares where consumed_bytes >= warning_consumed_bytes and percent >= warning_percent
"""


def _evidence(row: Row) -> str:
    who = set_by("namespace" if row["retention_own"] else "default")
    offload = "; old ledgers are offloaded" if row["offloaded"] else ""
    return (
        f"Over the cluster, {counted(row['topics'], 'loaded topic')} {'stores' if row['topics'] == 1 else 'store'}"
        f" {bytes_in_words(row['consumed_bytes'], rounded=True)} that every subscription has consumed, of"
        f" {bytes_in_words(row['storage_bytes'], rounded=True)} in all and before copies, {row['topic']} the most:"
        f" retention is {_kept(row)} ({who}), {counted(row['percent'] / 100, 'time')} what quota and outage need"
        f" ({seconds_in_words(row['needed_seconds'], rounded=True)},"
        f" {bytes_in_words(row['needed_bytes'], rounded=True)} a topic){offload}."
    )


def _kept(row: Row) -> str:
    limits = []
    if row["retention_minutes"] > 0:
        limits.append(seconds_in_words(row["retention_minutes"] * MINUTE, rounded=True))
    if row["retention_megabytes"] > 0:
        limits.append(f"{bytes_in_words(row['retention_megabytes'] * MIB, rounded=True)} a topic")
    return " and ".join(limits)


# A warning; information if old ledgers are offloaded, as the retention is then probably intended.
CHECK = RowCheck(
    check_id="retention-too-long",
    order=90,
    title="Consumed messages are stored for far longer than anything needs",
    advice=(
        "Ask the topics' owners how far back they read again: that, and not a habit, is what retention is for.",
        "Lower it above quota and outage: pulsar-admin namespaces set-retention; what is over it is deleted at once.",
        "If it is needed, offload old ledgers to tiered storage: pulsar-admin namespaces set-offload-policies.",
    ),
    source="docs/checks/retention-too-long.md; docs/knowledge.md B",
    scope=Scope.NAMESPACE,
    remedied_by="retention",
    policy=RetentionTooLongPolicy,
    shards={"stored": Query(STORED)},
    cluster={
        "found": Query(FOUND, worst_first="offloaded, consumed_bytes desc, namespace"),
        "defaults": DEFAULTS,
    },
    severity=lambda row: Severity.INFO if row["offloaded"] else Severity.WARNING,
    subject="namespace",
    evidence=_evidence,
    figures=(
        "consumed_bytes",
        "needed_bytes",
        "needed_seconds",
        "percent",
        "retention_megabytes",
        "retention_minutes",
        "storage_bytes",
        "topics",
    ),
    missing=lambda queried, _context: unknown_defaults(
        queried, "limit_bytes", "limit_seconds", "retention_minutes", "retention_megabytes"
    ),
    quiet="No namespace stores much more of what is consumed than its quota or an outage need.",
)
