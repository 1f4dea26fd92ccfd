"""Partitions with thousands of producers: each costs memory and pings, and all of them come back at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.model.catalog.clients import PRODUCER_FANOUT
from pulsar_steward.model.finding import Finding, Severity
from steward_spark.checks.check import Check, Judgement
from steward_spark.checks.clients._fanout import crowded, most_of_one, moving
from steward_spark.checks.clients._users import nothing_read

if TYPE_CHECKING:
    from pyspark.sql import Row

    from pulsar_steward.policy.schema import Policy
    from steward_spark.frames import Frames


def _judge(frames: Frames, policy: Policy) -> Judgement:
    limits = policy.producer_fanout
    rows, more = crowded(frames, "producers", limits.warning_producers)
    if not rows:
        return Judgement(quiet=most_of_one(frames, "producers"), cannot_tell=nothing_read(frames))
    recent, critical = policy.collect.recent_minutes, limits.critical_producers
    return Judgement(findings=tuple(_finding(row, recent, critical) for row in rows), more=more)


def _finding(row: Row, recent_minutes: int, critical_producers: int) -> Finding:
    figures = {"consumers": row["consumers"] or 0, "producers": row["producers"]}
    recent = row["producers_connected_recently"]
    if recent is not None:
        figures["producers_connected_recently"] = recent
    came = "" if recent is None else f", {recent:,} of which connected in the last {recent_minutes} min"
    return Finding(
        check_id=PRODUCER_FANOUT.check_id,
        severity=Severity.CRITICAL if row["producers"] >= critical_producers else Severity.WARNING,
        subject=row["topic"],
        evidence=f"{row['topic']} on {row['broker']} has {row['producers']:,} producers{came}. {moving(row)}",
        figures=figures,
    )


CHECK = Check(PRODUCER_FANOUT, _judge)
