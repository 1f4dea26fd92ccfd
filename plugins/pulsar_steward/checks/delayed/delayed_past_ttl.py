"""Delayed messages that may expire before they are due: a time to live counts from publishing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.checks.check import LookBack, Query, RowCheck, Scope, ranked
from pulsar_steward.checks.delayed.waiting import GAP_CLUSTER, GAP_SHARDS, gap, tally_words
from pulsar_steward.model.broker_defaults import TTL_SECONDS
from pulsar_steward.model.finding import Figures, Severity
from pulsar_steward.model.measures import DELAYED_SERIES
from pulsar_steward.model.section import Section, number, percent
from pulsar_steward.model.trouble import Harm, by_severity
from pulsar_steward.model.units import counted, seconds_in_words, time_in_words

if TYPE_CHECKING:
    from pulsar_steward.checks.check import CheckContext, Queried, Row


class DelayedPastTtlPolicy(Section):
    """Thresholds for delayed messages that may expire before they are delivered."""

    critical_delayed_percent_of_backlog: int = percent(
        90, "share of delayed entries in a backlog that expires: what goes are these, then"
    )
    warning_age_percent_of_ttl: int = percent(80, "age of a topic's oldest message: leaves a fifth of the time to act")
    expired_within_minutes: int = number(
        60,
        "what expired in earlier snapshots counts as well: brokers let messages expire every five minutes, and"
        " tell the rate of the last minute only",
        ge=0,
    )


class DelayFigures(Figures, frozen=True, kw_only=True):
    """Delayed messages under a time to live, and the maximum delay in force; 0: no maximum."""

    delayed_messages: int
    longest_delay_seconds: int
    subscriptions: int
    ttl_seconds: int


NEARLY_ALL = "nearly all entries of its backlog are delayed messages"
DELETED_EARLY = "messages are deleted before they are due"
NOT_ONLY_DELAYED = "its backlog is not only delayed messages, so it cannot be seen which of them expire"

# For each namespace, the state of its worst subscription in the shard. Messages are deleted now ('eating'), perhaps now
# ('expiring') or soon ('old'), or it is possible because longer delays are allowed.
ENDANGERED = """
with under as (
    select * from delayed_waiting
    join (from delayed_bounds where ttl_seconds > 0) using (namespace) join limits using (namespace)),
cursors as (
    select topic, subscription, max(backlog_entries) as backlog_entries, max(expired_rate) as expired_rate
    from subscriptions semi join under using (topic, subscription) group by topic, subscription),
ages as (
    select topic, max(age_seconds) as age_seconds from delayed_backlog_ages semi join under using (topic)
    group by topic),
told as (
    select *, case
        when expired_rate > 0
            and delayed_messages::hugeint * 100 >= critical_delayed_percent_of_backlog::hugeint * backlog_entries
            then 'eating'
        when expired_rate > 0 then 'expiring'
        when age_seconds::hugeint * 100 >= warning_age_percent_of_ttl::hugeint * ttl_seconds then 'old'
        when longest_delay_seconds > ttl_seconds then 'allowed'
        when longest_delay_seconds <= 0 then 'unbounded' end as why
    from under left join cursors using (topic, subscription) left join ages using (topic)),
ranked as (
    select *, case why when 'eating' then 2 when 'unbounded' then 0 else 1 end as rank from told where why is not null)
select namespace, ttl_seconds, longest_delay_seconds, max(rank) as rank, count(*) as subscriptions,
    sum(delayed_messages)::bigint as delayed_messages,
    max({'rank': rank, 'delayed': delayed_messages, 'topic': topic, 'subscription': subscription, 'why': why,
        'expired_rate': expired_rate, 'age_seconds': age_seconds}) as worst
from ranked group by namespace, ttl_seconds, longest_delay_seconds
"""

# Expiry rate in an earlier snapshot, for subscriptions that had delayed messages then. For each namespace, the one with
# the highest share of delayed messages. A delayed message is an entry of its own, as clients do not batch it.
EXPIRED_BEFORE = f"""
with expiring as (
    select topic, subscription, max(backlog_entries) as backlog_entries, max(expired_rate) as expired_rate
    from raw_subscriptions where expired_rate > 0 group by topic, subscription),
waiting as (
    select topic, subscription, max(try_cast(trunc(value) as bigint)) as delayed
    from raw_metrics where series = '{DELAYED_SERIES}' and value > 0 and subscription is not null
    group by topic, subscription)
