"""Subscriptions whose consumers get nothing more, as they hold too many messages that they did not acknowledge."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from pulsar_steward.model.catalog.clients import SUBSCRIPTION_BLOCKED
from pulsar_steward.model.finding import Finding, Severity
from steward_spark.checks.check import Check, Judgement
from steward_spark.checks.clients._consumers import slowest, slowest_words, subject_of
from steward_spark.checks.clients._users import nothing_read, subscriptions_of_users
from steward_spark.checks.common.listing import worst

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

    from pulsar_steward.policy.checks.clients import SubscriptionBlockedPolicy
    from pulsar_steward.policy.schema import Policy
    from steward_spark.frames import Frames

_RANKED = (Severity.INFO, Severity.WARNING, Severity.CRITICAL)


def blocked(subscriptions: DataFrame, policy: SubscriptionBlockedPolicy) -> DataFrame:
    """Subscriptions that are blocked, or have consumers that are.

    Returns:
        `topic`, `subscription`, `consumers`, `backlog`, `unacked`, `ack_rate`, `consumers_blocked`, `whole` (nobody
        gets anything) and `rank`: critical where all is blocked and nothing is acknowledged, which would free it.
    """
    flags = subscriptions.select(
        "topic",
        "subscription",
        *(
            F.coalesce(column, F.lit(0)).alias(name)
            for name, column in {
                "consumers": "consumers",
                "backlog": "backlog_messages",
                "unacked": "unacked_messages",
                "consumers_blocked": "consumers_blocked",
            }.items()
        ),
        "ack_rate",
        F.coalesce("blocked_on_unacked", F.lit(False)).alias("by_subscription"),
    )
    whole = F.expr("by_subscription or (consumers > 0 and consumers_blocked >= consumers)")
    many = F.expr(f"consumers_blocked * 100 >= consumers * {policy.warning_blocked_percent}")
    rank = F.when(F.col("whole") & (F.col("ack_rate") <= 0), 2).when(F.col("whole") | many, 1).otherwise(0)
    stuck = flags.where("by_subscription or consumers_blocked > 0")
    return stuck.withColumn("whole", whole).withColumn("rank", rank)


def _judge(frames: Frames, policy: Policy) -> Judgement:
    suspects = subscriptions_of_users(blocked(frames.subscriptions, policy.subscription_blocked))
    order = (F.desc("rank"), F.desc("unacked"), F.asc("topic"), F.asc("subscription"))
    rows, more = worst(suspects, *order)
    names = slowest(frames, rows)
    return Judgement(
        findings=tuple(_finding(row, slowest_words(names, row)) for row in rows),
        more=more,
        quiet="No subscription and no consumer is blocked for too many unacknowledged messages.",
        cannot_tell=None if rows else nothing_read(frames),
    )


def _finding(row: Row, consumers: str) -> Finding:
    return Finding(
        check_id=SUBSCRIPTION_BLOCKED.check_id,
        severity=_RANKED[row["rank"]],
        subject=subject_of(row),
        evidence=(
            f"Subscription {row['subscription']} of {row['topic']} holds {row['unacked']:,} unacknowledged messages,"
            f" {_who(row)} for it, {_freeing(row)}, and {row['backlog']:,} messages are in its backlog; {consumers}."
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


CHECK = Check(SUBSCRIPTION_BLOCKED, _judge)
