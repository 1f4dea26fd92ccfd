"""Quotas, retention and time to live: the brokers' defaults, and the settings of namespaces and of single topics.

Taken from namespace documents of Pulsar 4.0.7. If nothing is set, `backlog_quota_map` is `{}`, and `retention_policies`
and `message_ttl_in_seconds` are absent. A quota of one kind replaces only the default of the same kind. The broker uses
only `limitSize` of a `destination_storage` quota (called `limit` before 2.8), and only `limitTime` of a `message_age`
quota. A size limit below 0 means no limit, and an empty topic exceeds a size limit of 0. An age limit of 0 or below
means no limit.

A topic's own quota takes precedence over its namespace's. Its limits are known for drilled topics, and for all topics
of brokers that export topic metrics. Its policy is known for drilled topics only; other topics get the namespace's.
"""

from __future__ import annotations

from pulsar_steward.checks.backlog.quotas import PRECISE, ROLLOVER
from pulsar_steward.checks.views import USUAL_SETTINGS, SqlView
from pulsar_steward.model.broker_defaults import (
    COMPACTION_BYTES,
    DEDUPLICATED,
    OFFLOAD_DRIVER,
    QUOTA_BYTES,
    QUOTA_GIGABYTES,
    QUOTA_POLICY,
    QUOTA_SECONDS,
    RETENTION_MEGABYTES,
    RETENTION_MINUTES,
    TTL_SECONDS,
)
from pulsar_steward.model.measures import AGE, AGE_LIMIT, SIZE_LIMIT
from pulsar_steward.model.units import GIB, MIB, MINUTE


def _value(key: str) -> str:
    return f"max(value) filter (where key = '{key}')"


def _whole(key: str, times: int = 1) -> str:
    return f"try_cast(trunc(try_cast(trim({_value(key)}) as double) * {times}) as bigint)"


_DEFAULTS = f"""
    -- The size in gigabytes, where it is above 0, goes before that in bytes.
    case when try_cast(trim({_value(QUOTA_GIGABYTES)}) as double) > 0 then {_whole(QUOTA_GIGABYTES, GIB)}
        else {_whole(QUOTA_BYTES)} end as limit_bytes,
    {_whole(QUOTA_SECONDS)} as limit_seconds,
    {_value(QUOTA_POLICY)} as policy,
    {_whole(RETENTION_MINUTES)} as retention_minutes,
    {_whole(RETENTION_MEGABYTES)} as retention_megabytes,
    {_whole(TTL_SECONDS)} as ttl_seconds,
    coalesce({_whole(COMPACTION_BYTES)}, 0) as compaction_bytes,
    coalesce({_value(OFFLOAD_DRIVER)}, case when count(*) > 0 then '' end) as offload_driver
"""

BROKER_DEFAULTS = f"select {_DEFAULTS} from usual_settings"
"""One row of defaults where nothing is set (null: not read), of most brokers."""

DIFFERING = f"""
with told as (select broker, {_DEFAULTS} from configuration where value is not null group by broker),
differ as (
    -- All values that mean no limit are equal.
    select count(distinct if(limit_bytes < 0, -1, limit_bytes)) > 1 as limit_bytes,
        count(distinct if(limit_seconds < 0, 0, limit_seconds)) > 1 as limit_seconds,
        count(distinct policy) > 1 as policy,
        count(distinct retention_minutes) > 1 as retention_minutes,
        count(distinct retention_megabytes) > 1 as retention_megabytes, count(distinct ttl_seconds) > 1 as ttl_seconds
    from told),
rest as (
    select coalesce(bool_or(not bytes_own), false) as on_bytes, coalesce(bool_or(not seconds_own), false) as on_seconds,
        coalesce(bool_or(not retention_own), false) as on_retention, coalesce(bool_or(not ttl_own), false) as on_ttl
    from namespace_policies)
select list_filter([
    case when limit_bytes and on_bytes then 'limit_bytes' end,
    case when limit_seconds and on_seconds then 'limit_seconds' end,
    case when policy and (on_bytes or on_seconds) then 'policy' end,
    case when retention_minutes and on_retention then 'retention_minutes' end,
    case when retention_megabytes and on_retention then 'retention_megabytes' end,
    case when ttl_seconds and on_ttl then 'ttl_seconds' end], lambda name: name is not null) as differing
from differ cross join rest
"""
"""One row: `differing`, the columns in which brokers differ while the default applies to some namespace."""

