"""Bundles outside the brokers that isolation policies leave to them, and namespaces that cannot use all theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from pulsar_steward.policy.checks.delayed import ClusterPlacementPolicy
    from steward_spark.frames import Frames

_HEARTBEAT = r"^pulsar/([^/]+/)?[^/]+:\d+$"


def misplaced(frames: Frames) -> tuple[DataFrame, Column, Column]:
    """Namespaces with bundles on brokers that they may not be on.

    Returns:
        `namespace`, `allowed_brokers`, `outside` (bundles), the lowest such `bundle` and its `owner`; then the order.
    """
    isolated = frames.namespaces.where("allowed_brokers is not null").select("namespace", "allowed_brokers")
    owned = frames.bundles.where("owner is not null").select("namespace", "bundle", "owner")
    outside = owned.join(isolated, "namespace").where(~F.array_contains("allowed_brokers", F.col("owner")))
    counted = outside.groupBy("namespace", "allowed_brokers").agg(
        F.count("*").alias("outside"), F.min(F.struct("bundle", "owner")).alias("first")
    )
    return counted.select("namespace", "allowed_brokers", "outside", "first.*"), F.desc("outside"), F.asc("namespace")


def few_bundles(frames: Frames, policy: ClusterPlacementPolicy, brokers: int) -> tuple[DataFrame, Column, Column]:
    """Namespaces of many topics with fewer bundles than brokers.

    Returns:
        `namespace`, `topics`, `bundles` and `room`, the brokers that it may be on; then the order.
    """
    sums = frames.bundles.groupBy("namespace").agg(F.sum("topics").alias("topics"))
    room = F.when(F.col("allowed_brokers").isNull(), brokers).otherwise(F.size("allowed_brokers"))
    all_of = frames.namespaces.where(~F.col("namespace").rlike(_HEARTBEAT)).select(
        "namespace", "bundles", room.alias("room")
    )
    many = all_of.join(sums, "namespace").where(F.col("topics") >= policy.minimum_topics_per_namespace)
    cramped = many.where(F.col("bundles") < F.col("room"))
    return cramped.select("namespace", "topics", "bundles", "room"), F.desc("topics"), F.asc("namespace")
