"""A snapshot's frames while it is diagnosed: what several checks read is read once, and let go of at the end.

A small table is read into the driver. Spark then filters and selects while it plans, without a job, and compiles
nothing; of a small cluster's snapshot, nearly all the time went into that. What checks derive of large tables is kept
in Spark's memory, or on its disk where that is full.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from pulsar_steward.model.tables import METRICS, SUBSCRIPTIONS, TOPICS
from steward_spark.frames import Frames
from steward_spark.local import on_driver
from steward_spark.once import Once
from steward_spark.tuning import OF_LARGE, OF_SMALL, tuned

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from pulsar_steward.model.tables import Table
    from steward_spark.place import SnapshotPlace

SMALL_BYTES = 256 * 1024
"""Parquet of a table that is read into the driver: about ten thousand topics."""


@contextmanager
def held(spark: SparkSession, place: SnapshotPlace, earlier: Sequence[SnapshotPlace]) -> Iterator[Frames]:
    """The frames of a snapshot and of earlier ones; afterwards nothing of them may be used."""
    small = all(place.size(table) <= SMALL_BYTES for table in (TOPICS, SUBSCRIPTIONS, METRICS))
    kept: list[DataFrame] = []

    def in_memory(frame: DataFrame) -> DataFrame:
        kept.append(frame.persist())
        return frame

    before = [Frames(_reader(each)) for each in earlier]
    frames = Frames(_reader(place), earlier=before, hold=on_driver if small else in_memory)
    try:
        with tuned(spark, OF_SMALL if small else OF_LARGE):
            yield frames
    finally:
        for frame in kept:
            frame.unpersist()


def _reader(place: SnapshotPlace) -> Callable[[Table], DataFrame]:
    tables = Once()

    def made(table: Table) -> DataFrame:
        frame = place.read(table)
        return on_driver(frame) if place.size(table) <= SMALL_BYTES else frame

    return lambda table: tables.get(table.name, lambda: made(table))