OFFLOADS = """
with told as (
    select topic, max(namespace) as namespace, max(offloaded_bytes) as offloaded_bytes,
        max(offloaded_milliseconds) as succeeded, max(offload_failed_milliseconds) as failed
    from drilled group by topic),
kept as (
    select namespace, sum(offloaded_bytes)::bigint as offloaded_bytes, max(succeeded) as succeeded,
        max(failed) as failed, arg_max(topic, (failed, topic)) filter (failed > coalesce(succeeded, 0)) as failing,
        count(*) filter (failed > coalesce(succeeded, 0)) as failing_topics
    from told group by namespace)
select p.namespace, coalesce(offloaded_bytes, 0) as offloaded_bytes, failing, coalesce(failing_topics, 0)
        as failing_topics, succeeded, failed, p.offload_driver = '' as without_driver,
    coalesce(offloaded_bytes > 0 and failing is null, false) as offloaded
from namespace_policies p left join kept using (namespace)
where p.to_be_offloaded and retention_minutes <> 0 and retention_megabytes <> 0
"""
"""Namespaces that are set to offload, with what their drilled topics offloaded and where that fails.

Namespaces that retain nothing are left out: ledgers are deleted before they are offloaded, and that counts as failed.
`offloaded` is true only if it happens: with a driver that is missing or fails, everything stays in the bookies.
"""

_A_CENTURY_MINUTES = 52_600_000

AGE_QUOTA_DELAYS = f"""
with told as (
    select broker, lower(trim({_value(PRECISE)})) as precise, {_whole(ROLLOVER)} as minutes
    from configuration where key in ('{PRECISE}', '{ROLLOVER}') group by broker)
select max(case when precise = 'true' then 0
    when precise is not null and minutes is not null then least(greatest(minutes, 0), {_A_CENTURY_MINUTES}) * 60
    end)::bigint as delay_seconds
from told
"""
"""One row: the longest delay of an age quota on any broker; null: not known.

With `preciseTimeBasedBacklogQuotaCheck` a broker reads the oldest message itself, without delay. Otherwise it counts
from the time at which the ledger of that message was closed. On a quiet topic it closes at the maximum rollover time.
"""

_QUOTA = '{"limit": "BIGINT", "limitSize": "BIGINT", "limitTime": "BIGINT", "policy": "VARCHAR"}'
_QUOTAS = f'{{"destination_storage": {_QUOTA}, "message_age": {_QUOTA}}}'
_RETENTION = '{"retentionTimeInMinutes": "BIGINT", "retentionSizeInMB": "BIGINT"}'
_POLICIES = f"""{{"backlog_quota_map": {_QUOTAS}, "retention_policies": {_RETENTION},
    "message_ttl_in_seconds": "BIGINT", "compaction_threshold": "BIGINT", "offload_threshold": "BIGINT",
    "offload_threshold_in_seconds": "BIGINT", "offload_policies": {{"managedLedgerOffloadDriver": "VARCHAR"}}}}"""


def _document(column: str, shape: str) -> str:
    """SQL for the fields of a document; null for invalid JSON, so that one bad document does not break the query."""
    return f"json_transform(valid({column}), '{shape}')"


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
    coalesce(own.compaction_threshold, d.compaction_bytes) as compaction_bytes,
    size is not null as bytes_own,
    age is not null as seconds_own,
    retention is not null as retention_own,
    own.message_ttl_in_seconds is not null as ttl_own,
    {_set_by("size is not null", "d.limit_bytes")} as bytes_by,
    {_set_by("age is not null", "d.limit_seconds")} as seconds_by,
    {_set_by("retention is not null", "d.retention_megabytes")} as retention_by,
    coalesce(own.offload_threshold >= 0, false) or coalesce(own.offload_threshold_in_seconds > 0, false)
        or own.offload_policies.managedLedgerOffloadDriver is not null as to_be_offloaded,
    coalesce(own.offload_policies.managedLedgerOffloadDriver, d.offload_driver) as offload_driver
