"""Subscriptions with so many ack holes that acknowledgements are lost when their topic is loaded anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from pulsar_steward.model.catalog.clients import ACK_HOLES
from pulsar_steward.model.finding import Finding, Severity
from steward_spark.checks.check import Check, Judgement
from steward_spark.checks.clients._consumers import slowest, slowest_words, subject_of
from steward_spark.checks.clients._settings import (
    LONG_ARRAY,
    MOST_RANGES,
    brokers_without,
    smallest,
    with_settings,
)
from steward_spark.checks.clients._users import nothing_read, subscriptions_of_users
from steward_spark.checks.common.listing import worst

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

    from pulsar_steward.policy.checks.clients import AckHolesPolicy
    from pulsar_steward.policy.schema import Policy
    from steward_spark.frames import Frames

_COLUMNS = {"limit": (MOST_RANGES, "bigint"), "long_array": (LONG_ARRAY, "boolean")}


def holed(frames: Frames, policy: AckHolesPolicy) -> DataFrame:
    """Subscriptions near or beyond what their broker persists.

    Returns:
        `topic`, `subscription`, `consumers`, `ack_holes`, `broker`, `limit`, `long_array` and `beyond`.
    """
    # What is far from the tightest limit is far from all others, and needs no owner.
    least = F.lit(smallest(frames, MOST_RANGES)) * policy.warning_percent
    holes = F.col("ack_holes")
    counted = subscriptions_of_users(frames.subscriptions.where((holes > 0) & (holes * 100 >= least)))
    suspects = frames.few(counted.select("topic", "subscription", "consumers", "ack_holes"))
    each = with_settings(suspects, frames, _COLUMNS)
    near = F.col("ack_holes") * 100 >= F.col("limit") * policy.warning_percent
    return each.where(near).withColumn("beyond", F.expr("ack_holes > limit"))


def _judge(frames: Frames, policy: Policy) -> Judgement:
    order = (
        F.desc("beyond"),
        F.desc(F.expr("ack_holes / greatest(limit, 1)")),
        F.asc("topic"),
        F.asc("subscription"),
    )
    rows, more = worst(holed(frames, policy.ack_holes), *order)
    names = slowest(frames, rows)
    return Judgement(
        findings=tuple(_finding(row, slowest_words(names, row)) for row in rows),
        more=more,
        quiet=f"No subscription has {policy.ack_holes.warning_percent} % of the ack holes that its broker persists.",
        cannot_tell=None if rows else nothing_read(frames) or brokers_without(frames, MOST_RANGES),
    )


def _finding(row: Row, consumers: str) -> Finding:
    return Finding(
        check_id=ACK_HOLES.check_id,
        severity=Severity.CRITICAL if row["beyond"] else Severity.WARNING,
        subject=subject_of(row),
        evidence=(
            f"Subscription {row['subscription']} of {row['topic']} has {row['ack_holes']:,} ack holes, {_of_limit(row)}"
            f" that {row['broker']} persists ({MOST_RANGES}{_counting(row)}): {_meaning(row)}; {consumers}."
        ),
        figures={"ack_holes": row["ack_holes"], "ack_holes_persisted_at_most": row["limit"]},
    )


def _of_limit(row: Row) -> str:
    if row["limit"] <= 0:
        return "all of them beyond the 0"
    return f"{row['ack_holes'] * 100 // row['limit']:,} % of the {row['limit']:,}"


def _counting(row: Row) -> str:
    return "; as long arrays are on, it counts single entries and may be passed already" if row["long_array"] else ""


def _meaning(row: Row) -> str:
    if row["beyond"]:
        return "a restart or move now delivers acknowledged messages again"
    return "beyond that, a restart or move delivers acknowledged messages again"


CHECK = Check(ACK_HOLES, _judge)
