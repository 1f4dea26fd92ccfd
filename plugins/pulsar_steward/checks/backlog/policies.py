"""Quotas, retention and time to live: the brokers' defaults, and the settings of namespaces and of single topics.

Taken from namespace documents of Pulsar 4.0.7. If nothing is set, `backlog_quota_map` is `{}`, and `retention_policies`
and `message_ttl_in_seconds` are absent. A quota of one kind replaces only the default of the same kind. The broker uses
only `limitSize` of a `destination_storage` quota (called `limit` before 2.8), and only `limitTime` of a `message_age`
quota. A size limit below 0 means no limit, and an empty topic exceeds a size limit of 0. An age limit of 0 or below
means no limit.
"""

from __future__ import annotations

from pulsar_steward.checks.backlog.defaults import FIRST_VIEWS, LAST_VIEWS
from pulsar_steward.checks.views import USUAL_SETTINGS, SqlView

_QUOTA = '{"limit": "BIGINT", "limitSize": "BIGINT", "limitTime": "BIGINT", "policy": "VARCHAR"}'
_QUOTAS = f'{{"destination_storage": {_QUOTA}, "message_age": {_QUOTA}}}'
_RETENTION = '{"retentionTimeInMinutes": "BIGINT", "retentionSizeInMB": "BIGINT"}'
_POLICIES = f"""{{"backlog_quota_map": {_QUOTAS}, "retention_policies": {_RETENTION},
    "message_ttl_in_seconds": "BIGINT", "offload_threshold": "BIGINT", "offload_threshold_in_seconds": "BIGINT",
    "offload_policies": {{"managedLedgerOffloadDriver": "VARCHAR"}}}}"""


def _document(column: str, shape: str) -> str:
    """SQL for the fields of a document; null for invalid JSON, so that one bad document does not break the query."""
    return f"json_transform(case when json_valid({column}) then {column} end, '{shape}')"


def _set_by(own: str, default: str) -> str:
    """SQL: where a namespace's setting is from; null if it is not known."""
    return f"case when {own} then 'namespace' when {default} is not null then 'default' end"


NAMESPACE_POLICIES = f"""
with documents as (
    select namespace, {_document("policies_json", _POLICIES)} as own from namespaces
    where policies_json is not null and not starts_with(namespace, 'pulsar/')),
parts as (
    select namespace, own, own.backlog_quota_map.destination_storage as size, own.backlog_quota_map.message_age as age,
        own.retention_policies as retention from documents)
select
    namespace,
    case when size is null then d.limit_bytes else coalesce(size.limitSize, size."limit", -1) end as limit_bytes,
    case when size is null then d.policy else size.policy end as bytes_policy,
    case when age is null then d.limit_seconds else coalesce(age.limitTime, -1) end as limit_seconds,
    case when age is null then d.policy else age.policy end as seconds_policy,
    case when retention is null then d.retention_minutes else retention.retentionTimeInMinutes end
        as retention_minutes,
    case when retention is null then d.retention_megabytes else retention.retentionSizeInMB end
        as retention_megabytes,
    coalesce(own.message_ttl_in_seconds, d.ttl_seconds) as ttl_seconds,
    size is not null as bytes_own,
    age is not null as seconds_own,
    retention is not null as retention_own,
    own.message_ttl_in_seconds is not null as ttl_own,
    {_set_by("size is not null", "d.limit_bytes")} as bytes_by,
    {_set_by("age is not null", "d.limit_seconds")} as seconds_by,
    {_set_by("retention is not null", "d.retention_megabytes")} as retention_by,
    coalesce(own.offload_threshold >= 0, false) or coalesce(own.offload_threshold_in_seconds > 0, false)
        or own.offload_policies.managedLedgerOffloadDriver is not null as offloaded
from parts cross join broker_defaults d
"""
"""Settings in force in each namespace whose policies were read, Pulsar's own namespaces left out.

`namespace`; `limit_bytes` (under 0: none), `bytes_policy`, `limit_seconds` (0 or under: none), `seconds_policy`,
`retention_minutes` and `retention_megabytes` (-1: unlimited, 0: nothing is retained), `ttl_seconds` (0: none), each
null where it is not known; `bytes_own`, `seconds_own`, `retention_own` and `ttl_own`, whether the namespace sets it
itself; `bytes_by`, `seconds_by` and `retention_by`, the same in words: namespace, default or null (not known);
`offloaded`, whether it is set to offload old ledgers.
"""

DRILLED_TOPICS = f"""
with once as (
    select topic, max(namespace) as namespace, max(quota_limit_bytes) as limit_bytes,
        max(quota_limit_seconds) as limit_seconds, max(oldest_backlog_age_seconds) as oldest_seconds,
        max(slowest_subscription) as slowest_subscription, sum(delayed_messages)::bigint as delayed_messages,
        {_document("nullif(max(topic_quota_json), '{}')", _QUOTAS)} as quota,
        {_document("nullif(max(topic_retention_json), '{}')", _RETENTION)} as retention
    from drilled group by topic)
select topic, namespace, oldest_seconds, slowest_subscription, delayed_messages,
    coalesce(once.limit_bytes, quota.destination_storage.limitSize, quota.destination_storage."limit", -1)
        as limit_bytes,
    coalesce(quota.destination_storage.policy, p.bytes_policy) as bytes_policy,
    coalesce(once.limit_seconds, quota.message_age.limitTime, -1) as limit_seconds,
    coalesce(quota.message_age.policy, p.seconds_policy) as seconds_policy,
    coalesce(retention.retentionTimeInMinutes, p.retention_minutes) as retention_minutes,
    coalesce(retention.retentionSizeInMB, p.retention_megabytes) as retention_megabytes,
    if(quota.destination_storage is null, coalesce(p.bytes_by, 'default'), 'topic') as bytes_by,
    if(quota.message_age is null, coalesce(p.seconds_by, 'default'), 'topic') as seconds_by,
    if(retention is null, p.retention_by, 'topic') as retention_by
from once left join namespace_policies p using (namespace)
"""
"""Drilled topics with the settings in force, one row each (the table `drilled` has one per subscription).

`topic`, `namespace`; the settings as in `namespace_policies`, each from the topic itself (then `*_by` is topic), its
namespace or the brokers; `oldest_seconds` (null: the broker does not know either), `slowest_subscription`,
`delayed_messages` of all subscriptions.
"""

LIMITS_IN_FORCE = """
select namespace as holder, * from namespace_policies union all by name select topic as holder, * from drilled_topics
"""
"""The settings in force in each namespace and each drilled topic, the `holder`, with the level that sets each."""

VIEWS = (
    *FIRST_VIEWS,
    SqlView("namespace_policies", NAMESPACE_POLICIES, kept=True),
    *LAST_VIEWS,
    SqlView("drilled_topics", DRILLED_TOPICS, kept=True),
    SqlView("limits_in_force", LIMITS_IN_FORCE),
)
"""Views for the checks of backlog."""

IN_FORCE = (USUAL_SETTINGS, *(view for view in VIEWS if view not in {*FIRST_VIEWS[1:], *LAST_VIEWS}))
"""Views of the limits in force, for all modules that report limits."""
