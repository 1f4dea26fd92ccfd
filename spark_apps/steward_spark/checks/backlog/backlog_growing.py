"""Topics whose backlog has kept growing over the last snapshots: when it reaches its quota, or that it has none."""

from __future__ import annotations

from datetime import UTC, timedelta
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from pulsar_steward.model.catalog.backlog import BACKLOG_GROWING
from pulsar_steward.model.finding import Finding, Severity
from steward_spark.checks.backlog._culprits import culprits
from steward_spark.checks.backlog._defaults import defaults_of
from steward_spark.checks.backlog._growth import grown_since, reference, rises
from steward_spark.checks.backlog._in_force import quotas_in_force
from steward_spark.checks.backlog._quota_words import capitalised, consequence
from steward_spark.checks.backlog._retention import MIB, retained
from steward_spark.checks.check import Check, Judgement
from steward_spark.checks.common.earlier import too_few, within
from steward_spark.checks.common.listing import worst
from steward_spark.checks.common.words import duration, size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from pyspark.sql import Column, DataFrame, Row

    from pulsar_steward.policy.checks.backlog import BacklogGrowingPolicy
    from pulsar_steward.policy.schema import Policy
    from steward_spark.checks.backlog._culprits import Culprit
    from steward_spark.frames import Frames

SUSPECTS = 1000
"""Topics that grew fast enough lately and are looked up in all snapshots of the window, the worst first."""

_HOUR = 3600


def fast_enough(topics: DataFrame, rate: Column, policy: BacklogGrowingPolicy) -> DataFrame:
    """Topics that reach their size quota in time at that rate, or have none and grow fast.

    A quota that is exceeded already is left to the check of backlogs near their quota.

    Returns:
        The same columns, and `seconds_left` until the quota is reached; null where there is none.
    """
    limit = F.col("limit_bytes")
    left = F.when(limit >= 0, (limit - F.col("backlog_bytes")) / rate)
    soon = (limit > F.col("backlog_bytes")) & (left <= policy.warning_hours_to_quota * _HOUR)
    unbounded = (limit < 0) & (rate >= policy.warning_bytes_per_second)
    return topics.withColumn("seconds_left", left).where((rate > 0) & (soon | unbounded))


def suspects(frames: Frames, before: Frames, policy: BacklogGrowingPolicy) -> DataFrame:
    """Topics that grew fast enough since an earlier snapshot; at most `SUSPECTS` and one, those with a quota first.

    Returns:
        The columns of `quotas_in_force`, `recent_rate` and `seconds_left`.
    """
    seconds = (frames.about.taken_at - before.about.taken_at).total_seconds()
    # Nothing grew by more than it is now: this leaves few of them to be joined with the earlier snapshot.
    possible = fast_enough(quotas_in_force(frames), F.col("backlog_bytes") / seconds, policy)
    grown = grown_since(possible, frames, before)
    found = fast_enough(grown, F.col("recent_rate"), policy)
    return found.orderBy(*_worst_first("recent_rate")).limit(SUSPECTS + 1)


def _worst_first(rate: str) -> tuple[Column, ...]:
    return F.asc_nulls_last("seconds_left"), F.desc(rate), F.asc("topic")


def steady(rises: DataFrame, policy: BacklogGrowingPolicy) -> DataFrame:
    """Rises over enough snapshots and minutes, in most steps, of a backlog that hardly shrank within the window.

    Args:
        rises: Columns of `rises`.
        policy: What is enough.
    """
    minutes = (F.unix_micros("now_at") - F.unix_micros("low_at")) / 60_000_000
    grown = F.col("now_bytes") - F.col("low_bytes")
    return rises.where(
        (F.col("snapshots") >= policy.minimum_snapshots)
        & (minutes >= policy.minimum_minutes)
        & (F.col("rising") * 100 >= (F.col("snapshots") - 1) * policy.rising_percent)
        & (F.col("shrunk_bytes") * 100 <= grown * policy.most_shrunk_percent)
    )


def growing(found: DataFrame, rises: DataFrame, policy: BacklogGrowingPolicy) -> DataFrame:
    """Those of the suspects that grow steadily, and fast enough even at the lowest of their rates.

    Args:
        found: Columns of `suspects`.
        rises: Columns of `rises`, of these topics.
        policy: What is steady and fast enough.

    Returns:
        The columns of both; `rate` is the lower one of that since the low and that lately.
    """
    both = found.drop("seconds_left").join(steady(rises, policy), "topic")
    lower = both.withColumn("rate", F.least("rate", "recent_rate"))
    return fast_enough(lower, F.col("rate"), policy)


