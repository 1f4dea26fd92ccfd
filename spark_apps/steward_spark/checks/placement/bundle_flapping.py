"""Bundles that change their owner again and again, each time with all their clients, and no restart explains it."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from pulsar_steward.model.catalog.placement import BUNDLE_FLAPPING
from pulsar_steward.model.finding import Finding, Severity
from steward_spark.checks.check import Check, Judgement
from steward_spark.checks.common.earlier import too_few, within
from steward_spark.checks.common.listing import worst
from steward_spark.checks.placement._moves import away, moves, owners

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from pyspark.sql import Row

    from pulsar_steward.policy.checks.placement import BundleFlappingPolicy
    from pulsar_steward.policy.schema import Policy
    from steward_spark.frames import Frames

LEAST_SNAPSHOTS = 3
SHEDDING, STRATEGY = "loadBalancerSheddingEnabled", "loadBalancerLoadSheddingStrategy"


def needed_snapshots(policy: BundleFlappingPolicy) -> int:
    """The least snapshots in which a bundle could be found at all: to and fro, n of them weigh 2 (n - 1) - 1 moves."""
    return max(LEAST_SNAPSHOTS, -(-(policy.warning_moves + 3) // 2))


def _judge(frames: Frames, policy: Policy) -> Judgement:
    own = policy.bundle_flapping
    snapshots = [*reversed(within(frames, own.window_minutes)), frames]
    needed = needed_snapshots(own)
    if len(snapshots) < needed:
        return Judgement(cannot_tell=too_few(len(snapshots), needed, own.window_minutes))
    rows, more = _flapping(snapshots, own)
    if rows:
        shedding = shedding_words(frames)
        return Judgement(findings=tuple(_finding(row, own, shedding) for row in rows), more=more)
    since = _utc(snapshots[0].about.taken_at)
    partial = sum(bool(each.about.unread) for each in snapshots[:-1])
    return Judgement(
        quiet=f"No bundle moved to and fro in the {len(snapshots)} snapshots since {since}.",
        cannot_tell=f"{partial} of the {len(snapshots)} snapshots since {since} are partial." if partial else None,
    )


def _flapping(snapshots: Sequence[Frames], policy: BundleFlappingPolicy) -> tuple[list[Row], int]:
    points, enough = owners(snapshots), F.col("weight") >= policy.warning_moves
    # Most of the time nothing moved much, and who was away need not be looked up.
    if not moves(points).where(enough).take(1):
        return [], 0
    flapping = moves(points, away(snapshots)).where(enough)
    return worst(flapping, F.desc("weight"), F.asc("namespace"), F.asc("bundle"))


def shedding_words(frames: Frames) -> str:
    """Whether the brokers' own shedding may be what moves bundles; indirect, as brokers do not tell what they shed."""
    told = frames.configuration.where(F.col("key").isin(SHEDDING, STRATEGY)).groupBy("key", "value")
    values: dict[str, list[str]] = {SHEDDING: [], STRATEGY: []}
    for row in told.count().orderBy("key", "value").collect():
        values[row["key"]].append(row["value"])
    if not values[SHEDDING]:
        return f"whether the brokers' own shedding is on ({SHEDDING}) was not read"
    if "true" in values[SHEDDING]:
        names = ", ".join(each.rpartition(".")[2] for each in values[STRATEGY])
        return f"the brokers' own shedding is on{f' ({names})' if names else ''} and may be what moves it"
    return f"the brokers' own shedding is off ({SHEDDING}), so somebody or something else moves it"


def _finding(row: Row, policy: BundleFlappingPolicy, shedding: str) -> Finding:
    explained = f", {row['explained']} more as their owner was away" if row["explained"] else ""
    stays = " → ".join(f"{each['owner']} ({_utc(each['at'])})" for each in row["owners"])
    return Finding(
        check_id=BUNDLE_FLAPPING.check_id,
        severity=Severity.CRITICAL if row["weight"] >= policy.critical_moves else Severity.WARNING,
        subject=f"{row['namespace']}/{row['bundle']}",
        evidence=(
            f"Moved {row['moves']} times, {row['returns']} of them straight back{explained}; first seen at {stays};"
            f" {shedding}."
        ),
        figures={
            "moves": row["moves"],
            "moves_back": row["returns"],
            "moves_from_brokers_away": row["explained"],
            "owners": len({each["owner"] for each in row["owners"]}),
        },
    )


def _utc(moment: datetime) -> str:
    """Spark gives times without their zone, in that of the process."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


CHECK = Check(BUNDLE_FLAPPING, _judge)
