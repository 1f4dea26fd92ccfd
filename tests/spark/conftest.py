"""A Spark session as the jobs set it, and snapshots made of rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pulsar_steward.collect.arrow import schema_of
from pulsar_steward.model.tables import COLLECTED
from steward_spark.frames import Frames
from steward_spark.local import on_driver
from steward_spark.place import SnapshotPlace, snapshot_uri
from steward_spark.tuning import OF_SMALL

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from pulsar_steward.model.tables import Table

Rows = dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="session")
def spark(spark: SparkSession) -> SparkSession:
    """The session of all tests, set as the jobs set it for a small snapshot."""
    for key, value in OF_SMALL.items():
        spark.conf.set(key, value)
    return spark


@pytest.fixture
def frame_of(spark: SparkSession) -> Callable[[Table, list[dict[str, Any]]], DataFrame]:
    """Makes a table's DataFrame of rows that may leave columns out."""

    def make(table: Table, rows: list[dict[str, Any]]) -> DataFrame:
        # By way of Arrow the rows are a part of the plan, as those of a small snapshot are: no job is needed for them.
        return spark.createDataFrame(arrow_of(table, rows))

    return make


@pytest.fixture
def frames_of(frame_of: Callable[[Table, list[dict[str, Any]]], DataFrame]) -> Callable[[Rows], Frames]:
    """Makes a snapshot's frames of rows by table; tables that are left out are empty."""

    def make(rows: Rows) -> Frames:
        return Frames(lambda table: frame_of(table, rows.get(table.name, [])), hold=on_driver)

    return make


@pytest.fixture
def place_of(spark: SparkSession, tmp_path: Path) -> Callable[[Rows], SnapshotPlace]:
    """Writes a snapshot of rows as `collect` does, in place of one of the same time; it is not diagnosed."""

    def write(rows: Rows) -> SnapshotPlace:
        (about,) = rows["snapshot"]
        place = SnapshotPlace(spark, snapshot_uri(str(tmp_path), about["cluster"], about["taken_at"]))
        place.begin()
        for table in COLLECTED:
            folder = Path(place.uri, table.name)
            folder.mkdir(parents=True, exist_ok=True)
            pq.write_table(arrow_of(table, rows.get(table.name, [])), folder / "part-0.parquet")
        place.finish()
        return place

    return write


def arrow_of(table: Table, rows: list[dict[str, Any]]) -> pa.Table:
    """A table of rows that may leave columns out."""
    columns = {name: [row.get(name) for row in rows] for name in table.names}
    return pa.Table.from_pydict(columns, schema=schema_of(table))
