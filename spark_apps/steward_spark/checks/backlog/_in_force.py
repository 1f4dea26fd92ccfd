"""The quotas in force for each loaded topic, and how full they are.

A topic's own quota goes before its namespace's. It is known of drilled topics only; elsewhere the namespace's counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from steward_spark.checks.backlog._policies import NO_LIMIT, QUOTA_MAP, policies_of
from steward_spark.checks.common.topics import of_users
from steward_spark.frames import few_once

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from steward_spark.frames import Frames


@few_once
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


@few_once
def loaded_drilled(frames: Frames) -> DataFrame:
    """Ordinary loaded topics that were drilled: the columns of `topics`, and those of `drilled_topics`."""
    own = drilled_topics(frames).drop("namespace").withColumn("drilled", F.expr("true"))
    return of_users(frames.topics).join(F.broadcast(own), "topic")


def under_policies(frames: Frames, *columns: str) -> list[DataFrame]:
    """Ordinary loaded topics of namespaces whose policies are known: those that were drilled, and all others.

    Apart, as only few topics have limits of their own: those of all others follow from their namespace, and where no
    namespace has any that matters, Spark knows so without looking at a topic.

    Args:
        frames: The snapshot.
        columns: Of the table `topics`, the name among them.

    Returns:
        Frames with these columns, and those of `loaded_drilled` (null where not drilled) and `policies_of`.
    """
    own, policies = loaded_drilled(frames), F.broadcast(policies_of(frames))
    fields = [field for field in own.schema if field.name not in frames.topics.columns]
    blank = (F.lit(None).cast(field.dataType).alias(field.name) for field in fields)
    wanted = of_users(frames.topics).select("namespace", *columns)
    others = wanted.join(F.broadcast(own.select("topic")), "topic", "left_anti").select("*", *blank)
    both = (others, own.select("namespace", *columns, *(field.name for field in fields)))
    return [each.join(policies, "namespace") for each in both]


def quotas_in_force(frames: Frames) -> DataFrame:
    """Ordinary loaded topics of namespaces whose policies are known.

    Returns:
        `topic`, `namespace`, `producers`, `backlog_bytes`; `drilled`, whether its own statistics were read, and of
        these `oldest_seconds`, `slowest_subscription` and `delayed_messages`; `limit_bytes`, `bytes_policy` and
        `limit_seconds`, `seconds_policy` as of `namespace_policies`; `bytes_percent` and `seconds_percent`, how full
        they are, null where there is no limit or the age is not known.
    """
    others, drilled = map(_in_force, under_policies(frames, "topic", "producers", "backlog_bytes"))
    return others.unionByName(drilled)


@few_once
def pressed(frames: Frames) -> DataFrame:
    """The rows of `quotas_in_force` whose backlog takes any of a quota: 1 % or more."""
    return quotas_in_force(frames).where(F.greatest("bytes_percent", "seconds_percent") >= 1)


def _in_force(topics: DataFrame) -> DataFrame:
    in_force = topics.select(
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
