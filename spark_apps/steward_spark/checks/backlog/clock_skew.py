"""Brokers whose clocks are apart: age quotas, TTLs and delays compare a client's clock with the broker's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from pulsar_steward.model.catalog.backlog import CLOCK_SKEW
from pulsar_steward.model.finding import Finding, Severity
from steward_spark.checks.check import Check, Judgement

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pulsar_steward.policy.schema import Policy
    from steward_spark.frames import Frames

_COLUMN = "clock_skew_milliseconds"


def skews(brokers: DataFrame) -> dict[str, int | None]:
    """How far the clock of each broker that was read is ahead of the collector's, in milliseconds; None: not known."""
    skew = F.col(_COLUMN) if _COLUMN in brokers.columns else F.lit(None)
    rows = brokers.where("read").select("broker", skew.cast("bigint").alias("skew")).collect()
    return {row["broker"]: row["skew"] for row in rows}


def _judge(frames: Frames, policy: Policy) -> Judgement:
    seen = skews(frames.brokers)
    known = sorted((skew, broker) for broker, skew in seen.items() if skew is not None)
    if not known:
        return Judgement(cannot_tell="No broker's clock was read.")
    (earliest, slow), (latest, fast) = known[0], known[-1]
    apart = latest - earliest
    if apart < policy.clock_skew.warning_milliseconds:
        return _together(len(known), len(seen), apart)
    finding = Finding(
        check_id=CLOCK_SKEW.check_id,
        severity=Severity.CRITICAL if apart >= policy.clock_skew.critical_milliseconds else Severity.WARNING,
        subject=frames.about.cluster,
        evidence=(
            f"The clock of {fast} is {apart / 1000:,.1f} s ahead of that of {slow} (read to ±1 s, {len(known)} of"
            f" {len(seen)} brokers); age quotas, TTLs and delays act that much too early or too late."
        ),
        figures={
            "apart_milliseconds": apart,
            "brokers": len(seen),
            "brokers_known": len(known),
            "earliest_milliseconds": earliest,
            "latest_milliseconds": latest,
        },
    )
    return Judgement(findings=(finding,))


def _together(known: int, brokers: int, apart: int) -> Judgement:
    if known < brokers:
        return Judgement(cannot_tell=f"The clocks of {brokers - known} of {brokers} brokers were not read.")
    return Judgement(quiet=f"The clocks of {brokers} brokers are within {apart / 1000:,.1f} s, read to ±1 s.")


CHECK = Check(CLOCK_SKEW, _judge)