select namespace_of(topic) as namespace,
    max({{'share_percent': (delayed::hugeint * 100 // greatest(backlog_entries, 1, delayed))::bigint,
        'delayed': delayed, 'topic': topic, 'subscription': subscription, 'expired_rate': expired_rate}}) as expired
from expiring join waiting using (topic, subscription)
where delayed > 0 and of_users(topic) group by namespace_of(topic)
"""

TTL_BEFORE = """
select namespace, try_cast(valid(policies_json)->>'message_ttl_in_seconds' as bigint) as ttl_then
from namespaces semi join tally using (namespace)
"""

# If the time to live was shorter then, it has been raised: messages that expired then would no longer expire.
FOUND = """
with now as (
    select namespace, max(rank) as rank, sum(subscriptions)::bigint as subscriptions,
        sum(delayed_messages)::bigint as delayed_messages, max(worst) as worst
    from endangered group by namespace),
waiting as (
    select namespace, sum(subscriptions)::bigint as subscriptions, sum(messages)::bigint as delayed_messages
    from tally group by namespace),
before as (
    select namespace, case when max(expired).share_percent >= any_value(critical_delayed_percent_of_backlog)
        then 2 else 1 end as rank, max(expired) as expired, max_by(taken_at, expired) as expired_at
    from expired_before left join ttl_before using (namespace, taken_at)
        join delayed_bounds using (namespace) join limits using (namespace)
    where coalesce(ttl_then, ttl_seconds) >= ttl_seconds
        and taken_at >= to_timestamp($now) - to_minutes(expired_within_minutes::integer)
    group by namespace)
select namespace, ttl_seconds, longest_delay_seconds, greatest(now.rank, before.rank) as rank,
    coalesce(now.subscriptions, waiting.subscriptions) as subscriptions,
    coalesce(now.delayed_messages, waiting.delayed_messages) as delayed_messages, worst,
    case when before.rank > coalesce(now.rank, -1) then expired end as expired, expired_at
from waiting join (from delayed_bounds where ttl_seconds > 0) using (namespace)
    left join now using (namespace) left join before using (namespace)
where now.rank is not null or before.rank is not null
"""

BLIND = """
select count(*) as count, min(namespace) as namespace
from (select distinct namespace from tally)
anti join (from delayed_bounds where ttl_seconds is not null) using (namespace)
"""


def _missing(queried: Queried, _context: CheckContext[DelayedPastTtlPolicy]) -> str | None:
    blind = queried["blind"].one
    unknown = (
        f"The time to live of {counted(blind['count'], 'namespace')} with delayed messages is not known,"
        f" {blind['namespace']} among them: neither its policies nor {TTL_SECONDS} were read."
    )
    return gap(queried) or (unknown if blind["count"] else None)


def _why(row: Row) -> str:
    """The reason now, or the expiry in an earlier snapshot."""
    if row["expired"] is None:
        worst, why, rate, at, now = row["worst"], row["worst"]["why"], "expires", "", " now"
    else:
        why = "eating" if row["rank"] == Severity.CRITICAL.rank else "expiring"
        worst, rate, at, now = row["expired"], "expired", f"at {time_in_words(row['expired_at'], date=False)} ", ""
    where = f"subscription {worst['subscription']} of {worst['topic']} ({worst['delayed']:,} delayed)"
    match why:
        case "eating":
            return f"{at}{where} {rate} {worst['expired_rate']:,.1f} entries/s{now}, and {NEARLY_ALL}: {DELETED_EARLY}"
        case "expiring":
            return f"{at}{where} {rate} {worst['expired_rate']:,.1f} entries/s{now}; {NOT_ONLY_DELAYED}"
        case "old":
            age = seconds_in_words(worst["age_seconds"], rounded=True)
            return f"the oldest message in the backlog of {worst['topic']} is {age} old; {where}"
        case "allowed":
            longest = seconds_in_words(row["longest_delay_seconds"], rounded=True)
            return f"delays up to {longest} are allowed, as in {where}"
        case _:
            return f"nothing bounds the delay that a producer may ask for, as in {where}"


# Judges a namespace by the worst of its subscriptions.
CHECK = RowCheck(
    check_id="delayed-past-ttl",
    harm=by_severity(Harm.LOSING, Harm.SOON),
    headlines={Harm.LOSING: "DELAYED MESSAGES EXPIRE before they are due"},
    order=10,
    title="A time to live may delete delayed messages before they are due",
    advice=(
        "Ask who produces to the namespace for the longest delay that they use.",
        "Raise the time to live above that delay: `pulsar-admin namespaces set-message-ttl NS -ttl TIME`.",
        "Bound the delay below it: maxDeliveryDelayInMillis in the namespace's delayedDelivery policy refuses longer.",
        "Keep topics with delays in a namespace of their own, without a time to live.",
        "What was expired is acknowledged: where retention still keeps it, reset the cursor to read it again.",
    ),
    source="docs/checks/delayed-past-ttl.md; apache/pulsar#21898, apache/pulsar#25010",
    scope=Scope.NAMESPACE,
    remedied_by="retention",
    policy=DelayedPastTtlPolicy,
    shards={
        "endangered": Query(ENDANGERED),
        "tally": Query("""
            select namespace, count(*) as subscriptions, sum(delayed_messages)::bigint as messages
            from delayed_waiting group by namespace
        """),
        **GAP_SHARDS,
    },
    earlier={
        "expired_before": LookBack(minutes=lambda limits: limits.expired_within_minutes, sql=EXPIRED_BEFORE),
        "ttl_before": LookBack(minutes=lambda limits: limits.expired_within_minutes, sql=TTL_BEFORE, small=True),
    },
    cluster={
        "found": Query(FOUND, worst_first="rank desc, delayed_messages desc, namespace"),
        "blind": Query(BLIND),
        **GAP_CLUSTER,
    },
    severity=ranked,
    subject="namespace",
    evidence=lambda row: (
        f"{counted(row['delayed_messages'], 'delayed message')} of {counted(row['subscriptions'], 'subscription')}"
        f" {'lives' if row['delayed_messages'] == 1 else 'live'} under a time to live of"
        f" {seconds_in_words(row['ttl_seconds'], rounded=True)} that counts from publishing; {_why(row)}."
    ),
    figures=DelayFigures,
    missing=_missing,
    quiet=lambda queried, _context: f"No time to live endangers the {tally_words(queried)}.",
)
