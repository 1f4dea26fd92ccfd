"""The latency buckets of managed ledgers, as the broker's `pulsar_ml_*` series show them.

Each bucket is a rate of one namespace: events per second over the last statistics period
(`managedLedgerStatsPeriodSeconds`, 60 by default). Its bounds in milliseconds are in the label `quantile`
(``200.0_1000.0``); what took over a second is in a series of its own, ``..._OVERFLOW``. Measured on 4.0.7.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from steward_spark.checks.common.samples import OF_NAMESPACES
from steward_spark.checks.resources._metrics import label
from steward_spark.frames import few_once

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from steward_spark.frames import Frames

SLOW_MILLISECONDS = 200
"""From this bound on, an event is slow."""


def latencies(frames: Frames, series: str) -> DataFrame:
    """How many events a second each broker saw, and how many of them were slow.

    Args:
        frames: The snapshot.
        series: One of `OF_NAMESPACES`.

    Returns:
        `source`, `rate`, `slow_rate` (over 200 ms), `stalled_rate` (over a second), `slow_percent`, `stalled_percent`,
        and `namespace`, `namespace_rate`: the one with most slow events and how many these are a second.
    """
    return _all_latencies(frames).where(F.col("of") == series).drop("of")


@few_once
def _all_latencies(frames: Frames) -> DataFrame:
    """Those of all `OF_NAMESPACES`, in one pass, by broker and series (`of`)."""
    names = [name for series in OF_NAMESPACES for name in (series, _overflow(series))]
    lower = F.substring_index(_plain_label("quantile"), "_", 1).cast("double")
    stalled = F.col("series").isin([_overflow(series) for series in OF_NAMESPACES])
    slow = stalled | (lower >= SLOW_MILLISECONDS)
    of = F.when(stalled, F.substring_index("series", _overflow(""), 1)).otherwise(F.col("series"))
    by_namespace = (
        frames.metrics.where(F.col("series").isin(names) & ~F.isnan("value"))
        .groupBy(of.alias("of"), "source", _plain_label("namespace").alias("namespace"))
        .agg(
            F.sum("value").alias("rate"),
            F.coalesce(F.sum(F.when(slow, F.col("value"))), F.lit(0.0)).alias("slow_rate"),
            F.coalesce(F.sum(F.when(stalled, F.col("value"))), F.lit(0.0)).alias("stalled_rate"),
        )
    )
    worst = F.max(F.struct(F.col("slow_rate").alias("namespace_rate"), "namespace")).alias("worst")
    by_source = by_namespace.groupBy("of", "source").agg(
        F.sum("rate").alias("rate"),
        F.sum("slow_rate").alias("slow_rate"),
        F.sum("stalled_rate").alias("stalled_rate"),
        worst,
    )
    return by_source.select(
        "of",
        "source",
        "rate",
        "slow_rate",
        "stalled_rate",
        F.expr("if(rate > 0, slow_rate * 100 / rate, 0.0)").alias("slow_percent"),
        F.expr("if(rate > 0, stalled_rate * 100 / rate, 0.0)").alias("stalled_percent"),
        "worst.namespace",
        "worst.namespace_rate",
    )


def _overflow(series: str) -> str:
    return f"{series}_OVERFLOW"


def _plain_label(name: str) -> Column:
    """A label whose value needs no escapes in JSON, mostly without parsing that: there are many samples."""
    begin, labels = f'"{name}":"', F.col("labels_json")
    rest = F.substring_index(labels, begin, -1)
    return F.when(labels.contains(begin), F.substring_index(rest, '"', 1)).otherwise(label(name))
