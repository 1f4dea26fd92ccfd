"""What brokers count of their connections since they started, and how long that is ago."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from steward_spark.checks.common.samples import of_processes
from steward_spark.frames import few_once

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from steward_spark.frames import Frames

STARTED = "process_start_time_seconds"
ACTIVE = "pulsar_active_connections"
SUCCEEDED = "pulsar_connection_create_success_count"
FAILED = "pulsar_connection_create_fail_count"

SERIES = (STARTED, ACTIVE, SUCCEEDED)
"""Without these nothing can be said of a broker's connections."""

_HOUR = 3600


@few_once
def connections(frames: Frames) -> DataFrame:
    """Of every broker that was read, what it tells of its connections; null where it does not.

    Handshakes are counted, not sockets: probes of the port open sockets all the time and shake no hands.

    Returns:
        `broker`, `uptime_seconds`, `active`, `succeeded`, `failed`, `replaced` (connections since the start that are
        no longer there), `replaced_per_minute` and `turnovers_per_hour` (of all that are there now).
    """
    now = F.lit(frames.about.taken_at.timestamp())
    counted = (
        of_processes(frames)
        .where((F.col("source_kind") == "broker") & F.col("series").isin(*SERIES, FAILED))
        .groupBy(F.col("source").alias("broker"))
        .agg(
            (now - _value(STARTED)).alias("uptime_seconds"),
            _value(ACTIVE).alias("active"),
            _value(SUCCEEDED).alias("succeeded"),
            F.coalesce(_value(FAILED), F.lit(0.0)).alias("failed"),
        )
    )
    told = frames.brokers.where("read").select("broker").join(counted, "broker", "left")
    # `greatest` passes nulls over: what is not known must stay so.
    known = F.expr("active is not null and succeeded is not null")
    replaced = F.when(known, F.greatest(F.col("succeeded") - F.col("active"), F.lit(0.0)))
    uptime = F.nullif("uptime_seconds", F.lit(0.0))
    return (
        told.withColumn("replaced", replaced)
        .withColumn("replaced_per_minute", F.col("replaced") * 60 / uptime)
        .withColumn(
            "turnovers_per_hour",
            F.col("replaced") * _HOUR / uptime / F.greatest("active", F.lit(1.0)),
        )
    )


def _value(series: str) -> Column:
    """The sample of a series within a group; null where there is none, or no number."""
    return F.max(F.when((F.col("series") == series) & ~F.isnan("value"), F.col("value")))
