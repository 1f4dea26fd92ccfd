"""Topics of a namespace that crowd in few of its bundles: a bundle is what a broker takes as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from pulsar_steward.model.catalog.placement import BUNDLE_TOPIC_SKEW
from pulsar_steward.model.finding import Finding, Severity
from steward_spark.checks.check import Check, Judgement

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row

    from pulsar_steward.policy.checks.placement import BundleTopicSkewPolicy
    from pulsar_steward.policy.schema import Policy
    from steward_spark.frames import Frames


def crowded(bundles: DataFrame, policy: BundleTopicSkewPolicy) -> DataFrame:
    """Namespaces whose fullest bundle is over a limit.

    What an unread broker may own counts for nothing. The mean is only looked at where every bundle is known, as it
    would be too low otherwise; a bundle that is too full for itself is so in any case.

    Returns:
        `namespace`, `bundles`, `topics`, `bundle` and `most`: the fullest bundle, of equals the lowest, and its topics.
    """
    fullest = F.max(F.struct(F.col("topics").alias("most"), _falling("bundle").alias("order"), "bundle"))
    by_namespace = bundles.groupBy("namespace").agg(
        F.count("*").alias("bundles"),
        F.sum("topics").alias("topics"),
        F.min("owner_known").alias("whole"),
        fullest.alias("fullest"),
    )
    flat = by_namespace.select("namespace", "bundles", "topics", "whole", "fullest.bundle", "fullest.most")
    over_mean = (
        F.col("whole")
        & (F.col("bundles") > 1)
        & (F.col("most") * F.col("bundles") >= policy.warning_times_mean * F.col("topics"))
    )
    over_limit = F.col("most") >= policy.warning_topics_per_bundle
    enough = F.col("topics") >= policy.minimum_topics
    return flat.where(enough & (over_mean | over_limit)).drop("whole")


def _falling(range_column: str) -> Column:
    """A number that is higher the lower a range begins, so that `max` takes the lowest of equals."""
    return -F.conv(F.substring(range_column, 3, 8), 16, 10).cast("bigint")


def _judge(frames: Frames, policy: Policy) -> Judgement:
    rows = crowded(frames.bundles, policy.bundle_topic_skew).collect()
    return Judgement(
        findings=tuple(_finding(row) for row in sorted(rows, key=lambda row: row["namespace"])),
        quiet="In no namespace do the topics crowd in few bundles.",
    )


def _finding(row: Row) -> Finding:
    mean = row["topics"] / row["bundles"]
    return Finding(
        check_id=BUNDLE_TOPIC_SKEW.check_id,
        severity=Severity.WARNING,
        subject=row["namespace"],
        evidence=(
            f"Bundle {row['bundle']} holds {row['most']:,} of {row['topics']:,} topics"
            f" in {row['bundles']:,} bundles; the mean is {mean:,.1f}."
        ),
        figures={"bundles": row["bundles"], "most_topics": row["most"], "topics": row["topics"]},
    )


CHECK = Check(BUNDLE_TOPIC_SKEW, _judge)