def _judge(frames: Frames, policy: Policy) -> Judgement:
    own = policy.backlog_growing
    earlier = within(frames, own.window_minutes)
    before = reference(frames, earlier, own)
    if before is None:
        also = f", the first of them at least {own.minimum_minutes} minutes before it"
        return Judgement(cannot_tell=too_few(len(earlier) + 1, own.minimum_snapshots, own.window_minutes, also))
    found = suspects(frames, before, own)
    looked_up = found.collect()
    rows, more = _listed(frames, earlier, own, looked_up[:SUSPECTS], found)
    if not rows:
        return Judgement(
            quiet=f"No topic's backlog kept growing over the last {len(earlier) + 1} snapshots towards its quota.",
            cannot_tell=_missing(frames, before, len(looked_up)),
        )
    return Judgement(findings=tuple(_findings(frames, rows, own)), more=more)


def _listed(
    frames: Frames, earlier: Sequence[Frames], policy: BacklogGrowingPolicy, looked_up: list[Row], found: DataFrame
) -> tuple[list[Row], int]:
    if not looked_up:
        return [], 0
    few = found.sparkSession.createDataFrame(looked_up, found.schema)
    own = rises([frames, *earlier], [row["topic"] for row in looked_up])
    return worst(growing(few, own, policy), *_worst_first("rate"))


def _missing(frames: Frames, before: Frames, suspects: int) -> str | None:
    if before.about.unread:
        return f"The snapshot of {_utc(before.about.taken_at)}, with which backlogs are compared, is partial."
    if suspects > SUSPECTS:
        return (
            f"More than {SUSPECTS:,} backlogs grew fast lately; the {SUSPECTS:,} that were looked up did not keep on."
        )
    return defaults_of(frames).unknown("limit_bytes")


def _findings(frames: Frames, rows: Sequence[Row], policy: BacklogGrowingPolicy) -> Iterator[Finding]:
    who = culprits(frames, rows)
    unbounded = [row["topic"] for row in rows if row["seconds_left"] is None]
    kept = retained(frames).where(F.col("topic").isin(unbounded) & (F.col("retention_megabytes") > 0))
    sizes = {row["topic"]: row["retention_megabytes"] * MIB for row in kept.collect()} if unbounded else {}
    for row in rows:
        yield _finding(row, policy, who.get(row["topic"]), sizes.get(row["topic"]))


def _finding(row: Row, policy: BacklogGrowingPolicy, culprit: Culprit | None, retained_bytes: int | None) -> Finding:
    left, soon = row["seconds_left"], policy.critical_hours_to_quota * _HOUR
    end = _until_retention(row, retained_bytes) if left is None else _until_quota(row)
    delayed = f" {row['delayed_messages']:,} delayed messages count as backlog." if row["delayed_messages"] else ""
    slowest = f" {capitalised(str(culprit))}." if culprit else ""
    figures = {
        "backlog_bytes": row["now_bytes"],
        "growth_bytes_per_second": int(row["rate"]),
        "growth_seconds": int((row["now_at"] - row["low_at"]).total_seconds()),
        "low_backlog_bytes": row["low_bytes"],
        "rising_steps": row["rising"],
        "snapshots": row["snapshots"],
    }
    if left is not None:
        figures |= {"limit_bytes": row["limit_bytes"], "seconds_to_quota": round(left)}
    return Finding(
        check_id=BACKLOG_GROWING.check_id,
        severity=Severity.CRITICAL if left is not None and left <= soon else Severity.WARNING,
        subject=row["topic"],
        evidence=f"{_growth(row)}; {end}{delayed}{slowest}",
        figures=figures,
    )


def _growth(row: Row) -> str:
    return (
        f"Since {_utc(row['low_at'])} the backlog has grown from {size(row['low_bytes'])} to {size(row['now_bytes'])},"
        f" in {row['rising']} of {row['snapshots'] - 1} steps between snapshots, by {size(row['rate'])}/s at least"
    )


def _until_quota(row: Row) -> str:
    reached = row["now_at"] + timedelta(seconds=row["seconds_left"])
    return (
        f"so it reaches the size quota of {size(row['limit_bytes'])} at {_utc(reached)}, in"
        f" {duration(row['seconds_left'])}; then ({row['bytes_policy']}) {consequence(row['bytes_policy'])}."
    )


def _until_retention(row: Row, retained_bytes: int | None) -> str:
    age = f", only an age quota of {duration(row['limit_seconds'])}" if (row["limit_seconds"] or 0) > 0 else ""
    words = f"no size quota is in force{age}"
    if retained_bytes is None:
        return f"{words}, and no retained size to compare with."
    if retained_bytes <= row["now_bytes"]:
        return f"{words}, and it is over the {size(retained_bytes)} that are retained already."
    left = (retained_bytes - row["now_bytes"]) / row["rate"]
    reached = _utc(row["now_at"] + timedelta(seconds=left))
    return f"{words}; it outgrows the {size(retained_bytes)} that are retained at {reached}, in {duration(left)}."


def _utc(moment: datetime) -> str:
    """Spark gives times without their zone, in that of the process."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


CHECK = Check(BACKLOG_GROWING, _judge)
