"""The latency buckets of managed ledgers, as the broker's `pulsar_ml_*` series show them.

Each bucket is a rate of one namespace: events per second over the last statistics period
(`managedLedgerStatsPeriodSeconds`, 60 by default). Its bounds in milliseconds are in the label `quantile`
(``200.0_1000.0``); what took over a second is in a series of its own, ``..._OVERFLOW``. Measured on 4.0.7.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from steward_spark.checks.resources._metrics import label, samples

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from steward_spark.frames import Frames

SLOW_MILLISECONDS = 200
"""From this bound on, an event is slow."""


def latencies(frames: Frames, series: str) -> DataFrame:
    """How many events a second each broker saw, and how many of them were slow.

    Returns:
        `source`, `rate`, `slow_rate` (over 200 ms), `stalled_rate` (over a second), `slow_percent`, `stalled_percent`,
        and `namespace`, `namespace_rate`: the one with most slow events and how many these are a second.
    """
    overflow = f"{series}_OVERFLOW"
    lower = F.split(label("quantile"), "_")[0].cast("double")
    stalled = F.col("series") == overflow
    slow = stalled | (lower >= SLOW_MILLISECONDS)
    by_namespace = (
        samples(frames, series, overflow)
        .groupBy("source", label("namespace").alias("namespace"))
        .agg(
            F.sum("value").alias("rate"),
            F.coalesce(F.sum(F.when(slow, F.col("value"))), F.lit(0.0)).alias("slow_rate"),
            F.coalesce(F.sum(F.when(stalled, F.col("value"))), F.lit(0.0)).alias("stalled_rate"),
        )
    )
    worst = F.max(F.struct(F.col("slow_rate").alias("namespace_rate"), "namespace")).alias("worst")
    by_source = by_namespace.groupBy("source").agg(
        F.sum("rate").alias("rate"),
        F.sum("slow_rate").alias("slow_rate"),
        F.sum("stalled_rate").alias("stalled_rate"),
        worst,
    )
    return by_source.select(
        "source",
        "rate",
        "slow_rate",
        "stalled_rate",
        F.expr("if(rate > 0, slow_rate * 100 / rate, 0.0)").alias("slow_percent"),
        F.expr("if(rate > 0, stalled_rate * 100 / rate, 0.0)").alias("stalled_percent"),
        "worst.namespace",
        "worst.namespace_rate",
    )
