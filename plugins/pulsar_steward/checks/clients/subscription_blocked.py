"""Subscriptions whose consumers get nothing more, as they hold too many messages that they did not acknowledge."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from pulsar_steward.checks.check import Check, Judgement, Question, Scope
from pulsar_steward.checks.clients.consumers import SLOWEST, slowest_words, subject_of
from pulsar_steward.checks.unread import BROKERS_READ, nothing_read
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.section import Section

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Answers, CheckContext, Row


class SubscriptionBlockedPolicy(Section):
    """When consumers that get nothing for too many unacknowledged messages are trouble."""

    warning_blocked_percent: int = Field(
        50, ge=1, le=100, description="consumers of a subscription that are blocked; fewer: information"
    )


# Nothing frees a subscription that is blocked as a whole and of which nothing is acknowledged: it is the worst.
FOUND = """
select topic, subscription, coalesce(consumers, 0) as consumers, coalesce(backlog_messages, 0) as backlog,
    coalesce(unacked_messages, 0) as unacked, coalesce(s.consumers_blocked, 0) as consumers_blocked, ack_rate,
    coalesce(blocked_on_unacked, false) as by_subscription,
    by_subscription or (coalesce(s.consumers, 0) > 0 and s.consumers_blocked >= s.consumers) as whole,
    case when whole and ack_rate <= 0 then 2
        when whole or s.consumers_blocked * 100 >= coalesce(s.consumers, 0) * warning_blocked_percent then 1
        else 0 end as rank
from user_subscriptions s join limits using (namespace)
where blocked_on_unacked or s.consumers_blocked > 0
"""


def judge(answers: Answers, context: CheckContext[SubscriptionBlockedPolicy]) -> Judgement:  # noqa: ARG001 - every judge is given it
    """Blocked as a whole and nothing acknowledged is critical, few blocked consumers are information."""
    found = answers["found"]
    if found.rows:
        return Judgement(findings=tuple(map(_finding, found.rows)), more=found.more)
    return Judgement(
        quiet="No subscription and no consumer is blocked for too many unacknowledged messages.",
        cannot_tell=nothing_read(answers["read"]),
    )


def _finding(row: Row) -> Finding:
    return Finding(
        check_id=CHECK.check_id,
        severity=tuple(Severity)[row["rank"]],
        subject=subject_of(row),
        evidence=(
            f"Subscription {row['subscription']} of {row['topic']} holds {row['unacked']:,} unacknowledged messages,"
            f" {_who(row)} for it, {_freeing(row)}, and {row['backlog']:,} messages are in its backlog;"
            f" {slowest_words(row)}."
        ),
        figures={
            "backlog_messages": row["backlog"],
            "consumers": row["consumers"],
            "consumers_blocked": row["consumers_blocked"],
            "unacked_messages": row["unacked"],
        },
    )


def _who(row: Row) -> str:
    if row["by_subscription"]:
        return "is blocked as a whole"
    return f"{row['consumers_blocked']:,} of its {row['consumers']:,} consumers are blocked"


def _freeing(row: Row) -> str:
    if row["ack_rate"] is None:
        return "how much is acknowledged is not known"
    if row["ack_rate"] <= 0:
        return "nothing is acknowledged"
    return f"{row['ack_rate']:,.1f} messages/s are acknowledged"


CHECK = Check(
    check_id="subscription-blocked",
    order=10,
    title="Consumers get nothing more until they acknowledge what they have",
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
    shards={"found": Question(FOUND, worst_first="rank desc, unacked desc, topic, subscription", detail=SLOWEST)},
    cluster={"read": BROKERS_READ},
    judge=judge,
)