from parts cross join broker_defaults d
"""
"""Settings in force in each namespace whose policies were read, Pulsar's own namespaces left out.

`namespace`; `limit_bytes` (under 0: none), `bytes_policy`, `limit_seconds` (0 or under: none), `seconds_policy`,
`retention_minutes` and `retention_megabytes` (-1: unlimited, 0: nothing is retained), `ttl_seconds` (0: none),
`compaction_bytes` (0: topics are not compacted by themselves), each null where it is not known; `bytes_own`,
`seconds_own`, `retention_own` and `ttl_own`, whether the namespace sets it itself; `bytes_by`, `seconds_by` and
`retention_by`, the same in words: namespace, default or null (not known); `to_be_offloaded`, whether it is set to
offload old ledgers, and `offload_driver`, with which (empty: none; null: not known).
"""

DRILLED_TOPICS = f"""
with once as (
    select topic, max(namespace) as namespace, max(quota_limit_bytes) as limit_bytes,
        max(quota_limit_seconds) as limit_seconds, max(oldest_backlog_age_seconds) as age_seconds,
        max(slowest_subscription) as slowest_subscription, sum(delayed_messages)::bigint as delayed_messages,
        {_document("nullif(max(topic_quota_json), '{}')", _QUOTAS)} as quota,
        {_document("nullif(max(topic_retention_json), '{}')", _RETENTION)} as retention
    from drilled group by topic)
select topic, namespace, case when age_seconds >= 0 then age_seconds end as oldest_seconds,
    age_seconds is not null as age_told, slowest_subscription, delayed_messages,
    coalesce(once.limit_bytes, quota.destination_storage.limitSize, quota.destination_storage."limit", p.limit_bytes)
        as limit_bytes,
    coalesce(quota.destination_storage.policy, p.bytes_policy) as bytes_policy,
    coalesce(once.limit_seconds, quota.message_age.limitTime, p.limit_seconds) as limit_seconds,
    coalesce(quota.message_age.policy, p.seconds_policy) as seconds_policy,
    coalesce(retention.retentionTimeInMinutes, p.retention_minutes) as retention_minutes,
    coalesce(retention.retentionSizeInMB, p.retention_megabytes) as retention_megabytes, p.compaction_bytes,
    if(quota.destination_storage is null, coalesce(p.bytes_by, 'default'), 'topic') as bytes_by,
    if(quota.message_age is null, coalesce(p.seconds_by, 'default'), 'topic') as seconds_by,
    if(retention is null, p.retention_by, 'topic') as retention_by
from once left join namespace_policies p using (namespace)
"""
"""Drilled topics with the settings in force, one row each (the table `drilled` has one per subscription).

`topic`, `namespace`; the settings as in `namespace_policies`, each from the topic itself (then `*_by` is topic), its
namespace or the brokers, so also a limit that brokers of the version do not report for a topic; `oldest_seconds` (null:
not known), `age_told` (false: brokers of the version report no age), `slowest_subscription`, `delayed_messages` of all
subscriptions.
"""

LIMITS_IN_FORCE = """
select namespace as holder, * from namespace_policies union all by name select topic as holder, * from drilled_topics
"""
"""The settings in force in each namespace and each drilled topic, the `holder`, with the level that sets each.

A topic has no `ttl_seconds`: its statistics do not show a time to live of its own.
"""

_MOST_BYTES, _MOST_SECONDS = "9e18", "1e12"

QUOTAS_TOLD = f"""
with told as (
    select topic, source as broker, namespace_of(topic) as namespace,
        max(value) filter (series = '{SIZE_LIMIT}') as told_bytes,
        max(value) filter (series = '{AGE_LIMIT}') as told_seconds,
        max(value) filter (series = '{AGE}') as age_seconds
    from metrics
    where series in ('{SIZE_LIMIT}', '{AGE_LIMIT}', '{AGE}') and source_kind = 'broker' and topic is not null
        and isfinite(value) and not starts_with(topic, 'non-persistent://')
    group by topic, source),
