"""The quotas in force for each loaded topic, and how full they are.

A topic's own quota goes before its namespace's. It is known of drilled topics only; elsewhere the namespace's counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from steward_spark.checks.backlog._policies import NO_LIMIT, QUOTA_MAP, ordinary, policies_of
from steward_spark.frames import held_once

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from steward_spark.frames import Frames


@held_once
def drilled_topics(frames: Frames) -> DataFrame:
    """Drilled topics, one row each, of the row that each of their subscriptions has.

    Returns:
        `topic`, `namespace`, `topic_limit_bytes`, `topic_limit_seconds` (null: none), `oldest_seconds` (null: the
        broker does not know either), `slowest_subscription`, `delayed_messages` of all subscriptions, `topic_quota`
        and `topic_retention_json`.
    """
    rows = frames.drilled.groupBy("topic").agg(
        F.max("namespace").alias("namespace"),
        F.max("quota_limit_bytes").alias("topic_limit_bytes"),
        F.max("quota_limit_seconds").alias("topic_limit_seconds"),
        F.max("oldest_backlog_age_seconds").alias("oldest_seconds"),
        F.max("slowest_subscription").alias("slowest_subscription"),
        F.sum("delayed_messages").alias("delayed_messages"),
        F.max("topic_quota_json").alias("topic_quota_json"),
        F.max("topic_retention_json").alias("topic_retention_json"),
    )
    return rows.withColumn("topic_quota", own_json("topic_quota_json", QUOTA_MAP)).drop("topic_quota_json")


@held_once
def quotas_in_force(frames: Frames) -> DataFrame:
    """Ordinary loaded topics of namespaces whose policies are known.

    Returns:
        `topic`, `namespace`, `producers`, `backlog_bytes`; `drilled`, whether its own statistics were read, and of
        these `oldest_seconds`, `slowest_subscription` and `delayed_messages`; `limit_bytes`, `bytes_policy` and
        `limit_seconds`, `seconds_policy` as of `namespace_policies`; `bytes_percent` and `seconds_percent`, how full
        they are, null where there is no limit or the age is not known.
    """
    policies = policies_of(frames)
    drilled = drilled_topics(frames).withColumn("drilled", F.expr("true")).drop("namespace")
    topics = ordinary(frames.topics).select("topic", "namespace", "producers", "backlog_bytes")
    joined = topics.join(F.broadcast(policies), "namespace").join(F.broadcast(drilled), "topic", "left")
    in_force = joined.select(
        "topic",
        "namespace",
        "producers",
        "backlog_bytes",
        F.coalesce("drilled", F.expr("false")).alias("drilled"),
        "oldest_seconds",
        "slowest_subscription",
        "delayed_messages",
        _topics_or_namespaces("limit_bytes"),
        F.coalesce("topic_quota.destination_storage.policy", "bytes_policy").alias("bytes_policy"),
        _topics_or_namespaces("limit_seconds"),
        F.coalesce("topic_quota.message_age.policy", "seconds_policy").alias("seconds_policy"),
    )
    return in_force.withColumn("bytes_percent", _bytes_percent()).withColumn("seconds_percent", _seconds_percent())


def own_json(column: str, schema: str) -> Column:
    """What a topic sets itself, null where nothing: Spark makes a row of nulls of the `{}` that stands there."""
    return F.from_json(F.nullif(F.col(column), F.lit("{}")), schema)


def holds_producers(policy: str) -> Column:
    """Whether a column's policy shuts producers out; `producer_request_hold` and `producer_exception` both do."""
    return F.coalesce(F.col(policy).startswith("producer_"), F.expr("false"))


def _topics_or_namespaces(limit: str) -> Column:
    own = F.coalesce(f"topic_{limit}", F.lit(NO_LIMIT))
    return F.when(F.col("drilled"), own).otherwise(F.col(limit)).alias(limit)


def _bytes_percent() -> Column:
    """A limit of 0 is full at all times: the broker compares with `>=`."""
    limit = F.col("limit_bytes")
    share = F.floor(F.col("backlog_bytes") * 100.0 / limit).cast("bigint")
    return F.when(limit == 0, F.lit(100)).when(limit > 0, share)


def _seconds_percent() -> Column:
    limit = F.col("limit_seconds")
    return F.when(limit > 0, F.floor(F.col("oldest_seconds") * 100.0 / limit).cast("bigint"))
