"""Partitions with thousands of consumers: costly to dispatch to, a source of ack holes, and dangerous to move."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from pulsar_steward.model.catalog.clients import CONSUMER_FANOUT
from pulsar_steward.model.finding import Finding, Severity
from steward_spark.checks.check import Check, Judgement
from steward_spark.checks.clients._fanout import crowded, most_of_one, moving
from steward_spark.checks.clients._users import nothing_read

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Row

    from pulsar_steward.policy.schema import Policy
    from steward_spark.frames import Frames


def _judge(frames: Frames, policy: Policy) -> Judgement:
    limits = policy.consumer_fanout
    rows, more = crowded(frames, "consumers", limits.warning_consumers)
    if not rows:
        return Judgement(quiet=most_of_one(frames, "consumers"), cannot_tell=nothing_read(frames))
    largest = _largest(frames, [row["topic"] for row in rows])
    critical = limits.critical_consumers
    return Judgement(findings=tuple(_finding(row, largest.get(row["topic"]), critical) for row in rows), more=more)


def _largest(frames: Frames, topics: Sequence[str]) -> dict[str, Row]:
    """The subscription with most consumers of each of some topics; of equals, the last by name."""
    each = frames.subscriptions.where(F.col("topic").isin(list(topics)))
    most = F.max(F.struct("consumers", "subscription", "type", "ack_holes")).alias("most")
    return {row["topic"]: row["most"] for row in each.groupBy("topic").agg(most).collect()}


def _finding(row: Row, largest: Row | None, critical_consumers: int) -> Finding:
    figures = {"consumers": row["consumers"], "producers": row["producers"] or 0}
    if largest is not None:
        figures["largest_subscription_consumers"] = largest["consumers"] or 0
    return Finding(
        check_id=CONSUMER_FANOUT.check_id,
        severity=Severity.CRITICAL if row["consumers"] >= critical_consumers else Severity.WARNING,
        subject=row["topic"],
        evidence=(
            f"{row['topic']} on {row['broker']} has {row['consumers']:,} consumers in {row['subscriptions'] or 0:,}"
            f" subscriptions{_most(largest)}. {moving(row)}"
        ),
        figures=figures,
    )


def _most(largest: Row | None) -> str:
    if largest is None:
        return ""
    kind = f" ({largest['type']})" if largest["type"] else ""
    return (
        f", {largest['consumers'] or 0:,} of them in {largest['subscription']}{kind},"
        f" which has {largest['ack_holes'] or 0:,} ack holes"
    )


CHECK = Check(CONSUMER_FANOUT, _judge)
