"""Figures over time, for reports to plot: this snapshot's own, beside what the snapshot before had recorded already.

So each figure is computed once, from the snapshot that shows it: of earlier snapshots one small table is read, and of
one of them the backlogs, to see which grow.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from pulsar_steward.model.measures import (
    BROKER_CONNECTION_RATE,
    BROKER_CONNECTIONS,
    BROKER_COORDINATORS,
    BROKER_TOPICS,
    CLUSTER_BACKLOG,
    CLUSTER_CONSUMERS,
    CLUSTER_PRODUCERS,
    CLUSTER_SUBSCRIPTIONS,
    CLUSTER_TOPICS,
    TOPIC_BACKLOG,
)
from pulsar_steward.model.tables import TRENDS
from steward_spark.checks.backlog._growth import grown_since, reference
from steward_spark.checks.clients._connections import connections
from steward_spark.checks.common.earlier import at, within

if TYPE_CHECKING:
    from pyspark.sql import Column

    from pulsar_steward.policy.schema import Policy
    from steward_spark.frames import Frames

LARGEST = 1000
"""Topics among which the fastest growing ones are looked for: those with the largest backlogs."""

FASTEST = 10
"""Topics whose backlog is recorded."""


def trends(frames: Frames, policy: Policy) -> DataFrame:
    """The table `trends` of a snapshot; nothing that grows with the topics is in it.

    Args:
        frames: The snapshot, and those before it.
        policy: How many snapshots are kept, and what growth is compared with.
    """
    limits = policy.for_cluster(frames.about.cluster)
    before = _recorded(frames, limits.trends.most_snapshots - 1)
    own = _cluster(frames).unionByName(_brokers(frames))
    topics = _growing_topics(frames, limits)
    if before is None:
        return _only(own if topics is None else own.unionByName(topics))
    carried = before.where(F.col("measure") != TOPIC_BACKLOG)
    parts = [own, _connection_rates(frames, own, before), carried]
    if topics is not None:
        # A topic that still grows keeps what was recorded of it; the point that growth starts from is known anew.
        again = topics.select("measure", "subject").distinct()
        known = before.join(again, ["measure", "subject"], "left_semi")
        parts += [topics, known.join(topics.select(*_KEY), _KEY, "left_anti")]
    return _only(reduce(DataFrame.unionByName, parts))


_KEY = ["measure", "subject", "taken_at"]


def _only(rows: DataFrame) -> DataFrame:
    return rows.where(F.col("value").isNotNull() & ~F.isnan("value")).select(*TRENDS.names)


def _recorded(frames: Frames, most: int) -> DataFrame | None:
    """What the newest earlier snapshot that has the table recorded, of the latest times only."""
    table = _newest(frames)
    if table is None:
        return None
    past = table.where(F.col("taken_at") < F.expr(at(frames)))
    latest = past.select("taken_at").distinct().orderBy(F.desc("taken_at")).limit(most)
    return past.join(latest, "taken_at", "left_semi")


def _newest(frames: Frames) -> DataFrame | None:
    for each in frames.earlier:
        try:
            return each.read(TRENDS)
        except AnalysisException as error:  # diagnosed by a version that recorded none
            if error.getCondition() != "PATH_NOT_FOUND":
                raise
    return None


def _cluster(frames: Frames) -> DataFrame:
    """Sums over all brokers, where all were read: a gap in a line is true, a dip would not be."""
    topics = frames.topics.agg(
        F.sum("backlog_bytes").cast("double").alias(CLUSTER_BACKLOG),
        F.count("*").cast("double").alias(CLUSTER_TOPICS),
        F.sum("producers").cast("double").alias(CLUSTER_PRODUCERS),
        F.sum("consumers").cast("double").alias(CLUSTER_CONSUMERS),
    )
    subscriptions = frames.subscriptions.agg(F.count("*").cast("double").alias(CLUSTER_SUBSCRIPTIONS))
    whole = frames.brokers.agg(F.every("read").alias("whole")).where("whole").drop("whole")
    sums = topics.crossJoin(subscriptions).crossJoin(whole)
    return _long(sums.withColumn("subject", F.lit(frames.about.cluster)), frames)


def _brokers(frames: Frames) -> DataFrame:
    held = frames.coordinators.where(F.col("broker").isNotNull()).groupBy("broker").agg(F.count("*").alias("held"))
    created = connections(frames).select("broker", F.col("succeeded").alias(BROKER_CONNECTIONS))
    read = frames.brokers.where("read").select("broker", F.col("topics").cast("double").alias(BROKER_TOPICS))
    joined = read.join(held, "broker", "left").join(created, "broker", "left")
    coordinators = F.coalesce("held", F.lit(0)) if frames.about.coordinators else F.lit(None)
    return _long(
        joined.withColumn(BROKER_COORDINATORS, coordinators.cast("double"))
        .drop("held")
        .withColumnRenamed("broker", "subject"),
        frames,
    )


def _long(wide: DataFrame, frames: Frames) -> DataFrame:
    """One row a figure, of a column a figure beside `subject`."""
    values = [name for name in wide.columns if name != "subject"]
    long = wide.unpivot("subject", list(values), "measure", "value")
    return long.withColumn("taken_at", F.expr(at(frames))).select(*TRENDS.names)


def _connection_rates(frames: Frames, own: DataFrame, before: DataFrame) -> DataFrame:
    """Connections accepted per second since the snapshot before, by brokers that ran all the time."""
    counted = before.where(F.col("measure") == BROKER_CONNECTIONS)
    last = counted.groupBy("subject").agg(
        F.max_by("value", "taken_at").alias("value_then"), F.max("taken_at").alias("then")
    )
    started = connections(frames).select(F.col("broker").alias("subject"), "uptime_seconds")
    both = own.where(F.col("measure") == BROKER_CONNECTIONS).join(last, "subject").join(started, "subject")
    timed = both.withColumn("seconds", (F.unix_micros("taken_at") - F.unix_micros("then")) / 1e6)
    ran = timed.where("uptime_seconds >= seconds and value >= value_then")
    rate = ((F.col("value") - F.col("value_then")) / F.col("seconds")).alias("value")
    return ran.select(F.lit(BROKER_CONNECTION_RATE).alias("measure"), "subject", "taken_at", rate)


def _growing_topics(frames: Frames, policy: Policy) -> DataFrame | None:
    """Backlogs of the topics that grew most lately, now and where that growth is counted from."""
    own = policy.backlog_growing
    before = reference(frames, within(frames, own.window_minutes), own)
    if before is None:
        return None
    largest = frames.topics.where("backlog_bytes > 0").orderBy(F.desc("backlog_bytes"), F.asc("topic")).limit(LARGEST)
    grown = grown_since(F.broadcast(largest.select("topic", "backlog_bytes")), frames, before)
    fastest = grown.orderBy(F.desc("recent_rate"), F.asc("topic")).limit(FASTEST)
    now, then = _point(F.expr(at(frames)), "backlog_bytes"), _point(F.expr(at(before)), "bytes_then")
    named = fastest.select(F.col("topic").alias("subject"), F.inline(F.array(now, then)))
    return named.withColumn("measure", F.lit(TOPIC_BACKLOG)).select(*TRENDS.names)


def _point(taken_at: Column, value: str) -> Column:
    return F.struct(taken_at.alias("taken_at"), F.col(value).cast("double").alias("value"))
