"""Delayed messages that a time to live may delete before they are due, as it counts from publishing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from pulsar_steward.model.catalog.delayed import DELAYED_PAST_TTL
from pulsar_steward.model.finding import Finding, Severity
from steward_spark.checks.check import Check, Judgement
from steward_spark.checks.common.listing import worst
from steward_spark.checks.common.owners import of_topics
from steward_spark.checks.common.topics import namespace_of
from steward_spark.checks.common.words import duration
from steward_spark.checks.delayed._settings import numbers
from steward_spark.checks.delayed._waiting import backlog_ages, gap, tally, waiting

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

    from pulsar_steward.policy.checks.delayed import DelayedPastTtlPolicy
    from pulsar_steward.policy.schema import Policy
    from steward_spark.frames import Frames

_RANKED = (Severity.INFO, Severity.WARNING, Severity.CRITICAL)
_EATING, _EXPIRING, _OLD, _ALLOWED, _UNBOUNDED = "eating", "expiring", "old", "allowed", "unbounded"


def limits(frames: Frames) -> DataFrame:
    """The time to live and the longest delay of each namespace, its own or else the brokers' default.

    Returns:
        `namespace`, `ttl_seconds` (0: none; null: not known) and `longest_delay_seconds` (0: unbounded).
    """
    default_ttl = max(numbers(frames, "ttlDurationDefaultInSeconds").values(), default=None)
    default_delay = min(numbers(frames, "delayedDeliveryMaxDelayInMillis").values(), default=0)
    own_ttl = F.get_json_object("policies_json", "$.message_ttl_in_seconds").cast("bigint")
    own_delay = F.get_json_object("policies_json", "$.delayed_delivery_policies.maxDeliveryDelayInMillis")
    known = F.col("policies_json").isNotNull()
    longest = F.coalesce(own_delay.cast("bigint"), F.lit(default_delay).cast("bigint"))
    return frames.namespaces.select(
        "namespace",
        F.when(known, F.coalesce(own_ttl, F.lit(default_ttl).cast("bigint"))).alias("ttl_seconds"),
        F.floor(longest / 1000).cast("bigint").alias("longest_delay_seconds"),
    )


def endangered(frames: Frames, policy: DelayedPastTtlPolicy) -> DataFrame:
    """Namespaces whose delayed messages a time to live deletes, is about to delete, or might delete.

    Returns:
        `namespace`, `ttl_seconds`, `longest_delay_seconds`, `rank` (0 info to 2 critical), `subscriptions`,
        `delayed_messages`, and of the worst subscription `topic`, `subscription`, `why`, `delayed`, `expired_rate`
        and `age_seconds`.
    """
    bounded = F.broadcast(limits(frames).where("ttl_seconds > 0"))
    told = _with_namespaces(waiting(frames)).join(bounded, "namespace")
    # While a topic moves, two brokers tell it.
    each = told.groupBy("namespace", "ttl_seconds", "longest_delay_seconds", "topic", "subscription")
    under = frames.few(each.agg(F.max("delayed_messages").alias("delayed_messages")))
    cursors = of_topics(frames.subscriptions, under).groupBy("topic", "subscription")
    figures = cursors.agg(*(F.max(name).alias(name) for name in ("backlog_messages", "expired_rate")))
    described = under.join(figures, ["topic", "subscription"], "left").join(
        backlog_ages(frames, under), "topic", "left"
    )
    ttl, longest = F.col("ttl_seconds"), F.col("longest_delay_seconds")
    expiring = F.col("expired_rate") > 0
    mostly_delayed = F.col("delayed_messages") * 100 >= policy.critical_delayed_percent_of_backlog * F.col(
        "backlog_messages"
    )
    old = F.col("age_seconds") * 100 >= policy.warning_age_percent_of_ttl * ttl
    why = (
        F.when(expiring & mostly_delayed, _EATING)
        .when(expiring, _EXPIRING)
        .when(old, _OLD)
        .when(longest > ttl, _ALLOWED)
        .when(longest <= 0, _UNBOUNDED)
    )
    rank = F.when(F.col("why") == _EATING, 2).when(F.col("why") == _UNBOUNDED, 0).otherwise(1)
    found = described.withColumn("why", why).where("why is not null").withColumn("rank", rank)
    worst_of = F.max_by(
        F.struct(
            "topic", "subscription", "why", F.col("delayed_messages").alias("delayed"), "expired_rate", "age_seconds"
        ),
        F.struct("rank", "delayed_messages", "topic", "subscription"),
    )
    return (
        found.groupBy("namespace", "ttl_seconds", "longest_delay_seconds")
        .agg(
            F.max("rank").alias("rank"),
            F.count("*").alias("subscriptions"),
            F.sum("delayed_messages").alias("delayed_messages"),
            worst_of.alias("worst"),
        )
        .select(
            "namespace", "ttl_seconds", "longest_delay_seconds", "rank", "subscriptions", "delayed_messages", "worst.*"
        )
    )


def _with_namespaces(rows: DataFrame) -> DataFrame:
    return rows.withColumn("namespace", namespace_of("topic"))


def _judge(frames: Frames, policy: Policy) -> Judgement:
    found = endangered(frames, policy.delayed_past_ttl)
    rows, more = worst(found, F.desc("rank"), F.desc("delayed_messages"), F.asc("namespace"))
    if rows:
        return Judgement(findings=tuple(_finding(row) for row in rows), more=more)
    unknown = gap(frames) or _unknown_ttl(frames)
    if unknown:
        return Judgement(cannot_tell=unknown)
    subscriptions, messages = tally(frames)
    return Judgement(
        quiet=f"No time to live endangers the {messages:,} delayed messages of {subscriptions:,} subscriptions."
    )


def _unknown_ttl(frames: Frames) -> str | None:
    """Namespaces with delayed messages whose time to live cannot be known, in a sentence."""
    known = limits(frames).where("ttl_seconds is not null")
    there = _with_namespaces(waiting(frames)).select("namespace").distinct()
    blind = there.join(known, "namespace", "left_anti")
    first = blind.agg(F.count("*").alias("count"), F.min("namespace").alias("namespace")).collect()[0]
    if not first["count"]:
        return None
    return (
        f"The time to live of {first['count']:,} namespaces with delayed messages is not known, {first['namespace']}"
        " among them: neither its policies nor ttlDurationDefaultInSeconds were read."
    )


def _finding(row: Row) -> Finding:
    return Finding(
        check_id=DELAYED_PAST_TTL.check_id,
        severity=_RANKED[row["rank"]],
        subject=row["namespace"],
        evidence=(
            f"{row['delayed_messages']:,} delayed messages of {row['subscriptions']:,} subscriptions live under a time"
            f" to live of {duration(row['ttl_seconds'])} that counts from publishing; {_why(row)}."
        ),
        figures={
            "delayed_messages": row["delayed_messages"],
            "longest_delay_seconds": row["longest_delay_seconds"],
            "subscriptions": row["subscriptions"],
            "ttl_seconds": row["ttl_seconds"],
        },
    )


def _why(row: Row) -> str:
    where = f"subscription {row['subscription']} of {row['topic']} ({row['delayed']:,} delayed)"
    match row["why"]:
        case "eating":
            return (
                f"{where} expires {row['expired_rate']:,.1f} messages/s now, and nearly all of its backlog is delayed:"
                " messages are deleted before they are due"
            )
        case "expiring":
            return (
                f"{where} expires {row['expired_rate']:,.1f} messages/s now; its backlog is not only delayed messages,"
                " so it cannot be seen which of them expire"
            )
        case "old":
            return f"the oldest message in the backlog of {row['topic']} is {duration(row['age_seconds'])} old; {where}"
        case "allowed":
            return f"delays up to {duration(row['longest_delay_seconds'])} are allowed, as in {where}"
        case _:
            return f"nothing bounds the delay that a producer may ask for, as in {where}"


CHECK = Check(DELAYED_PAST_TTL, _judge)
