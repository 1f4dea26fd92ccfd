"""Subscriptions that stand still: there is something to consume and somebody to consume it, and nothing moves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from pulsar_steward.checks.check import Check, Judgement, Question, Scope
from pulsar_steward.checks.clients.consumers import SLOWEST, slowest_words, subject_of
from pulsar_steward.checks.unread import BROKERS_READ, nothing_read
from pulsar_steward.checks.words import duration
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.section import Section

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Answers, CheckContext, Row


class SubscriptionStalledPolicy(Section):
    """When a subscription stands still though there is something to consume and somebody to consume it."""

    minimum_backlog_messages: int = Field(
        1000, ge=1, description="messages that are due; as many fit into one client's receiver queue by default"
    )
    warning_minutes: int = Field(
        10, ge=1, description="since the last delivery or acknowledgement, where known; shorter: information"
    )
    critical_minutes: int = Field(60, ge=1, description="the same, when no pause of a healthy application explains it")
    critical_backlog_messages: int = Field(
        1_000_000, ge=1, description="due messages that make a standstill critical even where its age is not known"
    )


STILL, FULL, UNACKED = "still", "full", "unacked"
"""Nothing moves at all; consumers work on what they hold; what is delivered is not acknowledged."""

_WORDS = {
    STILL: "nothing is delivered and nothing acknowledged",
    FULL: "nothing is delivered, though some of what they hold is acknowledged",
    UNACKED: "nothing is acknowledged of what is delivered",
}
_LAST = {
    STILL: "last delivery or acknowledgement",
    FULL: "last delivery",
    UNACKED: "last acknowledgement",
}

# What is blocked for unacknowledged messages is left to the check for it. Delayed messages count as backlog, and are
# not due; where nobody tells how many they are, all of the backlog counts as due. Pauses of a minute are usual:
# applications acknowledge in batches, at checkpoints, or have just started.
FOUND = f"""
with standing as (
    select topic, subscription, broker, consumers, backlog_messages, minimum_backlog_messages, warning_minutes,
        critical_minutes, critical_backlog_messages, coalesce(consumers_without_permits, 0) as without_permits,
        coalesce(consumers_connected_recently >= consumers, false) as fresh,
        case when ack_rate > 0 then '{FULL}' when message_rate_out > 0 then '{UNACKED}' else '{STILL}' end as kind
    from user_subscriptions join limits using (namespace)
    where consumers > 0 and backlog_messages >= minimum_backlog_messages and (message_rate_out <= 0 or ack_rate <= 0)
        and not coalesce(blocked_on_unacked, false) and coalesce(consumers_blocked, 0) < consumers),
delayed as (
    select topic, subscription, max(told.messages) as delayed
    from clients_delayed told join standing using (topic, subscription)
    where told_by is null or told_by = broker group by topic, subscription),
last as (
    select topic, subscription, max(last_consumed_milliseconds) as consumed, max(last_acked_milliseconds) as acked
    from drilled where subscription is not null group by topic, subscription),
due as (
    select standing.*, greatest(backlog_messages - coalesce(delayed, 0), 0) as due,
        delayed is not null or told.broker is not null as delayed_known,
        case kind when '{STILL}' then greatest(consumed, acked) when '{FULL}' then consumed else acked end as moved_at,
        case when moved_at > 0 then greatest(floor($now)::bigint - moved_at // 1000, 0) end as since_seconds,
        coalesce(moved_at = 0, false) as never
    from standing left join delayed using (topic, subscription) left join last using (topic, subscription)
        left join clients_delayed_told told on told.broker = standing.broker
    where due >= minimum_backlog_messages)
select topic, subscription, consumers, due, delayed_known, without_permits, fresh, kind, since_seconds, never,
    case when fresh or kind = '{FULL}' then 0
        when since_seconds >= 60 * critical_minutes then 2
        when kind = '{STILL}' and (since_seconds is null or since_seconds >= 60 * warning_minutes)
            and delayed_known and due >= critical_backlog_messages then 2
        when since_seconds >= 60 * warning_minutes or (kind = '{STILL}' and since_seconds is null) then 1
        else 0 end as rank
from due
"""


def judge(answers: Answers, context: CheckContext[SubscriptionStalledPolicy]) -> Judgement:
    """What neither is delivered nor acknowledged is a warning, for long or with a huge backlog critical."""
    found = answers["found"]
    if found.rows:
        return Judgement(findings=tuple(map(_finding, found.rows)), more=found.more)
    return Judgement(
        quiet=context.in_each_part(
            lambda limits: (
                f"No subscription with consumers and {limits.minimum_backlog_messages:,} or more due"
                " messages stands still."
            )
        ),
        cannot_tell=nothing_read(answers["read"]),
    )


def _finding(row: Row) -> Finding:
    figures = {
        "consumers": row["consumers"],
        "consumers_without_permits": row["without_permits"],
        "due_messages": row["due"],
    }
    if row["since_seconds"] is not None:
        figures["since_seconds"] = row["since_seconds"]
    return Finding(
        check_id=CHECK.check_id,
        severity=tuple(Severity)[row["rank"]],
        subject=subject_of(row),
        evidence=(
            f"Subscription {row['subscription']} of {row['topic']} has {row['due']:,} messages to deliver"
            f"{'' if row['delayed_known'] else ' (how many are delayed is not known)'}, but {_WORDS[row['kind']]}"
            f" ({_since(row)}); {_permits(row)}; {slowest_words(row)}."
        ),
        figures=figures,
    )


def _since(row: Row) -> str:
    last = _LAST[row["kind"]]
    if row["since_seconds"] is not None:
        return f"{last} {duration(row['since_seconds'])} before"
    return f"no {last.removeprefix('last ')} since it was loaded" if row["never"] else f"{last} not known"


def _permits(row: Row) -> str:
    if row["fresh"]:
        return "all its consumers have just connected"
    if row["without_permits"] >= row["consumers"]:
        return "no consumer asks for more: look at the clients"
    return f"{row['consumers'] - row['without_permits']:,} of its consumers ask for more"


CHECK = Check(
    check_id="subscription-stalled",
    order=20,
    title="A subscription with a backlog and consumers stands still",
    advice=(
        "Look at the consumers that the evidence names, on their hosts: a thread dump shows where their handlers hang.",
        "No permits left: the client is not asking for more, its handlers are stuck or its receiver queue is full.",
        "Permits left: the broker does not dispatch; see `pulsar-admin topics stats-internal TOPIC` and its log.",
        "Restart the consumer that is stuck first; unload the topic only when its ack holes are few (ack-holes).",
    ),
    source="docs/knowledge.md C; docs/checks/subscription-stalled.md; apache/pulsar#14337",
    scope=Scope.NAMESPACE,
    policy=SubscriptionStalledPolicy,
    shards={"found": Question(FOUND, worst_first="rank desc, due desc, topic, subscription", detail=SLOWEST)},
    cluster={"read": BROKERS_READ},
    judge=judge,
)
