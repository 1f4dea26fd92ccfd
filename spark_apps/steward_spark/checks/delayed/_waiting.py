"""Messages that wait for their time, and whether the snapshot can tell of them at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from steward_spark.checks.common.owners import of_topics, with_owners
from steward_spark.checks.common.samples import DELAYED, tellers
from steward_spark.checks.common.topics import of_users
from steward_spark.checks.common.worst import named
from steward_spark.frames import derived_once, held_once

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from steward_spark.frames import Frames

DELAYED_SERIES = DELAYED
AGE_SERIES = "pulsar_storage_backlog_age_seconds"
INDEX_SERIES = "pulsar_delayed_message_index_size_bytes"


@held_once
def waiting(frames: Frames) -> DataFrame:
    """Subscriptions that have delayed messages, by the metrics or by their topics' own statistics.

    A tracker knows what its dispatcher has read: the figures are lower bounds (an in-memory tracker stops reading at
    `delayedDeliveryFixedDelayDetectionLookahead` messages of one fixed delay).

    Returns:
        `topic`, `subscription`, `broker` (null where it is not known) and `delayed_messages` (above 0), of topics of
        users only.
    """
    told = frames.metrics.where((F.col("series") == DELAYED_SERIES) & F.col("subscription").isNotNull())
    counted = told.select(
        "topic", "subscription", F.col("value").cast("bigint").alias("delayed_messages"), told["source"].alias("broker")
    )
    asked = frames.drilled.where("delayed_messages > 0").select("topic", "subscription", "delayed_messages")
    both = counted.where("delayed_messages > 0").unionByName(with_owners(frames.few(asked), frames))
    # Divided by topics once and for all: whatever counts them by topics or subscriptions does not divide them again.
    by_topic = of_users(both).repartition("topic").groupBy("topic", "subscription", "broker")
    return by_topic.agg(F.max("delayed_messages").alias("delayed_messages"))


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
    subscribed = of_users(frames.topics.where("subscriptions > 0")).select("broker").distinct()
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
