"""One Spark session for all tests that need one."""

from __future__ import annotations

import os
import shutil
import warnings
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lab.testing import cannot_run
from pulsar_steward.collect.arrow import schema_of
from steward_spark.frames import Frames
from steward_spark.holding import OF_SMALL, on_driver
from steward_spark.session import spark_session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession

    from pulsar_steward.model.tables import Table

Rows = dict[str, list[dict[str, Any]]]


def need_java() -> None:
    """Skips where there is no Java, saying so; with ``CI=true`` it fails instead."""
    if not shutil.which("java") and not os.environ.get("JAVA_HOME"):
        cannot_run("no Java on this machine: Spark needs version 17 or later")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session as the jobs start it, set as they set it for a small snapshot."""
    need_java()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # the gateway's own sockets
        session = spark_session("tests")
        for key, value in OF_SMALL.items():
            session.conf.set(key, value)
        yield session
        session.stop()


@pytest.fixture
def frame_of(spark: SparkSession) -> Callable[[Table, list[dict[str, Any]]], DataFrame]:
    """Makes a table's DataFrame of rows that may leave columns out."""

    def make(table: Table, rows: list[dict[str, Any]]) -> DataFrame:
        # By way of Arrow the rows are a part of the plan, as those of a small snapshot are: no job is needed for them.
        columns = {name: [row.get(name) for row in rows] for name in table.names}
        return spark.createDataFrame(pa.Table.from_pydict(columns, schema=schema_of(table)))

    return make


@pytest.fixture
def frames_of(frame_of: Callable[[Table, list[dict[str, Any]]], DataFrame]) -> Callable[[Rows], Frames]:
    """Makes a snapshot's frames of rows by table; tables that are left out are empty."""

    def make(rows: Rows) -> Frames:
        return Frames(lambda table: frame_of(table, rows.get(table.name, [])), hold=on_driver)

    return make
