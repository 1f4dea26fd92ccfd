"""Asks brokers, namespaces and owners of suspects in parallel: each is a row, whose answer becomes Arrow batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa

from pulsar_steward.collect.arrow import (
    BROKER_TABLES,
    DRILL_TABLES,
    ENDPOINT_TABLES,
    NAMESPACE_TABLES,
    SUSPECTS,
    WRITTEN,
    as_answer,
)
from pulsar_steward.collect.broker import BrokerTask, Scope, read_brokers
from pulsar_steward.collect.drill import DrillTask, drill
from pulsar_steward.collect.files import TableFiles
from pulsar_steward.collect.metrics import read_endpoint
from pulsar_steward.collect.namespace import Placement, read_namespaces
from pulsar_steward.collect.suspects import Worst
from pulsar_steward.model.tables import BROKERS
from steward_spark.map_arrow import map_in_arrow
from steward_spark.schemas import answer_ddl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from pulsar_steward.admin.settings import AdminSettings
    from pulsar_steward.collect.arrow import Piece
    from pulsar_steward.model.tables import Table
    from pulsar_steward.policy.schema import CollectPolicy

NAMESPACES_A_TASK = 200
"""Namespaces that one task asks for in turn, a few milliseconds each."""

FEWEST_TASKS = 4
"""For brokers, where there are as many: also as many files as a large table is read from."""

TASKS_A_CORE = 2
"""So that one that has to wait for a broker does not leave its core idle."""

ASKED_A_CORE = 4
"""Brokers asked at the same time: while one's answer is read, others make theirs. So many documents are in memory."""


class BrokerQuestions:
    """What all brokers are asked, divided into tasks.

    The settings travel inside the pickled functions, as Spark's configuration and plans may be logged.

    Args:
        spark: The session.
        settings: How to reach the cluster.
        tasks: The brokers.
        scope: How much is read of each.
        at_once: Brokers asked at the same time, at most; None: `ASKED_A_CORE` for each of Spark's cores.
    """

    def __init__(
        self,
        spark: SparkSession,
        settings: AdminSettings,
        tasks: Sequence[BrokerTask],
        scope: Scope,
        at_once: int | None = None,
    ) -> None:
        cores = spark.sparkContext.defaultParallelism
        most = at_once or ASKED_A_CORE * cores
        self._spark, self._count = spark, len(tasks)
        self._partitions = min(len(tasks), max(FEWEST_TASKS, TASKS_A_CORE * cores), most)
        each = max(1, most // min(cores, self._partitions or 1))

        def read(indices: Iterable[int]) -> Iterator[Piece]:
            worst = Worst(scope.policy.drilled_topics)
            for piece in read_brokers(settings, (tasks[index] for index in indices), scope, each):
                worst.sees(piece)
                yield piece
            yield from worst.found()

        self._read = read

    def answers(self) -> DataFrame:
        """One struct column for each of `BROKER_TABLES`; they are asked anew whenever it is computed."""
        return _ask(_numbered(self._spark, self._count, self._partitions), self._read, BROKER_TABLES)

    def written(self, folder: Path, tables: Sequence[Table]) -> DataFrame:
        """Has the tasks write some tables, as `TableFiles` does; struct columns `brokers`, `suspects` and `written`.

        Args:
            folder: Where all tasks and the driver see it.
            tables: Of `BROKER_TABLES`, all but `brokers`.
        """
        read = self._read

        def write(indices: Iterable[int]) -> Iterator[Piece]:
            # Of several tries of one task, those files count that the one names which ended well.
            with TableFiles(folder, f"part-{uuid4().hex}.parquet", tables) as files:
                yield from (piece for piece in read(indices) if not files.takes(piece))
                yield from files.written()

        numbers = _numbered(self._spark, self._count, self._partitions)
        return _ask(numbers, write, (BROKERS, SUSPECTS, WRITTEN))


def ask_namespaces(
    spark: SparkSession, settings: AdminSettings, placement: Placement, namespaces: Sequence[str]
) -> DataFrame:
    """What is known of namespaces, one struct column for each of `NAMESPACE_TABLES`."""

    def read(names: Iterable[str]) -> Iterator[Piece]:
        return read_namespaces(settings, placement, names)

    # Not in the function, as their number has no bound: Spark writes a function to a disk that is larger than 1 MiB,
    # and it holds the token.
    names = spark.createDataFrame(pa.table({"namespace": pa.array(namespaces, pa.string())}))
    return _ask(names.repartition(max(1, -(-len(namespaces) // NAMESPACES_A_TASK))), read, NAMESPACE_TABLES)


def ask_endpoints(spark: SparkSession, settings: AdminSettings, policy: CollectPolicy) -> DataFrame:
    """What bookies and ZooKeeper tell, one struct column for each of `ENDPOINT_TABLES`."""
    urls = policy.metrics_urls

    def read(indices: Iterable[int]) -> Iterator[Piece]:
        for index in indices:
            yield from read_endpoint(settings, urls[index], policy.metrics_megabytes)

    return _ask(_numbered(spark, len(urls), len(urls)), read, ENDPOINT_TABLES)


def ask_owners(
    spark: SparkSession, settings: AdminSettings, tasks: Sequence[DrillTask], policy: CollectPolicy
) -> DataFrame:
    """What owners say of suspects, one struct column for each of `DRILL_TABLES`; one task a broker."""

    def read(indices: Iterable[int]) -> Iterator[Piece]:
        for index in indices:
            yield from drill(settings, tasks[index], policy)

    return _ask(_numbered(spark, len(tasks), len(tasks)), read, DRILL_TABLES)


def rows_of(answers: DataFrame, table: Table) -> DataFrame:
    """One table's rows of the answers."""
    return answers.where(answers[table.name].isNotNull()).select(f"{table.name}.*")


def table_of(answers: pa.Table, table: Table) -> pa.Table:
    """The same of answers that are here."""
    return pa.Table.from_struct_array(answers[table.name].drop_null())


def _numbered(spark: SparkSession, count: int, partitions: int) -> DataFrame:
    """The numbers of so many things, divided into partitions."""
    return spark.range(0, count, 1, max(1, min(count, partitions)))


def _ask(things: DataFrame, read: Callable[[Iterable[Any]], Iterable[Piece]], tables: Sequence[Table]) -> DataFrame:
    """What is read of the things that a frame's only column names."""

    def answered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        named = (thing for batch in batches for thing in batch.column(0).to_pylist())
        return (as_answer(piece, tables) for piece in read(named))

    return map_in_arrow(things, answered, answer_ddl(tables))
