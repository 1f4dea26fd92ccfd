"""How much of a backlog is due: delayed messages count as backlog, and are not to be delivered yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from steward_spark.frames import Frames

DELAYED_SERIES = "pulsar_subscription_delayed"


def with_due(suspects: DataFrame, frames: Frames) -> DataFrame:
    """Adds what is due of `backlog_messages`.

    Of a series that rests at 0 only what does not rest is kept: a subscription without a sample has no delayed
    messages where its broker tells the series at all. What a subscription's own statistics say counts as well.

    Returns:
        The rows with `due` and `delayed_known`; where it is not known, all of the backlog counts as due.
    """
    keys = ["topic", "subscription"]
    series = frames.metrics.where(F.col("series") == DELAYED_SERIES)
    told = series.where("subscription is not null").select(*keys, F.col("value").cast("bigint").alias("delayed"))
    asked = frames.drilled.where("subscription is not null").select(*keys, F.col("delayed_messages").alias("delayed"))
    delayed = told.unionByName(asked).groupBy(*keys).agg(F.max("delayed").alias("delayed"))
    owners = frames.topics.select("topic", "broker")
    telling = series.select(F.col("source").alias("broker"), F.lit(True).alias("tells")).distinct()
    joined = suspects.join(delayed, keys, "left").join(owners, "topic", "left")
    known = F.col("delayed").isNotNull() | F.coalesce("tells", F.lit(False))
    due = F.greatest(F.col("backlog_messages") - F.coalesce("delayed", F.lit(0)), F.lit(0))
    with_tells = joined.join(F.broadcast(telling), "broker", "left")
    return with_tells.select(*suspects.columns, due.alias("due"), known.alias("delayed_known"))
