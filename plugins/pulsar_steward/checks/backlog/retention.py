"""Retention compared with quotas, for namespaces and for topics with settings of their own."""

from __future__ import annotations

from pulsar_steward.checks.views import SqlView
from pulsar_steward.model.units import MIB, MINUTE

UNBOUNDED = "retention_minutes < 0 and retention_megabytes < 0"
BOUNDED = "retention_minutes <> 0 and retention_megabytes <> 0 and (retention_minutes > 0 or retention_megabytes > 0)"
"""SQL: true for a bounded retention. Zero in both keeps nothing; brokers refuse it in one alone."""

RETAINED_TOPICS = """
select t.topic, t.namespace, t.storage_bytes, t.backlog_bytes, t.throughput_in_bytes,
    coalesce(d.retention_minutes, p.retention_minutes) as retention_minutes,
    coalesce(d.retention_megabytes, p.retention_megabytes) as retention_megabytes
from user_topics t join namespace_policies p using (namespace) left join drilled_topics d using (topic)
"""
"""Ordinary loaded topics of namespaces whose policies are known, with the retention in force, if known."""

QUOTAS_BESIDE_RETENTION = f"""
with shares as (
    select holder, namespace, limit_bytes, limit_seconds, retention_minutes, retention_megabytes, bytes_by, seconds_by,
        retention_by,
        -- Of the largest number as a limit, the share may not fit.
        case when limit_bytes >= 0 and retention_megabytes > 0 then least(9e18,
            floor(limit_bytes * 100::double / (retention_megabytes::double * {MIB})))::bigint end as size_percent,
        case when limit_seconds > 0 and retention_minutes > 0 then least(9e18,
            floor(limit_seconds * 100::double / (retention_minutes::double * {MINUTE})))::bigint end as time_percent
    from limits_in_force semi join namespace_policies using (namespace)
    where holder = namespace or 'topic' in (bytes_by, seconds_by, retention_by))
select holder as subject, *, greatest(size_percent, time_percent) as percent from shares
"""
"""One row per namespace, and one per drilled topic that sets quota or retention itself.

`subject`, `namespace`; `limit_bytes`, `limit_seconds`, `retention_minutes`, `retention_megabytes`. `bytes_by`,
`seconds_by` and `retention_by` are where each is set: topic, namespace or default. `size_percent` and `time_percent`
are the quota in percent of the retention, null if one of them has no limit; `percent` is the larger one.
"""

VIEWS = (
    SqlView("retained_topics", RETAINED_TOPICS),
    SqlView("quotas_beside_retention", QUOTAS_BESIDE_RETENTION),
)
"""Views that need those of `pulsar_steward.checks.backlog.policies`."""
