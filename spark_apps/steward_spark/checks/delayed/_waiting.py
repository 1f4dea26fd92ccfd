"""Messages that wait for their time, and whether the snapshot can tell of them at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from steward_spark.checks.common.owners import of_topics
from steward_spark.checks.common.samples import DELAYED, tellers
from steward_spark.checks.common.worst import named
from steward_spark.frames import derived_once, held_once

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from steward_spark.frames import Frames

DELAYED_SERIES = DELAYED
AGE_SERIES = "pulsar_storage_backlog_age_seconds"
INDEX_SERIES = "pulsar_delayed_message_index_size_bytes"

_OWN_TOPIC = r"^[a-z-]+://(pulsar/([^/]+/)?[^/]+:\d+/|[^/]+/[^/]+/__|[^/]+/[^/]+/[^/]+/__)"
_NAMESPACE = r"^[a-z-]+://((?:[^/]+/){1,2}[^/]+)/[^/]+$"


def of_users(topic: str) -> Column:
    """Whether a topic is neither a broker's heartbeat nor one of Pulsar's own."""
    name = F.col(topic)
    # Nearly all topics are told by the first, which is quick.
    return ~((name.contains("//pulsar/") | name.contains("/__")) & name.rlike(_OWN_TOPIC))


def namespace_of(topic: str) -> Column:
    """The namespace in a topic's full name."""
    return F.regexp_extract(topic, _NAMESPACE, 1)


@held_once
def waiting(frames: Frames) -> DataFrame:
    """Subscriptions that have delayed messages, by the metrics or by their topics' own statistics.

    A tracker knows what its dispatcher has read: the figures are lower bounds (an in-memory tracker stops reading at
    `delayedDeliveryFixedDelayDetectionLookahead` messages of one fixed delay).

    Returns:
        `topic`, `subscription` and `delayed_messages` (above 0), of topics of users only; the subscription's
        `backlog_messages`, `entries_since_first_gap` and `expired_rate`, the topic's `broker`, `storage_bytes` and
        `backlog_bytes`, null where they are not known; `namespace`.
    """
    counted = frames.metrics.where((F.col("series") == DELAYED_SERIES) & F.col("subscription").isNotNull()).select(
        "topic", "subscription", F.col("value").cast("bigint").alias("delayed_messages")
    )
    asked = frames.drilled.select("topic", "subscription", "delayed_messages")
    positive = counted.unionByName(asked).where((F.col("delayed_messages") > 0) & of_users("topic"))
    # Divided by topics once and for all: neither of the joins divides these rows again.
    by_topic = positive.repartition("topic").groupBy("topic", "subscription")
    delayed = by_topic.agg(F.max("delayed_messages").alias("delayed_messages"))
    cursors = frames.subscriptions.select(
        "topic", "subscription", "backlog_messages", "entries_since_first_gap", "expired_rate"
    )
    topics = frames.topics.select("topic", "broker", "storage_bytes", "backlog_bytes", "namespace")
    # There are fewer of them than of all subscriptions and topics, which hence need not be sorted.
    told = delayed.hint("shuffle_hash").join(cursors, ["topic", "subscription"], "left")
    joined = told.hint("shuffle_hash").join(topics, "topic", "left")
    return joined.withColumn("namespace", F.coalesce("namespace", namespace_of("topic")))


def delayed_messages(frames: Frames, *also: str) -> DataFrame:
    """`topic`, `subscription` and `delayed_messages` of `waiting`, each once: while a topic moves, two brokers tell it.

    Args:
        frames: The snapshot.
        also: Further columns of `waiting`, for each of whose values it counts.
    """
    each = waiting(frames).groupBy(*also, "topic", "subscription")
    return each.agg(F.max("delayed_messages").alias("delayed_messages"))


def backlog_ages(frames: Frames, rows: DataFrame) -> DataFrame:
    """How long the oldest message of some topics waits, as far as it is told: `topic`, `age_seconds`.

    Args:
        frames: The snapshot.
        rows: With the `topic`; few, as `Frames.few` gives them.
    """
    asked = frames.drilled.select("topic", F.col("oldest_backlog_age_seconds").alias("age_seconds"))
    told = frames.metrics.where(F.col("series") == AGE_SERIES).select("topic", F.col("value").cast("bigint"))
    both = of_topics(asked.union(told).where("topic is not null and age_seconds >= 0"), rows)
    return frames.few(both.groupBy("topic").agg(F.max("age_seconds").alias("age_seconds")))


@derived_once
def gap(frames: Frames) -> str | None:
    """Why silence about delayed messages means nothing, in a sentence; None where it means that there are none."""
    told = tellers(frames).where("source_kind = 'broker'")
    there = frames.brokers.where("read").select("broker")
    unmeasured = _without(there, told)
    if unmeasured:
        return f"Brokers whose Prometheus series were not read say nothing of delayed messages: {named(unmeasured)}."
    subscribed = frames.topics.where((F.col("subscriptions") > 0) & of_users("topic")).select("broker").distinct()
    silent = _without(subscribed, told.where("delayed"))
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


def tally(frames: Frames) -> tuple[int, int]:
    """Subscriptions that have delayed messages, and how many these are."""
    row = (
        delayed_messages(frames)
        .agg(F.count("*").alias("subscriptions"), F.sum("delayed_messages").alias("messages"))
        .collect()[0]
    )
    return row["subscriptions"], row["messages"] or 0
