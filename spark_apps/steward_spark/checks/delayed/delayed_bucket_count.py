"""Subscriptions whose bucket tracker has about as many buckets as it may, or far too many where nothing limits them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from pulsar_steward.model.catalog.delayed import DELAYED_BUCKET_COUNT
from pulsar_steward.model.finding import Finding, Severity
from steward_spark.checks.check import Check, Judgement
from steward_spark.checks.common.listing import worst
from steward_spark.checks.common.topics import of_users
from steward_spark.checks.delayed._settings import BUCKET_TRACKER, smallest_limit, trackers
from steward_spark.checks.delayed._waiting import delayed_messages, gap

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row

    from pulsar_steward.policy.checks.delayed import DelayedBucketCountPolicy
    from pulsar_steward.policy.schema import Policy
    from steward_spark.frames import Frames

BUCKET_SERIES = "pulsar_delayed_message_index_bucket_total"
LIMIT_KEY = "delayedDeliveryMaxNumBuckets"


def buckets(frames: Frames) -> DataFrame:
    """Sealed buckets by subscription, as the metrics, the topic's statistics or the cursor's properties tell them.

    The series counts the bucket that is being filled too (seen in the broker: sealed ones + 1), which has no ledger;
    so does `drilled.delayed_buckets`, which is taken from it.

    Returns:
        `topic`, `subscription`, `buckets`; topics of users only.
    """
    counted = frames.metrics.where((F.col("series") == BUCKET_SERIES) & F.col("subscription").isNotNull()).select(
        "topic", "subscription", _sealed(F.col("value").cast("int")).alias("buckets")
    )
    keys = F.size(
        F.regexp_extract_all("cursor_properties_json", F.lit(r"(#pulsar\.internal\.delayed\.bucket)"), F.lit(1))
    )
    in_properties = F.when(F.col("cursor_properties_json").isNotNull(), keys)
    sealed = F.when(F.col("delayed_buckets").isNotNull(), _sealed(F.col("delayed_buckets")))
    asked = frames.drilled.select("topic", "subscription", F.coalesce(sealed, in_properties).alias("buckets"))
    told = of_users(counted.unionByName(asked).where("buckets is not null"))
    return told.groupBy("topic", "subscription").agg(F.max("buckets").alias("buckets"))


def _sealed(told: Column) -> Column:
    """Without the one that is being filled."""
    return F.greatest(told - 1, F.lit(0))


def crowded(counts: DataFrame, warning_buckets: int) -> DataFrame:
    """Topics with a subscription of that many: `topic`, `subscriptions`, `subscription` with most `buckets`."""
    over = counts.where(F.col("buckets") >= warning_buckets).groupBy("topic")
    return over.agg(
        F.count("*").alias("subscriptions"),
        F.max_by("subscription", F.struct("buckets", "subscription")).alias("subscription"),
        F.max("buckets").alias("buckets"),
    )


def _thresholds(limit: int | None, policy: DelayedBucketCountPolicy) -> tuple[int, int]:
    if limit is None:
        return policy.warning_buckets_unlimited, policy.critical_buckets_unlimited
    return -(-limit * policy.warning_percent_of_limit // 100), -(-limit * policy.critical_percent_of_limit // 100)


def _judge(frames: Frames, policy: Policy) -> Judgement:
    limit = smallest_limit(frames, LIMIT_KEY)
    warning, critical = _thresholds(limit, policy.delayed_bucket_count)
    counts = frames.few(buckets(frames))
    rows, more = worst(crowded(counts, warning), F.desc("buckets"), F.asc("topic"))
    if rows:
        return Judgement(findings=tuple(_finding(row, limit, critical) for row in rows), more=more)
    tracker_of = trackers(frames)
    unread = frames.brokers.where(F.col("read")).select("broker").collect()
    if (
        tracker_of
        and not any(row["broker"] not in tracker_of for row in unread)
        and BUCKET_TRACKER not in tracker_of.values()
    ):
        return Judgement(quiet="No broker uses the bucket tracker.")
    unknown = gap(frames) or _uncounted(frames, counts)
    if unknown:
        return Judgement(cannot_tell=unknown)
    most = counts.agg(F.max("buckets").alias("most")).collect()[0]["most"] or 0
    return Judgement(quiet=f"No subscription has more than {most:,} buckets; {_limit(limit)}.")


def _uncounted(frames: Frames, counts: DataFrame) -> str | None:
    blind = delayed_messages(frames).join(counts, ["topic", "subscription"], "left_anti").count()
    if not blind:
        return None
    return (
        f"The buckets of {blind:,} subscriptions with delayed messages are told neither by {BUCKET_SERIES} nor by the"
        " properties of their cursors: they may be kept by the in-memory tracker."
    )


def _limit(limit: int | None) -> str:
    return f"{LIMIT_KEY} sets no limit" if limit is None else f"{LIMIT_KEY} is {limit:,}"


def _finding(row: Row, limit: int | None, critical: int) -> Finding:
    others = f" ({row['subscriptions'] - 1:,} more subscriptions of the topic are near it)" * (row["subscriptions"] > 1)
    if limit is None:
        effect = "no bucket is ever merged, and each takes a ledger and a property of the cursor in the metadata store"
    elif row["buckets"] > limit:
        effect = "merging does not keep up"
    else:
        effect = "beyond it buckets are merged, which reads and writes them again"
    return Finding(
        check_id=DELAYED_BUCKET_COUNT.check_id,
        severity=Severity.CRITICAL if row["buckets"] >= critical else Severity.WARNING,
        subject=row["topic"],
        evidence=(
            f"Subscription {row['subscription']} has {row['buckets']:,} sealed buckets of delayed messages{others};"
            f" {_limit(limit)}: {effect}."
        ),
        figures={"buckets": row["buckets"], "subscriptions": row["subscriptions"]}
        | ({} if limit is None else {"limit_buckets": limit}),
    )


CHECK = Check(DELAYED_BUCKET_COUNT, _judge)