apart as (
    select topic, broker,
        case when told_bytes is not null and if(told_bytes < 0, -1, told_bytes)
                is distinct from if(limit_bytes < 0, -1, limit_bytes)::double
            then trunc(greatest(least(told_bytes, {_MOST_BYTES}), -1))::bigint end as limit_bytes,
        case when told_seconds is not null and if(told_seconds < 0, 0, told_seconds)
                is distinct from if(limit_seconds < 0, 0, limit_seconds)::double
            then trunc(greatest(least(told_seconds, {_MOST_SECONDS}), -1))::bigint end as limit_seconds,
        case when age_seconds >= 0 then trunc(least(age_seconds, {_MOST_SECONDS}))::bigint end as age_seconds
    from told join namespace_policies using (namespace))
from apart where limit_bytes is not null or limit_seconds is not null or age_seconds is not null
"""
"""Metrics of persistent topics that differ from the policies of their namespace, or are unknown there.

`topic`, `broker`; `limit_bytes` and `limit_seconds`, where the topic has its own; `age_seconds`, the age of the oldest
message as the broker reports it. Each is null where there is nothing to report.
"""

AGE_TELLERS = f"""
select distinct source as broker
from metrics join (select broker as source from brokers where metrics_read) using (source)
where series = '{AGE}' and source_kind = 'broker' and topic is not null and isfinite(value)
"""
"""Brokers that export the backlog age of each topic: a topic without a sample has an age unknown to its broker.

A broker is left out if its samples are not numbers.
"""

_DOUBTFUL = 20
"""Factor of growth that makes a reported age implausible: at the present inflow, the backlog would be that much larger.

Brokers before apache/pulsar#24915 keep the age of a message long after it was consumed, and add to it.
"""

TOPICS_UNDER_POLICIES = f"""
with told as (
    select t.topic, t.namespace, t.producers, t.storage_bytes, t.backlog_bytes, t.throughput_in_bytes,
        case when t.message_rate_in > 0 and t.throughput_in_bytes > 0 then t.throughput_in_bytes / t.message_rate_in
            when t.message_rate_out > 0 and t.throughput_out_bytes > 0 then t.throughput_out_bytes / t.message_rate_out
            end as message_bytes,
        d.topic is not null as drilled, d.slowest_subscription, d.delayed_messages,
        coalesce(d.age_told, false) or q.age_seconds is not null or a.broker is not null as age_asked,
        case when d.age_told then d.oldest_seconds else q.age_seconds end as told_seconds,
        coalesce(d.limit_bytes, q.limit_bytes, p.limit_bytes) as limit_bytes,
        coalesce(d.limit_seconds, q.limit_seconds, p.limit_seconds) as limit_seconds,
        case when d.topic is not null then d.bytes_policy when q.limit_bytes is null then p.bytes_policy end
            as bytes_policy,
        case when d.topic is not null then d.seconds_policy when q.limit_seconds is null then p.seconds_policy end
            as seconds_policy,
        coalesce(d.retention_minutes, p.retention_minutes) as retention_minutes,
        coalesce(d.retention_megabytes, p.retention_megabytes) as retention_megabytes
    from user_topics t join namespace_policies p using (namespace) left join drilled_topics d using (topic)
        left join quotas_told q on q.topic = t.topic and q.broker = t.broker
        left join age_tellers a on a.broker = t.broker)
select *, case when backlog_bytes > 0
        and not coalesce(throughput_in_bytes * told_seconds > {_DOUBTFUL} * backlog_bytes::double, false)
    then told_seconds end as oldest_seconds
from told
"""
"""Ordinary loaded topics of namespaces whose policies are known.

