"""Bundles' owners over the snapshots of a window, and the moves between them that no restart explains."""

from __future__ import annotations

from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from steward_spark.checks.common.earlier import at
from steward_spark.checks.placement.hot_bundle import HEARTBEAT

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import Column

    from steward_spark.frames import Frames

STARTED = "process_start_time_seconds"

_BUNDLE = ("namespace", "bundle")
_IN_ORDER = "(partition by namespace, bundle order by at)"


def owners(snapshots: Sequence[Frames]) -> DataFrame:
    """Who owned each bundle when; snapshots in which nobody did, or nobody knows who, are passed over.

    Returns:
        `namespace`, `bundle`, `owner` and `at`, of bundles that had more than one owner only.
    """
    points = _united(_owned(each).select(*_BUNDLE, "owner", _at(each)) for each in snapshots)
    # Cheap, as it leaves one row a bundle before anything is shuffled; hardly any bundle remains.
    moved = points.groupBy(*_BUNDLE).agg(F.min("owner").alias("one"), F.max("owner").alias("other"))
    return points.join(moved.where("one != other").select(*_BUNDLE), [*_BUNDLE])


def away(snapshots: Sequence[Frames]) -> DataFrame:
    """Brokers that were away at some time since the snapshot before: restarted, or not listed, or not read.

    A broker whose start is not known counts as away when it has no bundle left.

    Args:
        snapshots: The oldest first, at least two.

    Returns:
        `broker`, and `gone_at`: the times of all snapshots that show it.
    """
    steps = F.array(
        *(
            F.struct(F.lit(before.about.taken_at.timestamp()).alias("before_seconds"), _at(after))
            for before, after in pairwise(snapshots)
        )
    )
    listed = _united(each.brokers.select("broker", "read", _at(each)) for each in snapshots)
    there = listed.where("read").withColumn("there", F.expr("true")).drop("read")
    holding = _united(_owned(each).select(F.col("owner").alias("broker"), _at(each)).distinct() for each in snapshots)
    grid = listed.select("broker").distinct().select("broker", F.inline(steps))
    told = (
        grid.join(there, ["broker", "at"], "left")
        .join(_united(_started(each) for each in snapshots), ["broker", "at"], "left")
        .join(holding.withColumn("holds", F.expr("true")), ["broker", "at"], "left")
    )
    gone = F.col("there").isNull() | F.coalesce(F.col("started") > F.col("before_seconds"), F.col("holds").isNull())
    return told.where(gone).groupBy("broker").agg(F.collect_set("at").alias("gone_at"))


def _owned(frames: Frames) -> DataFrame:
    return frames.bundles.where(F.col("owner").isNotNull() & ~F.col("namespace").rlike(HEARTBEAT))


def _started(frames: Frames) -> DataFrame:
    told = frames.metrics.where((F.col("source_kind") == "broker") & (F.col("series") == STARTED))
    by_broker = told.groupBy(F.col("source").alias("broker")).agg(F.max("value").alias("started"))
    return by_broker.select("broker", "started", _at(frames))


def _at(frames: Frames) -> Column:
    return F.expr(at(frames)).alias("at")


def _united(each: Iterable[DataFrame]) -> DataFrame:
    return reduce(DataFrame.unionByName, each)


def moves(points: DataFrame, away: DataFrame | None = None) -> DataFrame:
    """The moves of each bundle that no restart explains, and what they weigh: a move straight back weighs two.

    Args:
        points: Columns of `owners`.
        away: Columns of `away`; None: nothing is explained, which no weight is below.

    Returns:
        `namespace`, `bundle`, `moves`, `returns` (of them, straight back), `weight`, `explained` (further moves, away
        from brokers that were away), and `owners`: an array of `at` and `owner`, each owner once a stay.
    """
    steps = points.selectExpr("*", f"lag(owner) over {_IN_ORDER} as source", f"lag(at) over {_IN_ORDER} as left_after")
    stays = steps.where("source is null or source != owner").withColumn("moved", F.col("source").isNotNull())
    back = f"lag(source) over {_IN_ORDER} = owner and not restart and not lag(restart) over {_IN_ORDER}"
    told = _explained(stays, away).withColumn("back", F.coalesce(F.expr(back), F.expr("false")))
    sums = told.groupBy(*_BUNDLE).agg(
        F.expr("count_if(moved and not restart)").alias("moves"),
        F.expr("count_if(back)").alias("returns"),
        F.expr("count_if(restart)").alias("explained"),
        F.array_sort(F.collect_list(F.struct("at", "owner"))).alias("owners"),
    )
    return sums.withColumn("weight", F.expr("moves + returns"))


def _explained(stays: DataFrame, away: DataFrame | None) -> DataFrame:
    """Adds `restart`: whether the owner before was away when the bundle left it."""
    if away is None:
        return stays.withColumn("restart", F.expr("false"))
    joined = stays.join(away.withColumnRenamed("broker", "source"), "source", "left")
    gone = "moved and exists(coalesce(gone_at, array()), t -> t > left_after and t <= at)"
    return joined.withColumn("restart", F.expr(gone))
