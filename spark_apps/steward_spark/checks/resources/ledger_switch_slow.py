"""How long brokers take to go over to a new ledger, while everything that is written to the topic waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from pulsar_steward.model.catalog.resources import LEDGER_SWITCH_SLOW
from pulsar_steward.model.finding import Finding, Severity
from steward_spark.checks.check import Check
from steward_spark.checks.common.worst import named, worst_first
from steward_spark.checks.resources._latency import latencies
from steward_spark.checks.resources._metrics import without

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

    from pulsar_steward.policy.checks.resources import LedgerSwitchSlowPolicy
    from pulsar_steward.policy.schema import Policy
    from steward_spark.checks.check import Judgement
    from steward_spark.frames import Frames

SWITCHES = "pulsar_ml_LedgerSwitchLatencyBuckets"


def slow_switches(switches: DataFrame, policy: LedgerSwitchSlowPolicy) -> DataFrame:
    """Brokers with slow switches and their `rank`: 2 critical, 1 warning, 0 information (any one over a second)."""
    enough_slow = F.round(F.col("slow_rate") * 60) >= policy.minimum_switches_per_minute
    enough_stalled = F.round(F.col("stalled_rate") * 60) >= policy.minimum_switches_per_minute
    critical = enough_stalled & (F.col("stalled_percent") >= policy.critical_share_percent)
    warning = enough_slow & (F.col("slow_percent") >= policy.warning_share_percent)
    rank = F.when(critical, 2).when(warning, 1).when(F.col("stalled_rate") > 0, 0)
    return switches.withColumn("rank", rank).where("rank is not null")


def _judge(frames: Frames, policy: Policy) -> Judgement:
    switches = latencies(frames, SWITCHES)
    slow = slow_switches(switches, policy.ledger_switch_slow)
    order = (F.desc("rank"), F.desc("stalled_rate"), F.desc("slow_rate"), F.asc("source"))
    return worst_first(slow, order, _finding, lambda: _quiet(switches), lambda: _missing(frames, switches))


def _quiet(switches: DataFrame) -> str:
    row = switches.agg(F.sum("rate").alias("rate"), F.max("slow_percent").alias("most")).first()
    if row is None or row["rate"] is None:
        return "Nothing was judged."
    return (
        f"About {row['rate'] * 60:,.0f} ledgers were switched in the last minute;"
        f" at most {row['most']:.0f} % on any broker took over 200 ms."
    )


def _missing(frames: Frames, switches: DataFrame) -> str | None:
    if silent := without(frames, switches):
        return f"The snapshot has no ledger switch latencies of {named(silent)}."
    return (
        None
        if switches.where("rate > 0").take(1)
        else "No ledger was switched in the last minute, so nothing is known of how long it takes."
    )


def _finding(row: Row) -> Finding:
    severity = (Severity.INFO, Severity.WARNING, Severity.CRITICAL)[row["rank"]]
    a_minute = {name: row[f"{name}rate"] * 60 for name in ("", "slow_", "stalled_", "namespace_")}
    return Finding(
        check_id=LEDGER_SWITCH_SLOW.check_id,
        severity=severity,
        subject=row["source"],
        evidence=(
            f"Of about {a_minute['']:,.0f} ledger switches a minute on broker {row['source']}, {a_minute['slow_']:,.0f}"
            f" took over 200 ms ({row['slow_percent']:.0f} %) and {a_minute['stalled_']:,.0f} over a second;"
            f" most of the slow ones in {row['namespace']} ({a_minute['namespace_']:,.0f})."
        ),
        figures={
            "over_200_milliseconds_per_minute": round(a_minute["slow_"]),
            "over_second_per_minute": round(a_minute["stalled_"]),
            "switches_per_minute": round(a_minute[""]),
        },
    )


CHECK = Check(LEDGER_SWITCH_SLOW, _judge)
