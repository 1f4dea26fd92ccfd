"""Limits that act silently: the next client is refused, or messages wait, and no error tells a server's operator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.checks.check import Query, RowCheck, Scope
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.measures import PUBLISHING_LIMITED
from pulsar_steward.model.section import Section, number, percent
from pulsar_steward.model.units import counted, throughput_in_words

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

PER_SUBSCRIPTION = ("max_consumers_per_subscription", "maxConsumersPerSubscription")


def _limit(setting: tuple[str, str]) -> str:
    own, default = setting
    usual = f"(select max(try_cast(trim(value) as bigint)) from usual_settings where key = '{default}')"
    # A negative value of a namespace is none.
    return f"""coalesce(case when try_cast(own->>'{own}' as bigint) >= 0 then try_cast(own->>'{own}' as bigint) end,
            {usual})::double as {own}"""


def _rate(member: str) -> str:
    return f"try_cast(own->'publishMaxMessageRate'->cluster->>'{member}' as double) as {member}"


RATES = {
    "published messages": ("message_rate_in", "publishThrottlingRateInMsg"),
    "published bytes": ("throughput_in_bytes", "publishThrottlingRateInByte"),
}

# Worked out once for each namespace, as there may be a million topics.
_ALLOWED = f"""allowed as materialized (
    select namespace, {", ".join(map(_limit, (*COUNTS.values(), PER_SUBSCRIPTION)))},
        {", ".join(_rate(member) for _, member in RATES.values())}
    from (select namespace, case when json_valid(policies_json) then policies_json::json end as own,
            pulsar_cluster as cluster
        from namespaces cross join (select pulsar_cluster from snapshot)))"""

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

_PUBLISHED = " union all ".join(
    f"""select t.topic, t.namespace, null as subscription, '{kind}' as kind, t.{column}::double as amount,
        {member} as allowed, 'publishMaxMessageRate' as setting
    from user_topics t join allowed on allowed.namespace = t.namespace and {member} > 0"""
    for kind, (column, member) in RATES.items()
)

# What a client is refused, or made to wait for: by what is set on its namespace or on the brokers, or, where topics set
# it themselves, by what they tell they held back. A publish rate is held for each topic, a dispatch rate for each
# subscription.
REACHED = f"""
with {_ALLOWED},
counted as ({_COUNTED}
    union all select s.topic, s.namespace, s.subscription, 'consumers', s.consumers::double,
        {PER_SUBSCRIPTION[0]}, '{PER_SUBSCRIPTION[1]}'
    from user_subscriptions s join allowed on allowed.namespace = s.namespace and {PER_SUBSCRIPTION[0]} > 0
        and s.consumers >= {PER_SUBSCRIPTION[0]}),
rates as ({_PUBLISHED}),
told as (
    select topic, namespace_of(topic) as namespace, null as subscription, 'times published too fast' as kind,
        max(times)::double as amount, 1 as allowed, 'publishRate' as setting
    from (select topic, publishing_limited as times from drilled union all
        select topic, value from metrics where series = '{PUBLISHING_LIMITED}' and topic is not null)
    group by topic
    union all select d.topic, d.namespace, d.subscription, 'times sent too fast', d.dispatching_limited::double, 1,
        'subscriptionDispatchRate'
    from drilled d join user_subscriptions s using (topic, subscription) join limits on limits.namespace = d.namespace
    where s.backlog_entries >= minimum_entries),
reached as (
    select *, 0 as rank from counted union all select *, 1 from rates union all select *, 2 from told)
select topic, namespace, subscription, kind, amount, allowed, setting, rank
from reached join limits using (namespace)
where case rank when 0 then true when 1 then amount * 100 >= allowed * warning_percent_of_rate
    else amount >= minimum_throttlings end
qualify row_number() over (partition by topic order by rank, kind, subscription) = 1
"""


def _reached(row: Row) -> str:
    whose = f"Subscription {row['subscription']}" if row["subscription"] else "The topic"
    amount, allowed, kind = row["amount"], row["allowed"], row["kind"]
    if kind in COUNTS:
        return (
            f"{whose} has {amount:,.0f} {kind}, and {row['setting']} allows {allowed:,.0f}: the next one is refused,"
            " and only the client is told."
        )
    if kind == "published bytes":
        rates = throughput_in_words(amount), throughput_in_words(allowed)
        return f"{whose} takes {rates[0]} of the {rates[1]} that {row['setting']} allows: producers are made to wait."
    if kind == "published messages":
        return (
            f"{whose} takes {amount:,.0f} of the {allowed:,.0f} messages/s that {row['setting']} allows: producers are"
            " made to wait."
        )
    what = "producers" if row["subscription"] is None else "its consumers"
    return (
        f"{whose} made {what} wait {counted(int(amount), 'time')} since it was loaded, by a limit of its rate"
        f" ({row['setting']}, of the topic, its namespace or the brokers)."
    )


LIMIT_REACHED = RowCheck(
    check_id="limit-reached",
    order=45,
    title="A limit of clients or of a rate is reached",
    advice=(
        "Ask whoever set the limit what it protects: it is a policy, and brokers only do what it says.",
        "Clients: close those that are not needed, or raise the limit of the namespace.",
        "Subscriptions of __change_events: brokers need one each; raise or unset the limit, delete none of them.",
        "Rates: raise the limit, or give the topic more partitions, each of which has it for itself.",
    ),
    source="docs/checks/limit-reached.md; apache/pulsar#13538, apache/pulsar#18364",
    scope=Scope.NAMESPACE,
    policy=LimitReachedPolicy,
    shards={"found": Query(REACHED, worst_first="-rank desc, amount / allowed desc, topic")},
    severity=Severity.WARNING,
    subject="topic",
    evidence=_reached,
    figures=lambda row: {"allowed": int(row["allowed"]), "amount": int(row["amount"])},
    quiet="No topic that was looked at is at a limit of its clients or rates.",
)
