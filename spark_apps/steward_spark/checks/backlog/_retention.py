"""Retention in force beside quota and backlog, for namespaces and for the topics that are set apart from theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from steward_spark.checks.backlog._in_force import drilled_topics, own_json, under_policies
from steward_spark.checks.backlog._policies import NO_LIMIT, RETENTION, policies_of
from steward_spark.frames import few_once

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from steward_spark.frames import Frames

MIB = 1024**2
MINUTE = 60
UNBOUNDED = "retention_minutes < 0 and retention_megabytes < 0"


def retained(frames: Frames) -> DataFrame:
    """Ordinary loaded topics under the retention in force: their own as far as they were drilled, else the namespace's.

    Returns:
        `topic`, `namespace`, `storage_bytes`, `backlog_bytes`, `throughput_in_bytes`, `oldest_seconds` and
        `slowest_subscription` (null where not drilled or not known), `retention_minutes` and `retention_megabytes`.
    """
    columns = ("topic", "storage_bytes", "backlog_bytes", "throughput_in_bytes")
    own = _own_retention()
    others, drilled = (
        each.select(
            "namespace",
            *columns,
            "oldest_seconds",
            "slowest_subscription",
            F.coalesce(own["retentionTimeInMinutes"], "retention_minutes").alias("retention_minutes"),
            F.coalesce(own["retentionSizeInMB"], "retention_megabytes").alias("retention_megabytes"),
        )
        for each in under_policies(frames, *columns)
    )
    return others.unionByName(drilled)


@few_once
def compared(frames: Frames) -> DataFrame:
    """Quota beside retention: a row a namespace, and one a drilled topic that sets either itself.

    Returns:
        `subject`; `limit_bytes`, `limit_seconds`, `retention_minutes`, `retention_megabytes`; `bytes_by`, `seconds_by`
        and `retention_by`, who sets them: topic, namespace or default; `size_percent` and `time_percent`, the quota as
        a share of the retention, null where one of them has no limit.
    """
    policies = policies_of(frames)
    by_namespace = policies.select(
        F.col("namespace").alias("subject"),
        *_LIMITS,
        _by("bytes_own").alias("bytes_by"),
        _by("seconds_own").alias("seconds_by"),
        _by("retention_own").alias("retention_by"),
    )
    both = by_namespace.unionByName(_topics_set_apart(frames, policies))
    size = F.col("limit_bytes") * 100.0 / (F.col("retention_megabytes") * MIB)
    time = F.col("limit_seconds") * 100.0 / (F.col("retention_minutes") * MINUTE)
    return both.withColumn(
        "size_percent", F.when(F.expr("limit_bytes >= 0 and retention_megabytes > 0"), F.floor(size).cast("bigint"))
    ).withColumn(
        "time_percent", F.when(F.expr("limit_seconds > 0 and retention_minutes > 0"), F.floor(time).cast("bigint"))
    )


_LIMITS = ("limit_bytes", "limit_seconds", "retention_minutes", "retention_megabytes")


def _topics_set_apart(frames: Frames, policies: DataFrame) -> DataFrame:
    apart = _drilled(frames).where("topic_quota is not null or own is not null")
    joined = apart.join(F.broadcast(policies), "namespace")
    return joined.select(
        F.col("topic").alias("subject"),
        F.coalesce("topic_limit_bytes", F.lit(NO_LIMIT)).cast("bigint").alias("limit_bytes"),
        F.coalesce("topic_limit_seconds", F.lit(NO_LIMIT)).cast("bigint").alias("limit_seconds"),
        F.coalesce("own.retentionTimeInMinutes", "retention_minutes").alias("retention_minutes"),
        F.coalesce("own.retentionSizeInMB", "retention_megabytes").alias("retention_megabytes"),
        _topic_or("topic_quota.destination_storage", "bytes_own").alias("bytes_by"),
        _topic_or("topic_quota.message_age", "seconds_own").alias("seconds_by"),
        _topic_or("own", "retention_own").alias("retention_by"),
    )


def _drilled(frames: Frames) -> DataFrame:
    return drilled_topics(frames).withColumn("own", _own_retention())


def _own_retention() -> Column:
    return own_json("topic_retention_json", RETENTION)


def _by(own: str) -> Column:
    return F.when(F.col(own), "namespace").otherwise("default")


def _topic_or(topics_own: str, own: str) -> Column:
    return F.when(F.col(topics_own).isNotNull(), "topic").otherwise(_by(own))
