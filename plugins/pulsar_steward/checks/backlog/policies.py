"""Quotas, retention and time to live: the brokers' defaults, and the settings of namespaces and of single topics.

Taken from namespace documents of Pulsar 4.0.7. If nothing is set, `backlog_quota_map` is `{}`, and `retention_policies`
and `message_ttl_in_seconds` are absent. A quota of one kind replaces only the default of the same kind. The broker uses
only `limitSize` of a `destination_storage` quota (called `limit` before 2.8), and only `limitTime` of a `message_age`
quota. A size limit below 0 means no limit, and an empty topic exceeds a size limit of 0. An age limit of 0 or below
means no limit.
"""

from __future__ import annotations

from pulsar_steward.checks.backlog.defaults import FIRST_VIEWS, LAST_VIEWS
from pulsar_steward.checks.views import SqlView

_QUOTA = '{"limit": "BIGINT", "limitSize": "BIGINT", "limitTime": "BIGINT", "policy": "VARCHAR"}'
_QUOTAS = f'{{"destination_storage": {_QUOTA}, "message_age": {_QUOTA}}}'
_RETENTION = '{"retentionTimeInMinutes": "BIGINT", "retentionSizeInMB": "BIGINT"}'
_POLICIES = f"""{{"backlog_quota_map": {_QUOTAS}, "retention_policies": {_RETENTION},
    "message_ttl_in_seconds": "BIGINT", "offload_threshold": "BIGINT", "offload_threshold_in_seconds": "BIGINT",
    "offload_policies": {{"managedLedgerOffloadDriver": "VARCHAR"}}}}"""


def _document(column: str, shape: str) -> str:
    """SQL for the fields of a document; null for invalid JSON, so that one bad document does not break the query."""
    return f"json_transform(case when json_valid({column}) then {column} end, '{shape}')"


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
    coalesce(own.offload_threshold >= 0, false) or coalesce(own.offload_threshold_in_seconds > 0, false)
        or own.offload_policies.managedLedgerOffloadDriver is not null as offloaded
from parts cross join broker_defaults d
"""
"""Settings in force in each namespace whose policies were read, Pulsar's own namespaces left out.

`namespace`; `limit_bytes` (under 0: none), `bytes_policy`, `limit_seconds` (0 or under: none), `seconds_policy`,
`retention_minutes` and `retention_megabytes` (-1: unlimited, 0: nothing is retained), `ttl_seconds` (0: none), each
null where it is not known; `bytes_own`, `seconds_own`, `retention_own` and `ttl_own`, whether the namespace sets it
itself; `offloaded`, whether it is set to offload old ledgers.
"""

DRILLED_TOPICS = f"""
with once as (
    select topic, max(namespace) as namespace, max(quota_limit_bytes) as topic_limit_bytes,
        max(quota_limit_seconds) as topic_limit_seconds, max(oldest_backlog_age_seconds) as oldest_seconds,
        max(slowest_subscription) as slowest_subscription, sum(delayed_messages)::bigint as delayed_messages,
        nullif(max(topic_quota_json), '{{}}') as quota_json, nullif(max(topic_retention_json), '{{}}') as retention_json
    from drilled group by topic),
read as (
    select *, {_document("quota_json", _QUOTAS)} as quota, {_document("retention_json", _RETENTION)} as retention
    from once)
select topic, namespace, topic_limit_bytes, topic_limit_seconds, oldest_seconds, slowest_subscription, delayed_messages,
    quota_json is not null as topic_quota_own,
    quota.destination_storage is not null as topic_bytes_own,
    quota.destination_storage.policy as topic_bytes_policy,
    quota.message_age is not null as topic_seconds_own,
    quota.message_age.policy as topic_seconds_policy,
    retention_json is not null as topic_retention_own,
    retention.retentionTimeInMinutes as topic_retention_minutes,
    retention.retentionSizeInMB as topic_retention_megabytes
from read
"""
"""Drilled topics, one row each (the table `drilled` has one per subscription).

`topic`, `namespace`; `topic_limit_bytes` and `topic_limit_seconds`, the quotas in force wherever they are set (null:
none); `oldest_seconds` (null: the broker does not know either), `slowest_subscription`, `delayed_messages` of all
subscriptions; `topic_quota_own`, `topic_bytes_own`, `topic_seconds_own` and `topic_retention_own`, whether the topic
sets any quota, that quota or retention itself; `topic_bytes_policy`, `topic_seconds_policy`, `topic_retention_minutes`
and `topic_retention_megabytes`: its own settings, null where it has none.
"""

VIEWS = (
    *FIRST_VIEWS,
    SqlView("namespace_policies", NAMESPACE_POLICIES, kept=True),
    *LAST_VIEWS,
    SqlView("drilled_topics", DRILLED_TOPICS, kept=True),
)
"""Views for the checks of backlog."""

IN_FORCE = tuple(view for view in VIEWS if view.name in {"broker_defaults", "namespace_policies", "drilled_topics"})
"""Views of the limits in force, for all modules that report limits."""
