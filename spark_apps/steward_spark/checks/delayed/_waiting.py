"""Messages that wait for their time, and whether the snapshot can tell of them at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from steward_spark.checks.common.worst import named
from steward_spark.frames import derived_once, held_once

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from steward_spark.frames import Frames

DELAYED_SERIES = "pulsar_subscription_delayed"
AGE_SERIES = "pulsar_storage_backlog_age_seconds"
INDEX_SERIES = "pulsar_delayed_message_index_size_bytes"

_OWN_TOPIC = r"^[a-z-]+://(pulsar/([^/]+/)?[^/]+:\d+/|[^/]+/[^/]+/__|[^/]+/[^/]+/[^/]+/__)"
_NAMESPACE = r"^[a-z-]+://((?:[^/]+/){1,2}[^/]+)/[^/]+$"


def of_users(topic: str) -> Column:
    """Whether a topic is neither a broker's heartbeat nor one of Pulsar's own."""
    return ~F.col(topic).rlike(_OWN_TOPIC)


def namespace_of(topic: str) -> Column:
    """The namespace in a topic's full name."""
    return F.regexp_extract(topic, _NAMESPACE, 1)


@held_once
def waiting(frames: Frames) -> DataFrame:
    """Subscriptions that have delayed messages, by the metrics or by their topics' own statistics.

    A tracker knows what its dispatcher has read: the figures are lower bounds (an in-memory tracker stops reading at
    `delayedDeliveryFixedDelayDetectionLookahead` messages of one fixed delay).

    Returns:
        `topic`, `subscription` and `delayed_messages` (above 0); topics of users only.
    """
    counted = frames.metrics.where((F.col("series") == DELAYED_SERIES) & F.col("subscription").isNotNull()).select(
        "topic", "subscription", F.col("value").cast("bigint").alias("delayed_messages")
    )
    asked = frames.drilled.select("topic", "subscription", "delayed_messages")
    positive = counted.unionByName(asked).where((F.col("delayed_messages") > 0) & of_users("topic"))
    return positive.groupBy("topic", "subscription").agg(F.max("delayed_messages").alias("delayed_messages"))


@held_once
def backlog_ages(frames: Frames) -> DataFrame:
    """How long each topic's oldest message waits, as far as it is told: `topic`, `age_seconds`."""
    asked = frames.drilled.select("topic", F.col("oldest_backlog_age_seconds").alias("age_seconds"))
    told = frames.metrics.where(F.col("series") == AGE_SERIES).select("topic", F.col("value").cast("bigint"))
    both = asked.union(told).where("topic is not null and age_seconds >= 0")
    return both.groupBy("topic").agg(F.max("age_seconds").alias("age_seconds"))


@derived_once
def gap(frames: Frames) -> str | None:
    """Why silence about delayed messages means nothing, in a sentence; None where it means that there are none."""
    told = frames.metrics.where("source_kind = 'broker'")
    there = frames.brokers.where("read").select("broker")
    unmeasured = _without(there, told)
    if unmeasured:
        return f"Brokers whose Prometheus series were not read say nothing of delayed messages: {named(unmeasured)}."
    subscribed = frames.topics.where((F.col("subscriptions") > 0) & of_users("topic")).select("broker").distinct()
    silent = _without(subscribed, told.where(F.col("series") == DELAYED_SERIES))
    if silent:
        return (
            f"Brokers do not tell {DELAYED_SERIES}, though they have subscriptions"
            f" (exposeTopicLevelMetricsInPrometheus may be off): {named(silent)}."
        )
    return None


def _without(brokers: DataFrame, samples: DataFrame) -> list[str]:
    """Those brokers that gave none of these samples, in order."""
    sources = samples.select("source").distinct()
    missing = brokers.join(sources, F.col("broker") == F.col("source"), "left_anti")
    return [row["broker"] for row in missing.orderBy("broker").collect()]


def tally(frame: DataFrame) -> tuple[int, int]:
    """Subscriptions in what `waiting` gives, and their delayed messages."""
    row = frame.agg(F.count("*").alias("subscriptions"), F.sum("delayed_messages").alias("messages")).collect()[0]
    return row["subscriptions"], row["messages"] or 0
