"""The yardstick: what some of the most expensive checks find, asked of the same Parquet files in DuckDB.

The SQL says what the checks say: the same rows are looked at, the same ones are found, and in the same order where more
are found than a check lists. It makes no sentences, and does not look for why nothing was found.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import duckdb

from steward_spark.checks.check import MOST_FINDINGS

if TYPE_CHECKING:
    from pathlib import Path

    from pulsar_steward.policy.schema import Policy

THREADS = 2
"""As many as the cores that the figures of the design are for."""

VIEWS = {
    "users": r"""
        select * from subscriptions where not regexp_matches(topic, '^[a-z-]+://(pulsar/|([^/]+/){2,3}__)')
            and not starts_with(subscription, '__')
            and not regexp_matches(subscription, '^(reader|multiTopicsReader)-[0-9A-Za-z]+$')""",
    "policies": """
        select namespace, policies_json->'$.backlog_quota_map.destination_storage' as size,
            policies_json->'$.backlog_quota_map.message_age' as age
        from namespaces where policies_json is not null and not starts_with(namespace, 'pulsar/')""",
    "limits": """
        select namespace,
            case when size is null then -1 else coalesce((size->>'limitSize')::bigint, (size->>'limit')::bigint, -1) end
                as limit_bytes,
            case when age is null then -1 else coalesce((age->>'limitTime')::bigint, -1) end as limit_seconds
        from policies""",
    "asked": """
        select topic, max(quota_limit_bytes) as own_bytes, max(quota_limit_seconds) as own_seconds,
            max(oldest_backlog_age_seconds) as oldest from drilled group by topic""",
    "in_force": """
        select topic, namespace, backlog_bytes, oldest,
            if(asked.topic is null, limit_bytes, coalesce(own_bytes, -1)) as limit_bytes,
            if(asked.topic is null, limit_seconds, coalesce(own_seconds, -1)) as limit_seconds
        from topics join limits using (namespace) left join asked using (topic)
        where not starts_with(namespace, 'pulsar/') and not starts_with(split_part(topic, '/', -1), '__')""",
    "waiting": r"""
        select topic, subscription, max(delayed) as delayed from (
            select topic, subscription, value::bigint as delayed from metrics
                where series = 'pulsar_subscription_delayed' and subscription is not null
            union all select topic, subscription, delayed_messages from drilled)
        where delayed > 0 and not regexp_matches(topic,
            '^[a-z-]+://(pulsar/([^/]+/)?[^/]+:\d+/|[^/]+/[^/]+/__|[^/]+/[^/]+/[^/]+/__)')
        group by topic, subscription""",
}
"""What several questions begin with; computed anew by each, as nothing is kept."""

QUERIES = {
    "ack-holes": """
        with settings as (select broker, max(try_cast(trim(value) as bigint)) as most from configuration
            where key = 'managedLedgerMaxUnackedRangesToPersist' group by broker)
        select topic || ' subscription ' || subscription
        from users join topics using (topic) join settings using (broker)
        where ack_holes > 0 and ack_holes * 100 >= most * $ack_holes_percent
        order by ack_holes > most desc, ack_holes / greatest(most, 1) desc, topic, subscription""",
    "subscription-stalled": """
        with suspects as (select topic, subscription, backlog_messages from users
            where consumers > 0 and backlog_messages >= $stalled_messages and (message_rate_out <= 0 or ack_rate <= 0)
            and not coalesce(blocked_on_unacked, false) and coalesce(consumers_blocked, 0) < consumers),
        delayed as (select topic, subscription, max(delayed) as delayed from (
                select topic, subscription, value::bigint as delayed from metrics
                    where series = 'pulsar_subscription_delayed' and subscription is not null
                union all select topic, subscription, delayed_messages from drilled where subscription is not null)
            group by topic, subscription)
        select topic || ' subscription ' || subscription from suspects left join delayed using (topic, subscription)
        where greatest(backlog_messages - coalesce(delayed, 0), 0) >= $stalled_messages
        order by topic, subscription""",
    "backlog-near-quota": """
        with percents as (select topic, backlog_bytes,
            case when limit_bytes = 0 then 100 when limit_bytes > 0 then floor(backlog_bytes * 100.0 / limit_bytes) end
                as by_bytes,
            case when limit_seconds > 0 then floor(oldest * 100.0 / limit_seconds) end as by_seconds
            from in_force)
        select topic from percents where greatest(by_bytes, by_seconds) >= $near_percent
        order by greatest(by_bytes, by_seconds) desc, backlog_bytes desc, topic""",
    "backlog-quota-missing": """
        select namespace from in_force where limit_bytes < 0 and limit_seconds <= 0 and backlog_bytes > 0
        group by namespace
        having sum(backlog_bytes) >= $missing_info_bytes or max(backlog_bytes) >= $missing_warning_bytes
        order by max(backlog_bytes) desc, namespace""",
    "delayed-past-ttl": """
        with lives as (select namespace, (policies_json->>'$.message_ttl_in_seconds')::bigint as ttl,
            coalesce((policies_json->>'$.delayed_delivery_policies.maxDeliveryDelayInMillis')::bigint, 0) // 1000
                as longest from namespaces),
        ages as (select topic, max(age) as age from (
                select topic, value::bigint as age from metrics where series = 'pulsar_storage_backlog_age_seconds'
                union all select topic, oldest_backlog_age_seconds from drilled)
            where topic is not null and age >= 0 group by topic),
        each as (select *, case when expired_rate > 0
                    and delayed * 100 >= $delayed_percent * backlog_messages then 2
                when expired_rate > 0 then 1 when age * 100 >= $age_percent * ttl then 1
                when longest > ttl then 1 when longest <= 0 then 0 end as rank
            from (select *, regexp_extract(topic, '^[a-z-]+://((?:[^/]+/){1,2}[^/]+)/[^/]+$', 1) as namespace
                from waiting) join (select * from lives where ttl > 0) using (namespace)
            left join (select topic, subscription, backlog_messages, expired_rate from subscriptions)
                using (topic, subscription)
            left join ages using (topic))
        select namespace from each where rank is not null group by namespace, ttl, longest
        order by max(rank) desc, sum(delayed) desc, namespace""",
    "delayed-holds-ledgers": """
        with spans as (select topic, floor(
                backlog_bytes * (1.0 - backlog_messages::double / entries_since_first_gap))::bigint as held
            from waiting join subscriptions using (topic, subscription)
            join (select topic, backlog_bytes from topics) using (topic)
            where entries_since_first_gap > 0 and entries_since_first_gap >= $entries * backlog_messages)
        select topic from spans where held >= $held_bytes group by topic order by max(held) desc, topic""",
}
"""Subjects of the findings by check, in order; of `subscription-stalled` by name, as a rank of its own orders these."""


def _thresholds(policy: Policy) -> dict[str, int]:
    return {
        "ack_holes_percent": policy.ack_holes.warning_percent,
        "stalled_messages": policy.subscription_stalled.minimum_backlog_messages,
        "near_percent": policy.backlog_near_quota.warning_percent,
        "missing_info_bytes": policy.backlog_quota_missing.info_backlog_bytes,
        "missing_warning_bytes": policy.backlog_quota_missing.warning_backlog_bytes,
        "delayed_percent": policy.delayed_past_ttl.critical_delayed_percent_of_backlog,
        "age_percent": policy.delayed_past_ttl.warning_age_percent_of_ttl,
        "entries": policy.delayed_holds_ledgers.warning_entries_per_backlog_message,
        "held_bytes": policy.delayed_holds_ledgers.warning_held_mebibytes * 1024 * 1024,
    }


def diagnosed(snapshot: Path, policy: Policy) -> dict[str, tuple[float, list[str]]]:
    """Seconds and the listed subjects of each check in `QUERIES`, after DuckDB has started.

    Args:
        snapshot: Its folder.
        policy: The thresholds.
    """
    with duckdb.connect(config={"threads": THREADS}) as connection:
        for table in sorted(path.name for path in snapshot.iterdir() if path.is_dir()):
            connection.read_parquet(f"{snapshot}/{table}/*.parquet").create_view(table)
        for name, query in VIEWS.items():
            connection.sql(query).create_view(name)
        return {check_id: _timed(connection, query, _thresholds(policy)) for check_id, query in QUERIES.items()}


def _timed(connection: duckdb.DuckDBPyConnection, query: str, thresholds: dict[str, int]) -> tuple[float, list[str]]:
    used = {name: value for name, value in thresholds.items() if f"${name}" in query}
    begun = time.perf_counter()
    rows = connection.execute(f"{query} limit {MOST_FINDINGS}", used).fetchall()
    return time.perf_counter() - begun, [row[0] for row in rows]
