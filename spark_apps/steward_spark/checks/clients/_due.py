"""How much of a backlog is due: delayed messages count as backlog, and are not to be delivered yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from steward_spark.checks.common.owners import of_topics, with_owners
from steward_spark.checks.common.samples import DELAYED, tellers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from steward_spark.frames import Frames


def with_due(suspects: DataFrame, frames: Frames) -> DataFrame:
    """Adds what is due of `backlog_messages`.

    Of a series that rests at 0 only what does not rest is kept: a subscription without a sample has no delayed
    messages where its broker tells the series at all. What a subscription's own statistics say counts as well.

    Args:
        suspects: Few, as `Frames.few` gives them.
        frames: The snapshot.

    Returns:
        The rows with `due` and `delayed_known`; where it is not known, all of the backlog counts as due.
    """
    keys = ["topic", "subscription"]
    series = frames.metrics.where((F.col("series") == DELAYED) & F.col("subscription").isNotNull())
    told = of_topics(series, suspects).select(*keys, F.col("value").cast("bigint").alias("delayed"))
    asked = frames.drilled.where("subscription is not null").select(*keys, F.col("delayed_messages").alias("delayed"))
    delayed = frames.few(told.unionByName(asked).groupBy(*keys).agg(F.max("delayed").alias("delayed")))
    telling = tellers(frames).where("delayed").select(F.col("source").alias("broker"), F.lit(True).alias("tells"))
    joined = with_owners(suspects, frames).join(delayed, keys, "left")
    known = F.col("delayed").isNotNull() | F.coalesce("tells", F.lit(False))
    due = F.greatest(F.col("backlog_messages") - F.coalesce("delayed", F.lit(0)), F.lit(0))
    with_tells = joined.join(F.broadcast(telling.distinct()), "broker", "left")
    return with_tells.select(*suspects.columns, due.alias("due"), known.alias("delayed_known"))
