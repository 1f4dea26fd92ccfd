"""Subscriptions whose consumers get no more messages, as they hold too many unacknowledged ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.checks.check import BROKERS_READ, Query, RowCheck, Scope, nothing_read, ranked
from pulsar_steward.checks.clients.consumers import SLOWEST, slowest_words, subject_of
from pulsar_steward.model.section import Section, number, percent
from pulsar_steward.model.trouble import Harm
from pulsar_steward.model.units import counted, named, seconds_in_words

if TYPE_CHECKING:
    from pulsar_steward.checks.check import CheckContext, Queried, Row


class SubscriptionBlockedPolicy(Section):
    """Thresholds for consumers that get nothing because they have too many unacknowledged messages."""

    warning_blocked_percent: int = percent(50, "consumers of a subscription that are blocked; fewer: information")
    unlimited_unacked_messages: int = number(
        200_000,
        "unacknowledged messages of a subscription where the limits are 0 and nothing is ever blocked; by default"
        " as many block it",
    )


PER_CONSUMER, PER_SUBSCRIPTION = "maxUnackedMessagesPerConsumer", "maxUnackedMessagesPerSubscription"

# 0 is no limit. A namespace's own limit takes precedence over the broker's; in older versions -1 means no own limit.
_LIMITS = f"""
of_brokers as (
    select broker, max(try_cast(trim(value) as bigint)) filter (key = '{PER_CONSUMER}') as per_consumer,
        max(try_cast(trim(value) as bigint)) filter (key = '{PER_SUBSCRIPTION}') as per_subscription
    from configuration where key in ('{PER_CONSUMER}', '{PER_SUBSCRIPTION}') group by broker),
own as (
    select namespace, try_cast(document->>'max_unacked_messages_per_consumer' as bigint) as per_consumer,
        try_cast(document->>'max_unacked_messages_per_subscription' as bigint) as per_subscription
    from (select namespace, valid(policies_json) as document from namespaces))
"""

# A subscription that is blocked as a whole and acknowledges nothing is worst: nothing frees it. If blocking is switched
# off, the number of unacknowledged messages is judged.
FOUND = f"""
with {_LIMITS},
holding as (
    select s.*, warning_blocked_percent,
        if(blocked_on_unacked, of_namespace.per_subscription, of_namespace.per_consumer) >= 0 as by_namespace,
        case when of_namespace.per_consumer >= 0 then of_namespace.per_consumer else of_brokers.per_consumer end
            as of_consumer,
        case when of_namespace.per_subscription >= 0 then of_namespace.per_subscription
            else of_brokers.per_subscription end as of_subscription,
        of_consumer = 0 and of_subscription = 0 as without_limits
    from user_subscriptions s join limits using (namespace) left join of_brokers using (broker)
        left join own of_namespace using (namespace)
    where (blocked_on_unacked or s.consumers_blocked > 0
            or unacked_messages >= (select min(unlimited_unacked_messages) from limits))
        and (blocked_on_unacked or s.consumers_blocked > 0
            or (unacked_messages >= unlimited_unacked_messages and without_limits))),
last as (
    select topic, subscription, max(last_acked_milliseconds) as acked,
        max(oldest_backlog_age_seconds) filter (
            slowest_subscription = subscription and oldest_backlog_age_seconds >= 0) as oldest_seconds
    from drilled semi join holding using (topic, subscription) group by topic, subscription)