From the table `topics`: `topic`, `namespace`, `producers`, `storage_bytes`, `backlog_bytes`, `throughput_in_bytes`.
`message_bytes` is the mean size of messages now, null without traffic. `drilled` is true if the topic's own statistics
were read; they give `slowest_subscription` and `delayed_messages`, else null. `told_seconds` is the backlog's age as
the broker reports it, null if it reports none; `age_asked` is true if it was read. `oldest_seconds` is the same age if
the backlog's size makes it plausible. The settings in force are as in `namespace_policies`: `limit_bytes`,
`bytes_policy`, `limit_seconds`, `seconds_policy`, `retention_minutes`, `retention_megabytes`. The policy of a topic's
own quota is null if the topic was not drilled.
"""

QUOTAS_IN_FORCE = """
select *,
    -- A limit of 0 is full at all times: the broker compares with `>=`.
    case when limit_bytes = 0 and backlog_bytes is not null then 100 when limit_bytes > 0
        then floor(backlog_bytes * 100::double / limit_bytes)::bigint end as bytes_percent,
    case when limit_seconds > 0
        then floor(oldest_seconds * 100::double / limit_seconds)::bigint end as seconds_percent,
    case when limit_seconds > 0 and drilled
        then floor(told_seconds * 100::double / limit_seconds)::bigint end as told_percent,
    case when limit_seconds > 0 and told_seconds is null and age_asked and backlog_bytes > 0
            and throughput_in_bytes > 0
        then least(backlog_bytes / throughput_in_bytes, 1e12)::bigint end as estimated_seconds,
    floor(estimated_seconds * 100::double / limit_seconds)::bigint as estimated_percent
from topics_under_policies
"""
"""The same topics, with the usage of their quotas: null without a limit or a known age.

`estimated_seconds` is the age estimated from the backlog's size and the inflow, for topics whose broker does not know
it yet: without `preciseTimeBasedBacklogQuotaCheck` it only does once the ledger of the oldest message is closed.

`told_percent` uses the age that the broker reported for a drilled topic, with or without a backlog.
"""

PRESSED = """
select * from quotas_in_force where greatest(bytes_percent, seconds_percent, told_percent, estimated_percent) >= 1
"""
"""Topics of `quotas_in_force` that use 1 % or more of a quota, the lowest possible threshold."""

AGES_NOT_READ = """
with under as (
    select topic from user_topics semi join (from namespace_policies where limit_seconds > 0) using (namespace)
    union select topic from quotas_told where limit_seconds > 0)
select topic, namespace, producers, backlog_bytes, seconds_policy
from topics_under_policies semi join under using (topic) where limit_seconds > 0 and not age_asked
"""
"""Topics with an age quota (of the namespace or their own) whose backlog age was not read.

If the age was read but not reported, the broker does not know it either, and so does not enforce the quota.
"""

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

DEDUPLICATION = f"""
select namespace, coalesce(
    try_cast(valid(policies_json)->>'deduplicationEnabled' as boolean),
    (select lower(trim(value)) = 'true' from usual_settings where key = '{DEDUPLICATED}')) as deduplicated
from namespaces where policies_json is not null
"""
"""Whether each namespace's topics are deduplicated, by its policies or the brokers' default; null: not known.

Topics may decide otherwise.
"""

_FIRST = SqlView("broker_defaults", BROKER_DEFAULTS)
_POLICIES_VIEW = SqlView("namespace_policies", NAMESPACE_POLICIES, kept=True)
_LAST = (SqlView("drilled_topics", DRILLED_TOPICS, kept=True), SqlView("limits_in_force", LIMITS_IN_FORCE))

VIEWS = (
    _FIRST,
    SqlView("age_quota_delays", AGE_QUOTA_DELAYS),
    SqlView("deduplication", DEDUPLICATION),
    _POLICIES_VIEW,
    SqlView("defaults_that_differ", DIFFERING),
    *_LAST,
    SqlView("offloads", OFFLOADS),
    SqlView("quotas_told", QUOTAS_TOLD, kept=True),
    SqlView("age_tellers", AGE_TELLERS, kept=True),
    SqlView("topics_under_policies", TOPICS_UNDER_POLICIES),
    SqlView("quotas_in_force", QUOTAS_IN_FORCE),
    SqlView("pressed", PRESSED, kept=True),
    SqlView("ages_not_read", AGES_NOT_READ, kept=True),
    SqlView("retained_topics", RETAINED_TOPICS),
    SqlView("quotas_beside_retention", QUOTAS_BESIDE_RETENTION),
)
"""Views for the checks of backlog."""

IN_FORCE = (USUAL_SETTINGS, _FIRST, _POLICIES_VIEW, *_LAST)
"""Views of the limits in force, for all modules that report limits."""
