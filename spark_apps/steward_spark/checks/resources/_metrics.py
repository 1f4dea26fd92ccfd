"""What the checks of this group need of the table `metrics`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from steward_spark.checks.common.samples import of_processes

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from steward_spark.frames import Frames

STARTED = "process_start_time_seconds"


def samples(frames: Frames, *series: str) -> DataFrame:
    """The samples of these series, which are no namespaces' and no topics', that are numbers."""
    return of_processes(frames).where(F.col("series").isin(*series) & ~F.isnan("value"))


def label(name: str) -> Column:
    """One label of a sample; null where it has none of that name."""
    return F.get_json_object("labels_json", f"$.{name}")


def total(series: str) -> Column:
    """The sum of one series within a group; null where there is none of it."""
    return F.sum(F.when(F.col("series") == series, F.col("value")))


def highest(series: str) -> Column:
    """The highest value of one series within a group; null where there is none of it."""
    return F.max(F.when(F.col("series") == series, F.col("value")))


def silent_brokers(frames: Frames, *series: str) -> list[str]:
    """Brokers that were read, but of which no sample of any of these series is there."""
    return without(frames, samples(frames, *series))


def without(frames: Frames, told: DataFrame) -> list[str]:
    """Brokers that were read, but are no `source` in what was told."""
    heard = told.select(F.col("source").alias("broker")).distinct()
    silent = frames.brokers.where("read").join(heard, "broker", "left_anti")
    return sorted(row["broker"] for row in silent.select("broker").collect())