select topic, subscription, coalesce(s.consumers, 0) as consumers, coalesce(s.backlog_entries, 0) as backlog,
    s.messages_per_entry, coalesce(s.unacked_messages, 0) as unacked,
    coalesce(s.consumers_blocked, 0) as consumers_blocked, s.ack_rate,
    coalesce(s.blocked_on_unacked, false) as by_subscription, oldest_seconds,
    case when acked > 0 then greatest(floor($now)::bigint - acked // 1000, 0) end as since_seconds,
    not coalesce(s.blocked_on_unacked, false) and coalesce(s.consumers_blocked, 0) <= 0 as unlimited,
    if(by_subscription, of_subscription, of_consumer) as allowed, coalesce(by_namespace, false) as by_namespace,
    by_subscription or (coalesce(s.consumers, 0) > 0 and s.consumers_blocked >= s.consumers) as whole,
    case when unlimited then if(s.ack_rate <= 0, 1, 0)
        when whole and s.ack_rate <= 0 then 2
        when whole or s.consumers_blocked * 100 >= coalesce(s.consumers, 0) * warning_blocked_percent then 1
        else 0 end as rank
from holding s left join last using (topic, subscription)
"""

UNLIMITED = f"""
with {_LIMITS}
select broker as name from of_brokers semi join (from brokers where read) using (broker)
where per_consumer = 0 and per_subscription = 0
union all
select namespace as name from own where per_consumer = 0 and per_subscription = 0
"""
"""Brokers and namespaces in which blocking is switched off."""


def _quiet(queried: Queried, context: CheckContext[SubscriptionBlockedPolicy]) -> str:
    quiet = "No subscription and no consumer is blocked for too many unacknowledged messages."
    if names := [row["name"] for row in queried["unlimited"].rows]:
        quiet += f" Nothing ever is in {named(names)}, as the limits are 0 there; "
        quiet += context.in_each_part(
            lambda limits: f"no subscription holds {limits.unlimited_unacked_messages:,} without a limit."
        )
    return quiet


def _evidence(row: Row) -> str:
    limit = ""
    if row["allowed"]:
        setting = PER_SUBSCRIPTION if row["by_subscription"] else PER_CONSUMER
        limit = f" ({setting} {row['allowed']:,}, set by the {'namespace' if row['by_namespace'] else 'brokers'})"
    if row["unlimited"]:
        blocked = f"which nothing limits ({PER_CONSUMER} and {PER_SUBSCRIPTION} are 0)"
    elif row["by_subscription"]:
        blocked = f"is blocked as a whole for it{limit}"
    else:
        share = row["consumers_blocked"] * 100 // max(row["consumers"], 1)
        blocked = (
            f"{row['consumers_blocked']:,} of its {counted(row['consumers'], 'consumer')} ({share} %)"
            f" {'is' if row['consumers_blocked'] == 1 else 'are'} blocked for it{limit}"
        )
    freeing = "how much is acknowledged is not known"
    if row["ack_rate"] is not None and row["ack_rate"] > 0:
        freeing = f"{row['ack_rate']:,.1f} messages/s are acknowledged"
    elif row["ack_rate"] is not None:
        since = row["since_seconds"]
        last = "" if since is None else f" (the last {seconds_in_words(since, rounded=True)} before)"
        freeing = f"nothing is acknowledged{last}"
    each = row["messages_per_entry"] or 0
    batches = f" (batches of about {counted(each, 'message')})" if each > 1 else ""
    oldest = ""
    if row["oldest_seconds"] is not None:
        oldest = f", the oldest {seconds_in_words(row['oldest_seconds'], rounded=True)} old"
    return (
        f"Subscription {row['subscription']} of {row['topic']} holds"
        f" {counted(row['unacked'], 'unacknowledged message')}, {blocked}, {freeing}, and"
        f" {counted(row['backlog'], 'entry', 'entries')}{batches} {'is' if row['backlog'] == 1 else 'are'} in its"
        f" backlog{oldest}; {slowest_words(row)}."
    )


# Critical if blocked as a whole without acknowledgements; information for a few blocked consumers.
CHECK = RowCheck(
    check_id="subscription-blocked",
    harm=Harm.SLOW,
    order=10,
    title="Consumers blocked on unacked messages",
    advice=(
        "Look at the consumers that the evidence names: a branch of their code that never acknowledges, or a hang.",
        "See who holds what: `pulsar-admin topics stats TOPIC` (unackedMessages of each consumer).",
        "Restart a consumer that hangs: what it held goes to the others.",
        "Set an ack timeout or negative acknowledgements and a dead-letter topic in clients whose handlers may fail.",
        "Raise `maxUnackedMessagesPerConsumer` or `...PerSubscription` only where handlers are slow by nature.",
    ),
    source="docs/knowledge.md C; docs/checks/subscription-blocked.md; apache/pulsar#14337",
    scope=Scope.NAMESPACE,
    policy=SubscriptionBlockedPolicy,
    shards={"found": Query(FOUND, worst_first="rank desc, unacked desc, topic, subscription", detail=SLOWEST)},
    cluster={"read": BROKERS_READ, "unlimited": Query(UNLIMITED)},
    severity=ranked,
    subject=subject_of,
    evidence=_evidence,
    figures=lambda row: {
        "backlog_entries": row["backlog"],
        "consumers": row["consumers"],
        "consumers_blocked": row["consumers_blocked"],
        "unacked_messages": row["unacked"],
        "since_seconds": row["since_seconds"],
    },
    missing=nothing_read,
    quiet=_quiet,
)
