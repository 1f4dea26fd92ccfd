"""Broker reading for snapshots on storage that only Hadoop reaches: Spark's own writers write them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql.udf import UserDefinedFunction
from pyspark.util import PythonEvalType

from pulsar_steward.collect.arrow import BROKER_TABLES, answer_schema, as_answer
from pulsar_steward.collect.reading import SMALL_OF_BROKERS, BrokerReading, pieces_of
from pulsar_steward.model.tables import METRICS, SHARDED
from steward_spark.progress import watched

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pyspark.sql import SparkSession

    from pulsar_steward.collect.broker import BrokerTask, ReadScope
    from pulsar_steward.collect.reading import Tables, TaskDivision
    from pulsar_steward.model.tables import Table
    from pulsar_steward.pulsar.settings import AdminSettings
    from pulsar_steward.snapshots.folder import SnapshotFolder


def map_in_arrow(
    frame: DataFrame, function: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]], ddl: str
) -> DataFrame:
    """Applies a function to the batches of each partition; returns a frame of its results.

    Args:
        frame: The function's input.
        function: Pickled and run by Spark's Python workers.
        ddl: The columns of the batches that it yields.
    """
    made = UserDefinedFunction(function, returnType=ddl, evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
    column = made(*(frame[name] for name in frame.columns))
    # The same two inner objects that `DataFrame.mapInArrow` itself passes; no barrier, no resource profile.
    return DataFrame(frame._jdf.mapInArrow(column._jc, False, None), frame.sparkSession)


def answer_ddl(tables: Sequence[Table]) -> str:
    """DDL with one struct column per table, as `pulsar_steward.collect.arrow.answer_schema` has them."""
    return ", ".join(f"`{table.name}` struct<{_columns(table)}>" for table in tables)


def _columns(table: Table) -> str:
    return ", ".join(f"`{column.name}`: {column.kind.value}" for column in table.columns)


class KeptBySpark(BrokerReading):
    """Keeps what was read in Spark's memory, and on its disks where that is full, until it is written.

    Args:
        spark: The session.
        settings: Admin API settings of the cluster; they travel inside the pickled function.
        folder: The snapshot's folder.
        division: How brokers are divided into tasks.
    """

    def __init__(
        self, spark: SparkSession, settings: AdminSettings, folder: SnapshotFolder, division: TaskDivision
    ) -> None:
        self._spark, self._settings, self._folder, self._division = spark, settings, folder, division
        self._answers: DataFrame | None = None

    def read(self, tasks: Sequence[BrokerTask], scope: ReadScope) -> Tables:
        """See `BrokerReading.read`."""
        settings, at_once = self._settings, self._division.at_once

        def answered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            mine = (tasks[index] for batch in batches for index in batch.column(0).to_pylist())
            return (as_answer(piece, BROKER_TABLES) for piece in pieces_of(settings, mine, scope, at_once))

        count = self._division.tasks_for(len(tasks))
        numbers = self._spark.range(0, len(tasks), 1, count)
        self._answers = map_in_arrow(numbers, answered, answer_ddl(BROKER_TABLES)).persist(StorageLevel.MEMORY_AND_DISK)
        names = [table.name for table in SMALL_OF_BROKERS]
        some = " or ".join(f"`{name}` is not null" for name in names)
        with watched(self._spark, "brokers"):
            small = self._answers.where(some).select(*names).toArrow()
        schema = answer_schema(SMALL_OF_BROKERS)
        return {name: _rows(small[name], schema.field(name).type) for name in names}

    def samples(self, series: str) -> pa.Table:
        """See `BrokerReading.samples`."""
        rows = self._rows_of(METRICS)
        return rows.where((rows["series"] == series) & rows["topic"].isNotNull()).toArrow()

    def take_in(self) -> None:
        """See `BrokerReading.take_in`; rows that one task read have the same number in each table's file name."""
        for table in SHARDED:
            self._rows_of(table).write.mode("overwrite").parquet(f"{self._folder.uri}/{table.name}")

    def end(self) -> None:
        """See `BrokerReading.end`."""
        if self._answers is not None:
            self._answers.unpersist()

    def _rows_of(self, table: Table) -> DataFrame:
        if self._answers is None:
            raise RuntimeError("no broker was read yet")
        return self._answers.where(self._answers[table.name].isNotNull()).select(f"{table.name}.*")


def _rows(column: pa.ChunkedArray, kind: pa.DataType) -> pa.Table:
    return pa.Table.from_struct_array(column.drop_null().cast(kind))
