"""Limits and rules that act silently: a client is refused, or messages wait, and no error tells a server's operator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.checks.check import Query, RowCheck, Scope
from pulsar_steward.checks.clients.rates import HELD, held_words, published_words, rate_words
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.section import Section, number, percent
from pulsar_steward.model.trouble import Harm
from pulsar_steward.model.units import counted

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Row


class LimitReachedPolicy(Section):
    """Thresholds for limits of clients and rates."""

    warning_percent_of_rate: int = percent(95, "of a publish or dispatch rate: what comes beyond waits")
    minimum_throttlings: int = number(
        100, "that a rate held something back since a topic was loaded; fewer are a burst"
    )
    minimum_entries: int = number(1000, "that wait for a subscription at its dispatch rate; fewer are on their way")


COUNTS = {
    "producers": ("max_producers_per_topic", "maxProducersPerTopic"),
    "consumers": ("max_consumers_per_topic", "maxConsumersPerTopic"),
    "subscriptions": ("max_subscriptions_per_topic", "maxSubscriptionsPerTopic"),
}
"""Settings of a namespace and of brokers that limit the clients of a topic, by the column of `topics`; 0: no limit."""

PAUSED, HELD_BACK = "times paused", "times held back"
"""What brokers count of rates."""

PER_SUBSCRIPTION = ("max_consumers_per_subscription", "maxConsumersPerSubscription")


SCHEMAS_FORBIDDEN = "is_allow_auto_update_schema"
READERS = "readers"
"""What is shut out of a topic of policies where a namespace forbids schema updates."""


def _limit(setting: tuple[str, str]) -> str:
    own, default = setting
    usual = f"(select max(try_cast(trim(value) as bigint)) from usual_settings where key = '{default}')"
    # A negative value of a namespace is none.
    return f"""coalesce(case when try_cast(own->>'{own}' as bigint) >= 0 then try_cast(own->>'{own}' as bigint) end,
            {usual})::double as {own}"""


# Worked out once for each namespace, as there may be a million topics.
_ALLOWED = f"""allowed as materialized (
    select namespace, {", ".join(map(_limit, (*COUNTS.values(), PER_SUBSCRIPTION)))},
        coalesce(try_cast(own->>'{SCHEMAS_FORBIDDEN}' as boolean), (select try_cast(value as boolean)
            from usual_settings where key = 'isAllowAutoUpdateSchemaEnabled'), true) as may_update_schemas
    from (select namespace, case when json_valid(policies_json) then policies_json::json end as own from namespaces))"""

# From 3.0 on brokers exempt system topics from these limits (apache/pulsar#18369).
_EXEMPT = "select coalesce(try_cast(split_part(pulsar_version, '.', 1) as integer) >= 3, false) as exempt from snapshot"

_COUNTED = " union all ".join(
    f"""select t.topic, t.namespace, null as subscription, '{column}' as kind, t.{column}::double as amount,
        {own} as allowed, '{default}' as setting
    from topics t join allowed on allowed.namespace = t.namespace and {own} > 0 and t.{column} >= {own}
        cross join ({_EXEMPT})
    where t.of_users or (not exempt and not starts_with(t.namespace, 'pulsar/'))"""
    for column, (own, default) in COUNTS.items()
)

# Brokers' readers register their schema where it is not yet there, which versions before 2.8.4 and 2.9.3 take for an
# update (apache/pulsar#14809). Compaction has a cursor there in any case.
_SHUT_OUT = f"""
    select t.topic, t.namespace, null as subscription, '{READERS}' as kind, 0.0 as amount, 1.0 as allowed,
        '{SCHEMAS_FORBIDDEN}' as setting
    from topics t join allowed using (namespace)
    where not may_update_schemas and ends_with(t.topic, '/__change_events')
        and 'true' in (select value from usual_settings where key = 'topicLevelPoliciesEnabled')
        and not exists (select 1 from subscriptions s
            where s.topic = t.topic and s.subscription <> '__compaction' and s.consumers > 0)
