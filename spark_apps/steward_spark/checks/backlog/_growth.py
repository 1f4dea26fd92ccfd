"""How the backlog of topics grew over the snapshots of a window, steadily or not.

Two passes, as a million topics have a dozen backlogs each: topics that grew fast enough lately are found with one
earlier snapshot; only these few are looked up in all of them.
"""

from __future__ import annotations

from datetime import timedelta
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from steward_spark.checks.common.earlier import at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsar_steward.policy.checks.backlog import BacklogGrowingPolicy
    from steward_spark.frames import Frames


def reference(frames: Frames, earlier: Sequence[Frames], policy: BacklogGrowingPolicy) -> Frames | None:
    """The snapshot that shows what grew lately: the newest that is far enough back, and whole if one of them is.

    Args:
        frames: This snapshot.
        earlier: Those of the window, the newest first.
        policy: How many snapshots and minutes are far enough.

    Returns:
        None where none is.
    """
    latest = frames.about.taken_at - timedelta(minutes=policy.minimum_minutes)
    far = [each for each in earlier[policy.minimum_snapshots - 2 :] if each.about.taken_at <= latest]
    return next((each for each in far if not each.about.unread), far[0] if far else None)


def grown_since(topics: DataFrame, now: Frames, before: Frames) -> DataFrame:
    """Those of the topics whose backlog is larger than in an earlier snapshot that has them too.

    Returns:
        The same columns, `bytes_then`, and `recent_rate`: bytes per second since then.
    """
    then = before.topics.select("topic", F.col("backlog_bytes").alias("bytes_then"))
    seconds = (now.about.taken_at - before.about.taken_at).total_seconds()
    rate = (F.col("backlog_bytes") - F.col("bytes_then")) / seconds
    both = topics.join(then, "topic").where("backlog_bytes > bytes_then")
    return both.withColumn("recent_rate", rate)


def rises(snapshots: Sequence[Frames], topics: Sequence[str]) -> DataFrame:
    """The latest rise of each topic's backlog: from where it last was lowest within the window until now.

    Snapshots that do not have a topic, as it was not loaded or its broker was not read, are passed over.

    Args:
        snapshots: This one and the earlier ones of the window.
        topics: A bounded number of names.

    Returns:
        `topic`; `low_bytes` and `low_at`; `now_bytes` and `now_at`; `snapshots` since the low, it included, and
        `rising`, the steps between them that rose; `rate`: bytes per second, the mean since the low or the median of
        its steps, whichever is lower; `shrunk_bytes`: the sum of all falls within the window.
    """
    points = _points(snapshots, topics)
    low = F.min(F.struct("bytes", (-F.unix_micros("at")).alias("latest"), "at")).alias("low")
    lowest = points.groupBy("topic").agg(low)
    order = "partition by topic order by at"
    steps = points.selectExpr(
        "*",
        f"bytes - lag(bytes) over ({order}) as change",
        f"(unix_micros(at) - unix_micros(lag(at) over ({order}))) / 1e6 as seconds",
    )
    return _summed(steps.join(lowest, "topic").withColumn("since", F.expr("at > low.at")))


def _summed(steps: DataFrame) -> DataFrame:
    sums = steps.groupBy("topic", "low").agg(
        F.expr("max_by(bytes, at)").alias("now_bytes"),
        F.max("at").alias("now_at"),
        F.expr("count_if(since) + 1").alias("snapshots"),
        F.expr("count_if(since and change > 0)").alias("rising"),
        F.expr("sum(change) filter (where since) / sum(seconds) filter (where since)").alias("mean_rate"),
        F.expr("median(change / seconds) filter (where since)").alias("median_rate"),
        F.expr("coalesce(-sum(change) filter (where change < 0), 0)").alias("shrunk_bytes"),
    )
    return sums.select(
        "topic",
        F.col("low.bytes").alias("low_bytes"),
        F.col("low.at").alias("low_at"),
        "now_bytes",
        "now_at",
        "snapshots",
        "rising",
        F.least("mean_rate", "median_rate").alias("rate"),
        "shrunk_bytes",
    )


def _points(snapshots: Sequence[Frames], topics: Sequence[str]) -> DataFrame:
    each = (
        frames.topics.where(F.col("topic").isin(list(topics)) & F.col("backlog_bytes").isNotNull()).select(
            "topic", F.col("backlog_bytes").alias("bytes"), F.expr(at(frames)).alias("at")
        )
        for frames in snapshots
    )
    return reduce(DataFrame.unionByName, each)
