"""Topics whose delayed messages are indexed once for each subscription: the cost is multiplied by these."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from pulsar_steward.model.catalog.delayed import DELAYED_INDEX_MULTIPLIED
from pulsar_steward.model.finding import Finding, Severity
from steward_spark.checks.check import Check, Judgement
from steward_spark.checks.common.listing import worst
from steward_spark.checks.common.owners import of_topics
from steward_spark.checks.common.words import size
from steward_spark.checks.delayed._waiting import delayed_messages, gap, tally

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

    from pulsar_steward.policy.checks.delayed import DelayedIndexMultipliedPolicy
    from pulsar_steward.policy.schema import Policy
    from steward_spark.frames import Frames


def multiplied(frames: Frames, policy: DelayedIndexMultipliedPolicy) -> DataFrame:
    """Topics whose subscriptions index many messages more than the fullest of them alone.

    Args:
        frames: The snapshot.
        policy: The thresholds.

    Returns:
        `topic`, `subscriptions`, `entries` (of all), `most` (of the fullest, `subscription`) and `extra`.
    """
    delayed = delayed_messages(frames)
    by_topic = delayed.groupBy("topic").agg(
        F.count("*").alias("subscriptions"),
        F.sum("delayed_messages").alias("entries"),
        F.max("delayed_messages").alias("most"),
    )
    extra = by_topic.withColumn("extra", F.col("entries") - F.col("most"))
    enough = F.col("subscriptions") >= policy.minimum_subscriptions
    found = frames.few(extra.where(enough & (F.col("extra") >= policy.warning_extra_index_entries)))
    # Names are only looked at where there is something to say: to find the greatest by one, Spark sorts all topics.
    fullest = F.max_by("subscription", F.struct("delayed_messages", "subscription")).alias("subscription")
    return of_topics(delayed, found).groupBy("topic").agg(fullest).join(found, "topic")


def _judge(frames: Frames, policy: Policy) -> Judgement:
    rows, more = worst(multiplied(frames, policy.delayed_index_multiplied), F.desc("extra"), F.asc("topic"))
    if rows:
        per_entry = policy.delayed_index_memory.index_bytes_per_message
        findings = tuple(_finding(row, policy.delayed_index_multiplied, per_entry) for row in rows)
        return Judgement(findings=findings, more=more)
    unknown = gap(frames)
    if unknown:
        return Judgement(cannot_tell=unknown)
    subscriptions, messages = tally(frames)
    return Judgement(
        quiet=f"No topic repeats many of the {messages:,} index entries of {subscriptions:,} subscriptions."
    )


def _finding(row: Row, policy: DelayedIndexMultipliedPolicy, bytes_per_entry: int) -> Finding:
    critical = row["extra"] >= policy.critical_extra_index_entries
    return Finding(
        check_id=DELAYED_INDEX_MULTIPLIED.check_id,
        severity=Severity.CRITICAL if critical else Severity.WARNING,
        subject=row["topic"],
        evidence=(
            f"{row['subscriptions']:,} subscriptions index {row['entries']:,} delayed messages,"
            f" {row['extra']:,} more than {row['subscription']} alone ({row['most']:,}):"
            f" about {size(row['extra'] * bytes_per_entry)} of index more, at {bytes_per_entry} bytes an entry."
        ),
        figures={
            "extra_index_entries": row["extra"],
            "index_entries": row["entries"],
            "most_delayed_messages": row["most"],
            "subscriptions": row["subscriptions"],
        },
    )


CHECK = Check(DELAYED_INDEX_MULTIPLIED, _judge)
