"""Cursors whose ack state comes near the largest entry that BookKeeper takes; beyond it nothing more is persisted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from pulsar_steward.model.catalog.clients import CURSOR_NOT_PERSISTABLE
from pulsar_steward.model.finding import Finding, Severity
from steward_spark.checks.check import Check, Judgement
from steward_spark.checks.clients._consumers import subject_of
from steward_spark.checks.clients._settings import LONG_ARRAY, MESSAGE_BYTES, MOST_RANGES, smallest, with_settings
from steward_spark.checks.clients._users import nothing_read, subscriptions_of_users
from steward_spark.checks.common.listing import worst
from steward_spark.checks.common.words import size

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

    from pulsar_steward.policy.schema import Policy
    from steward_spark.frames import Frames

_RANKED = (Severity.INFO, Severity.WARNING, Severity.CRITICAL)
_COLUMNS = {
    "long_array": (LONG_ARRAY, "boolean"),
    "limit": (MOST_RANGES, "bigint"),
    "message_bytes": (MESSAGE_BYTES, "bigint"),
}

USUAL_MESSAGE_BYTES = 5 * 1024 * 1024
FRAME_PADDING_BYTES = 10 * 1024
"""What a broker allows an entry beyond `maxMessageSize` (`Commands.MESSAGE_SIZE_FRAME_PADDING`)."""

LONG_BYTES, LONG_ENTRIES = 11, 64
"""A long of the array holds 64 entries and takes up to 11 bytes, so 30.6 million entries fill 5 MiB."""

RANGE_BYTES = 30
"""Two positions as the persisted ranges hold them, at most; 14 were measured on a broker with small numbers."""


def states(frames: Frames, warning_percent: int) -> DataFrame:
    """Cursors with an ack state that may be large, and how large that is as far as it is known.

    Args:
        frames: The snapshot.
        warning_percent: Of the frame; cursors that are not measured and are estimated at less are left out.

    Returns:
        `topic`, `subscription`, `broker`, `ack_holes`, `entries`, `measured_bytes` (null: not asked), `long_array`
        (null: not known), `frame_bytes` and `estimated_bytes`: at most so many, where `long_array` is not known as if
        it were on.
    """
    keys = ["topic", "subscription"]
    measured = (
        frames.drilled.where("subscription is not null")
        .groupBy(*keys)
        .agg(F.max("ack_state_bytes").alias("measured_bytes"))
    )
    dense = F.ceil(F.col("entries") / LONG_ENTRIES) * LONG_BYTES
    counted = frames.subscriptions.select(*keys, "ack_holes", F.col("entries_since_first_gap").alias("entries"))
    # However a broker persists it, it takes no more than this; what is small at the smallest frame needs no owner.
    most = F.greatest(dense, F.col("ack_holes") * RANGE_BYTES)
    told = smallest(frames, MESSAGE_BYTES)
    frame_bytes = USUAL_MESSAGE_BYTES if told is None else min(told, USUAL_MESSAGE_BYTES)
    near = most * 100 >= (frame_bytes + FRAME_PADDING_BYTES) * warning_percent
    large = F.col("measured_bytes").isNotNull() | F.col("entries").isNull() | near
    with_state = counted.join(F.broadcast(measured), keys, "left").where(
        F.expr("ack_holes > 0 or measured_bytes > 0") & large
    )
    each = with_settings(frames.few(subscriptions_of_users(with_state)), frames, _COLUMNS)
    ranges = F.least("ack_holes", "limit") * RANGE_BYTES
    estimate = F.when(F.expr("not long_array"), ranges).otherwise(dense).cast("bigint")
    frame = F.coalesce("message_bytes", F.lit(USUAL_MESSAGE_BYTES)) + FRAME_PADDING_BYTES
    return each.withColumn("estimated_bytes", estimate).withColumn("frame_bytes", frame)


def large(cursors: DataFrame, warning_percent: int) -> DataFrame:
    """The cursors whose state is near the frame or over it, with `rank` and `by_measure`.

    A measured size stands for itself. An estimate is the most that it can be; a smaller measurement speaks against it,
    but does not refute it: once a state is too large, a shorter one is persisted elsewhere, and measured.
    """
    near = f"frame_bytes * {warning_percent}"
    rank = F.expr(
        "case when measured_bytes >= frame_bytes then 2"
        f" when measured_bytes * 100 >= {near} then 1"
        " when long_array is null then null"
        " when estimated_bytes >= frame_bytes then if(measured_bytes is null, 1, 0)"
        f" when measured_bytes is null and estimated_bytes * 100 >= {near} then 0 end"
    )
    by_measure = F.expr(f"coalesce(measured_bytes * 100 >= {near}, false)")
    return cursors.withColumn("rank", rank).withColumn("by_measure", by_measure).where("rank is not null")


def _judge(frames: Frames, policy: Policy) -> Judgement:
    percent = policy.cursor_not_persistable.warning_percent
    cursors = states(frames, percent)
    order = (
        F.desc("rank"),
        F.desc(F.coalesce("measured_bytes", "estimated_bytes")),
        F.asc("topic"),
        F.asc("subscription"),
    )
    rows, more = worst(large(cursors, percent), *order)
    return Judgement(
        findings=tuple(_finding(row) for row in rows),
        more=more,
        quiet=f"No cursor's ack state has {percent} % of the largest entry that BookKeeper takes.",
        cannot_tell=None if rows else nothing_read(frames) or _unknown(cursors, percent),
    )


def _unknown(cursors: DataFrame, warning_percent: int) -> str | None:
    """Cursors that may be too large, and of which neither their size nor how it is persisted was read."""
    no_size = F.expr(
        f"measured_bytes is null and long_array is null and estimated_bytes * 100 >= frame_bytes * {warning_percent}"
    )
    no_limit = F.expr("measured_bytes is null and estimated_bytes is null")
    count = cursors.where(no_size | no_limit).count()
    if not count:
        return None
    return (
        f"{count:,} subscriptions with ack holes were not asked for the size of their ack state, and what their brokers"
        f" persist of it ({LONG_ARRAY}, {MOST_RANGES}) or how many entries it spans is not in the snapshot."
    )


def _finding(row: Row) -> Finding:
    figures = {name: row[name] for name in ("ack_holes", "frame_bytes") if row[name] is not None}
    if row["entries"] is not None:
        figures["entries_since_first_gap"] = row["entries"]
    if row["measured_bytes"] is not None:
        figures["ack_state_bytes"] = row["measured_bytes"]
    return Finding(
        check_id=CURSOR_NOT_PERSISTABLE.check_id,
        severity=_RANKED[row["rank"]],
        subject=subject_of(row),
        evidence=(
            f"The cursor of subscription {row['subscription']} of {row['topic']} spans {row['entries'] or 0:,} entries"
            f" with {row['ack_holes'] or 0:,} ack holes: {_state(row)} of the {size(row['frame_bytes'])} that one entry"
            f" of a cursor ledger holds; what does not fit is delivered again after a restart or move."
        ),
        figures=figures,
    )


def _state(row: Row) -> str:
    if row["by_measure"]:
        return f"its ack state has {size(row['measured_bytes'])}"
    estimate = f"its ack state may take up to {size(row['estimated_bytes'])} (an estimate"
    if row["measured_bytes"] is None:
        return f"{estimate}: its topic was not asked)"
    return f"{estimate}; what was persisted last has {size(row['measured_bytes'])})"


CHECK = Check(CURSOR_NOT_PERSISTABLE, _judge)
