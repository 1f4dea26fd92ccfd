"""The quotas and the retention in force for each loaded topic, and the usage of quotas.

A topic's own quota takes precedence over its namespace's. Its limits are known for drilled topics, and for all topics
of brokers that export topic metrics. Its policy is known for drilled topics only; other topics get the namespace's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.checks.check import Query
from pulsar_steward.checks.views import SqlView
from pulsar_steward.model.measures import AGE, AGE_LIMIT, SIZE_LIMIT
from pulsar_steward.model.units import MIB, MINUTE, counted

if TYPE_CHECKING:
    from pulsar_steward.checks.check import QueryRows


def holds_producers(policy: str) -> str:
    """SQL: true if a column's policy blocks producers; `producer_request_hold` and `producer_exception` both do."""
    return f"coalesce(starts_with({policy}, 'producer_'), false)"


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
        d.topic is not null or q.age_seconds is not null or a.broker is not null as age_asked,
        case when d.topic is null then q.age_seconds else d.oldest_seconds end as told_seconds,
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
        then floor(told_seconds * 100::double / limit_seconds)::bigint end as told_percent
from topics_under_policies
"""
"""The same topics, with the usage of their quotas: null without a limit or a known age.

`told_percent` uses the age that the broker reported for a drilled topic, with or without a backlog.
"""

PRESSED = """
select * from quotas_in_force where greatest(bytes_percent, seconds_percent, told_percent) >= 1
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
    SqlView("quotas_told", QUOTAS_TOLD, kept=True),
    SqlView("age_tellers", AGE_TELLERS, kept=True),
    SqlView("topics_under_policies", TOPICS_UNDER_POLICIES),
    SqlView("quotas_in_force", QUOTAS_IN_FORCE),
    SqlView("pressed", PRESSED, kept=True),
    SqlView("ages_not_read", AGES_NOT_READ, kept=True),
    SqlView("retained_topics", RETAINED_TOPICS),
    SqlView("quotas_beside_retention", QUOTAS_BESIDE_RETENTION),
)
"""Views that need those of `pulsar_steward.checks.backlog.policies`."""


def ages_not_read(of: str = "true") -> Query:
    """Query for `unknown_ages`: number of topics with a backlog and an age quota whose age was not read.

    Args:
        of: SQL condition: the topics that matter.
    """
    return Query(f"""
        select count(*) as topics, min(topic) as topic from ages_not_read where backlog_bytes > 0 and {of}
    """)


def unknown_ages(selected: QueryRows) -> str | None:
    """Reason why the absence of findings about age quotas proves nothing; None if every relevant age was read."""
    topics, first = _counted(selected)
    if not topics:
        return None
    return (
        f"{counted(topics, 'topic')} with an age quota {'has' if topics == 1 else 'have'} a backlog whose age was not"
        f" read, such as {first} (collect.drilled_topics bounds how many are asked)."
    )


def policies_not_read(percent: str) -> Query:
    """Query for `unknown_policies`: number of topics near a quota with an unknown policy.

    Args:
        percent: SQL: the share of a quota from which its policy matters.
    """
    return Query(f"""
        select count(*) as topics, min(topic) as topic from pressed join limits using (namespace)
        where (bytes_policy is null and bytes_percent >= {percent})
            or (seconds_policy is null and seconds_percent >= {percent})
    """)


def unknown_policies(selected: QueryRows) -> str | None:
    """Reason why the absence of findings about a quota's effect proves nothing; None if all policies are known."""
    topics, first = _counted(selected)
    if not topics:
        return None
    return (
        f"{counted(topics, 'topic')} {'is' if topics == 1 else 'are'} near a quota whose policy was not read, such as"
        f" {first} (collect.drilled_topics bounds how many are asked)."
    )


def _counted(selected: QueryRows) -> tuple[int, str]:
    """Number of topics in all shards together, and the first topic by name."""
    rows = [row for row in selected.rows if row["topics"]]
    return sum(row["topics"] for row in rows), min((row["topic"] for row in rows), default="")