"""

# What a client is refused, or made to wait for: by what is set on its namespace or on the brokers, or, where topics set
# it themselves, by what brokers count. A publish rate is held for each topic, a dispatch rate for each subscription.
REACHED = f"""
with {_ALLOWED},
counted as ({_COUNTED} union all {_SHUT_OUT}
    union all select s.topic, s.namespace, s.subscription, 'consumers', s.consumers::double,
        {PER_SUBSCRIPTION[0]}, '{PER_SUBSCRIPTION[1]}'
    from user_subscriptions s join allowed on allowed.namespace = s.namespace and {PER_SUBSCRIPTION[0]} > 0
        and s.consumers >= {PER_SUBSCRIPTION[0]}),
reached as (
    select *, null as set_by, null as held, 0 as rank from counted
    union all by name
    select *, 1 as rank from (select * rename (unit as kind) from publish_rates)
    union all by name
    select topic, namespace_of(topic) as namespace, '{PAUSED}' as kind, times::double as amount, 1 as allowed,
        2 as rank, {HELD} as held
    from publishers_held
    union all by name
    select topic, s.namespace, subscription, '{HELD_BACK}' as kind, times::double as amount, 1 as allowed, 2 as rank,
        held
    from (select topic, subscription, times, {HELD} as held from dispatch_held)
        join user_subscriptions s using (topic, subscription) join limits on limits.namespace = s.namespace
    where s.backlog_entries >= minimum_entries)
select topic, namespace, subscription, kind, amount, allowed, setting, set_by, held, rank,
    if(kind in ('producers', 'consumers') and rank = 0, amount - allowed, 0)::bigint as shut_out
from reached join limits using (namespace)
where case rank when 0 then true when 1 then amount * 100 >= allowed * warning_percent_of_rate
    else amount >= minimum_throttlings end
qualify row_number() over (partition by topic order by rank, shut_out desc, kind, subscription) = 1
"""


def _reached(row: Row) -> str:
    whose = f"Subscription {row['subscription']}" if row["subscription"] else "The topic"
    amount, allowed, kind = row["amount"], row["allowed"], row["kind"]
    if kind == READERS:
        return (
            f"No broker reads {row['topic']}: the namespace allows no schema updates ({row['setting']}), by which this"
            " version shuts its own readers out. What is set on topics there does not hold, and nothing can be set."
        )
    if kind in COUNTS:
        out = row["shut_out"]
        beyond = f" {out:,} of them may not come back after a restart," if out else ""
        return (
            f"{whose} has {amount:,.0f} {kind}, and {row['setting']} allows {allowed:,.0f}: the next one is refused,"
            f"{beyond} and only the client is told."
        )
    if kind == PAUSED:
        limit = {**row["held"], "kind": "publish"}
        return (
            f"Brokers paused its producers {counted(int(amount), 'time')} since it was loaded: for the"
            f" {rate_words(limit)}, or for entries that were still to be written."
        )
    if row["held"]:
        return f"{whose} waits for a limit: {held_words(row['held'])}."
    return f"{whose} {published_words({**row, 'unit': kind})}."


LIMIT_REACHED = RowCheck(
    check_id="limit-reached",
    harm=Harm.SLOW,
    order=45,
    title="A limit or a rule shuts clients out, or has messages wait",
    advice=(
        "Ask whoever set the limit what it protects: it is a policy, and brokers only do what it says.",
        "Clients: close those that are not needed, or raise the limit of the namespace.",
        "Subscriptions of __change_events: brokers need one each; raise or unset the limit, delete none of them.",
        "Readers of __change_events: allow the namespace's schema updates, unload it, forbid them again; or upgrade.",
        "Rates: raise the limit, or give the topic more partitions, each of which has it for itself.",
    ),
    source="docs/checks/limit-reached.md; apache/pulsar#13538, apache/pulsar#16331, apache/pulsar#18364",
    scope=Scope.NAMESPACE,
    policy=LimitReachedPolicy,
    shards={"found": Query(REACHED, worst_first="shut_out > 0 desc, rank, amount / allowed desc, topic")},
    severity=Severity.WARNING,
    subject="topic",
    evidence=_reached,
    figures=lambda row: {
        "allowed": int(row["allowed"]),
        "amount": int(row["amount"]),
        "shut_out": row["shut_out"],  # connected, and refused when they connect again
    },
    quiet="No topic that was looked at is at a limit of its clients or rates, nor shut to brokers by a schema rule.",
)
