"""Subscriptions that stand still: there is something to consume and somebody to consume it, and nothing moves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from pulsar_steward.model.catalog.clients import SUBSCRIPTION_STALLED
from pulsar_steward.model.finding import Finding, Severity
from steward_spark.checks.check import Check, Judgement
from steward_spark.checks.clients._consumers import slowest, slowest_words, subject_of
from steward_spark.checks.clients._due import with_due
from steward_spark.checks.clients._users import nothing_read, subscriptions_of_users
from steward_spark.checks.common.listing import worst
from steward_spark.checks.common.words import duration

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row

    from pulsar_steward.policy.checks.clients import SubscriptionStalledPolicy
    from pulsar_steward.policy.schema import Policy
    from steward_spark.frames import Frames

_RANKED = (Severity.INFO, Severity.WARNING, Severity.CRITICAL)
_STILL, _FULL, _UNACKED = "still", "full", "unacked"
_WORDS = {
    _STILL: "nothing is delivered and nothing acknowledged",
    _FULL: "nothing is delivered, though some of what they hold is acknowledged",
    _UNACKED: "nothing is acknowledged of what is delivered",
}
_LAST = {
    _STILL: "last delivery or acknowledgement",
    _FULL: "last delivery",
    _UNACKED: "last acknowledgement",
}


def standing(frames: Frames, policy: SubscriptionStalledPolicy) -> DataFrame:
    """Subscriptions with consumers and due messages of which nothing is delivered, or nothing acknowledged.

    Those that are blocked for unacknowledged messages are left to the check for these.

    Returns:
        `topic`, `subscription`, `consumers`, `due`, `delayed_known`, `without_permits`, `fresh` (all its consumers
        have just come), `kind`, `since_seconds` (null: not known), `never` (not since it was loaded) and `rank`.
    """
    kind = F.when(F.col("ack_rate") > 0, _FULL).when(F.col("message_rate_out") > 0, _UNACKED).otherwise(_STILL)
    moves_not = F.expr("message_rate_out <= 0 or ack_rate <= 0")
    free = F.expr("not coalesce(blocked_on_unacked, false) and coalesce(consumers_blocked, 0) < consumers")
    enough = F.expr(f"consumers > 0 and backlog_messages >= {policy.minimum_backlog_messages}")
    suspects = subscriptions_of_users(frames.subscriptions.where(enough & moves_not & free)).select(
        "topic",
        "subscription",
        "consumers",
        "backlog_messages",
        F.coalesce("consumers_without_permits", F.lit(0)).alias("without_permits"),
        F.expr("coalesce(consumers_connected_recently >= consumers, false)").alias("fresh"),
        kind.alias("kind"),
    )
    due = with_due(frames.few(suspects), frames).where(F.col("due") >= policy.minimum_backlog_messages)
    return _with_since(due, frames).withColumn("rank", _rank(policy))


def _with_since(suspects: DataFrame, frames: Frames) -> DataFrame:
    """Adds `since_seconds` and `never`, as far as the topics were asked for their own statistics."""
    keys = ["topic", "subscription"]
    last = (
        frames.drilled.where("subscription is not null")
        .groupBy(*keys)
        .agg(F.max("last_consumed_milliseconds").alias("consumed"), F.max("last_acked_milliseconds").alias("acked"))
    )
    at = (
        F.when(F.col("kind") == _STILL, F.greatest("consumed", "acked"))
        .when(F.col("kind") == _FULL, F.col("consumed"))
        .otherwise(F.col("acked"))
    )
    now = int(frames.about.taken_at.timestamp())
    since = F.when(F.col("at") > 0, F.greatest(F.lit(now) - F.floor(F.col("at") / 1000), F.lit(0)))
    joined = suspects.join(F.broadcast(last), keys, "left").withColumn("at", at)
    return joined.select(
        *suspects.columns, since.alias("since_seconds"), F.coalesce(F.col("at") == 0, F.lit(False)).alias("never")
    )


def _rank(policy: SubscriptionStalledPolicy) -> Column:
    """Pauses of a minute are usual: applications that acknowledge in batches, at checkpoints, or have just started."""
    some = F.coalesce(F.col("since_seconds") >= 60 * policy.warning_minutes, F.lit(False))
    long = F.coalesce(F.col("since_seconds") >= 60 * policy.critical_minutes, F.lit(False))
    large = F.col("delayed_known") & (F.col("due") >= policy.critical_backlog_messages)
    still = F.col("kind") == _STILL
    suspicious = some | (still & F.col("since_seconds").isNull())
    return (
        F.when(F.col("fresh") | (F.col("kind") == _FULL), 0)
        .when(long | (still & suspicious & large), 2)
        .when(suspicious, 1)
        .otherwise(0)
    )


def _judge(frames: Frames, policy: Policy) -> Judgement:
    limits = policy.subscription_stalled
    suspects = standing(frames, limits)
    order = (F.desc("rank"), F.desc("due"), F.asc("topic"), F.asc("subscription"))
    rows, more = worst(suspects, *order)
    names = slowest(frames, rows)
    return Judgement(
        findings=tuple(_finding(row, slowest_words(names, row)) for row in rows),
        more=more,
        quiet=(
            f"No subscription with consumers and {limits.minimum_backlog_messages:,} or more due messages stands still."
        ),
        cannot_tell=None if rows else nothing_read(frames),
    )


def _finding(row: Row, consumers: str) -> Finding:
    figures = {
        "consumers": row["consumers"],
        "consumers_without_permits": row["without_permits"],
        "due_messages": row["due"],
    }
    if row["since_seconds"] is not None:
        figures["since_seconds"] = row["since_seconds"]
    return Finding(
        check_id=SUBSCRIPTION_STALLED.check_id,
        severity=_RANKED[row["rank"]],
        subject=subject_of(row),
        evidence=(
            f"Subscription {row['subscription']} of {row['topic']} has {row['due']:,} messages to deliver"
            f"{'' if row['delayed_known'] else ' (how many are delayed is not known)'}, but {_WORDS[row['kind']]}"
            f" ({_since(row)}); {_permits(row)}; {consumers}."
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


CHECK = Check(SUBSCRIPTION_STALLED, _judge)
