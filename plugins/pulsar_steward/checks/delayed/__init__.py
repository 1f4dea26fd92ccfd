"""Delayed messages and the capacity of a cluster: the views that their checks select from."""

from __future__ import annotations

from pulsar_steward.checks.views import SqlView
from pulsar_steward.model.broker_defaults import TTL_SECONDS
from pulsar_steward.model.measures import AGE, DELAYED_BUCKETS, DELAYED_SERIES

TITLE = "Delayed messages and capacity"
"""Title of this group of checks."""

# A tracker knows only messages that its dispatcher has read: figures are lower bounds. (An in-memory tracker stops at
# `delayedDeliveryFixedDelayDetectionLookahead` messages of one fixed delay.) While a topic moves, two brokers report
# it: each has its own row, in any division of the snapshot.
_WAITING = f"""
with told as (
    select topic, subscription, source as broker, try_cast(trunc(value) as bigint) as delayed_messages
    from metrics where series = '{DELAYED_SERIES}' and value > 0 and subscription is not null),
asked as (
    select topic, subscription, broker, delayed_messages
    from drilled join (select topic, broker from topics where broker is not null) using (topic)
    where delayed_messages > 0)
select topic, namespace_of(topic) as namespace, subscription, broker, max(delayed_messages) as delayed_messages
from (from told where delayed_messages > 0 union all from asked) where of_users(topic)
group by topic, subscription, broker
"""

# The series also counts the bucket that is being filled (seen in the broker: sealed buckets + 1), which has no ledger.
# So does `delayed_buckets`, which comes from it. A topic's own statistics count if no series has its buckets.
_BUCKETS = rf"""
with told as (
    select topic, subscription, source as broker, greatest(try_cast(trunc(value) as integer) - 1, 0) as buckets
    from metrics where series = '{DELAYED_BUCKETS}' and subscription is not null),
asked as (
    select topic, subscription, broker, case when delayed_buckets is not null then greatest(delayed_buckets - 1, 0)
        when cursor_properties_json is not null
        then len(regexp_extract_all(cursor_properties_json, '#pulsar\.internal\.delayed\.bucket')) end as buckets
    from drilled join (select topic, broker from topics where broker is not null) using (topic))
select topic, namespace_of(topic) as namespace, subscription, broker, max(buckets)::bigint as buckets
from (from told union all from asked) where buckets is not null and of_users(topic)
group by topic, subscription, broker
"""

VIEWS = (
    SqlView("delayed_waiting", _WAITING, kept=True),
    SqlView("delayed_buckets", _BUCKETS, kept=True),
    # Age of the oldest message of a topic, if reported; a topic may have several reports.
    SqlView(
        "delayed_backlog_ages",
        f"""select topic, try_cast(trunc(value) as bigint) as age_seconds
            from metrics where series = '{AGE}' and value >= 0 and topic is not null
        union all select topic, oldest_backlog_age_seconds from drilled where oldest_backlog_age_seconds >= 0""",
    ),
    # The time to live (0: none; null: not known) and the longest delay (0: unbounded) of each namespace: its own value,
    # or the brokers' default. If brokers differ, a time to live goes before none, and no bound before a bound.
    SqlView(
        "delayed_bounds",
        f"""with usual as (
            select (select max(try_cast(trim(value) as bigint)) from setting('{TTL_SECONDS}')) as ttl,
                coalesce((select min(try_cast(trim(value) as bigint))
                    from setting('delayedDeliveryMaxDelayInMillis')), 0) as longest),
        own as (
            select namespace, policies_json is not null as known,
                try_cast(policies_json->>'message_ttl_in_seconds' as bigint) as own_ttl,
                try_cast(policies_json->>'$.delayed_delivery_policies.maxDeliveryDelayInMillis' as bigint)
                    as own_longest
            from (select namespace, valid(policies_json) as policies_json from namespaces))
        select namespace, case when known then coalesce(own_ttl, ttl) end as ttl_seconds,
            coalesce(own_longest, longest) // 1000 as longest_delay_seconds
        from own cross join usual""",
    ),
    SqlView(
        "delayed_tellers",
        f"""select source, source_kind, bool_or(series = '{DELAYED_SERIES}') as delayed
        from metrics group by source, source_kind""",
        kept=True,
    ),
    # Brokers with subscriptions, which should export the metric.
    SqlView(
        "delayed_subscribed",
        "select distinct broker from topics where subscriptions > 0 and of_users and broker is not null",
        kept=True,
    ),
)
"""Views that the queries of these checks use besides `pulsar_steward.checks.views`; later ones may use earlier ones."""
