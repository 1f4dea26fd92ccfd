"""Topics over a quota that shuts producers out, though their subscriptions have hardly any backlog.

This is indirect: a snapshot shows that the figures which the quota looks at and those of the subscriptions do not
agree, not why. Cursors that are no subscriptions (deduplication, replication) are in no table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from pulsar_steward.model.catalog.backlog import QUOTA_STUCK
from pulsar_steward.model.finding import Finding, Severity
from steward_spark.checks.backlog._defaults import defaults_of
from steward_spark.checks.backlog._in_force import holds_producers, pressed, quotas_in_force
from steward_spark.checks.backlog._quota_words import age_quota, capitalised, figures, size_quota
from steward_spark.checks.check import Check
from steward_spark.checks.common.worst import worst_first

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

    from pulsar_steward.policy.checks.backlog import QuotaStuckPolicy
    from pulsar_steward.policy.schema import Policy
    from steward_spark.checks.check import Judgement
    from steward_spark.frames import Frames

_FULL = 100


def stuck(in_force: DataFrame, subscriptions: DataFrame, policy: QuotaStuckPolicy) -> DataFrame:
    """Topics over a quota that shuts producers out, which their subscriptions' backlogs do not explain.

    Returns:
        The columns of `quotas_in_force`; `messages`, the largest backlog of a subscription, and `ack_holes` of all;
        `by_size` and `by_age`, which quota it is; `trouble`, whether neither holes nor producers speak against it.
    """
    over_size = holds_producers("bytes_policy") & (F.col("bytes_percent") >= _FULL) & (F.col("limit_bytes") > 0)
    over_age = holds_producers("seconds_policy") & (F.col("seconds_percent") >= _FULL)
    false = F.expr("false")
    over = (
        in_force.withColumn("over_size", F.coalesce(over_size, false))
        .withColumn("over_age", F.coalesce(over_age, false))
        .where("over_size or over_age")
        .orderBy(F.greatest("bytes_percent", "seconds_percent").desc(), "topic")
        .limit(policy.suspects)
    )
    backlogs = (
        subscriptions.select("topic", "backlog_messages", "ack_holes")
        .join(F.broadcast(over.select("topic")), "topic", "left_semi")
        .groupBy("topic")
        .agg(F.max("backlog_messages").alias("messages"), F.sum("ack_holes").alias("ack_holes"))
    )
    joined = over.join(backlogs, "topic", "left").fillna(0, ["messages", "ack_holes", "producers"])
    implausible = F.col("backlog_bytes") > F.col("messages") * policy.most_bytes_per_message
    marked = joined.withColumn("by_size", F.col("over_size") & implausible).withColumn(
        "by_age", F.col("over_age") & (F.col("messages") == 0)
    )
    return marked.where("by_size or by_age").withColumn(
        "trouble", F.expr("by_size and ack_holes = 0 and producers = 0")
    )


def _judge(frames: Frames, policy: Policy) -> Judgement:
    return worst_first(
        stuck(pressed(frames), frames.subscriptions, policy.quota_stuck),
        (F.desc("trouble"), F.asc("producers"), F.desc("backlog_bytes"), F.asc("topic")),
        _finding,
        lambda: "No quota shuts producers out without a backlog.",
        lambda: (
            defaults_of(frames).unknown("limit_bytes", "limit_seconds", "policy")
            or _not_drilled(quotas_in_force(frames))
        ),
    )


def _not_drilled(in_force: DataFrame) -> str | None:
    """Topics that might be stuck by age: under such a quota, without producers, and not asked for their age."""
    shut = ~F.col("drilled") & (F.col("limit_seconds") > 0) & holds_producers("seconds_policy")
    count = in_force.where(shut & (F.coalesce("producers", F.lit(0)) == 0)).count()
    if not count:
        return None
    return f"{count:,} topics without producers are under an age quota that shuts them out, and their age was not read."


def _finding(row: Row) -> Finding:
    quota = size_quota(row) if row["by_size"] else age_quota(row)
    return Finding(
        check_id=QUOTA_STUCK.check_id,
        severity=Severity.CRITICAL if row["trouble"] else Severity.WARNING,
        subject=row["topic"],
        evidence=(
            f"{capitalised(quota)}, but the largest backlog of a subscription is {row['messages']:,} messages, which"
            f" does not explain it; {_likely(row)}. {_producers(row['producers'])} Indirect: see stats-internal."
        ),
        figures=figures(row) | {"ack_holes": row["ack_holes"], "backlog_messages": row["messages"]},
    )


def _likely(row: Row) -> str:
    if row["ack_holes"]:
        return f"{row['ack_holes']:,} ack holes: a message that is not acknowledged may hold all that follow it"
    if row["by_size"]:
        return "another cursor (deduplication, replication) may hold it, or the quota is stuck"
    return "the broker's figure may be left over from before the backlog was consumed"


def _producers(count: int) -> str:
    if count == 0:
        return "No producer is connected, as after being shut out."
    return f"{count:,} producers are still connected."


CHECK = Check(QUOTA_STUCK, _judge)
