"""Asks brokers and namespaces in parallel: every one of them is a row, and what it answers becomes Arrow batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pulsar_steward.collect.arrow import BROKER_TABLES, NAMESPACE_TABLES
from pulsar_steward.collect.broker import BrokerTask, read_broker
from pulsar_steward.collect.namespace import Placement, read_namespaces
from steward_spark.map_arrow import map_in_arrow
from steward_spark.schemas import answer_ddl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from pulsar_steward.admin.settings import AdminSettings
    from pulsar_steward.model.tables import Table

NAMESPACES_A_TASK = 200
"""Namespaces that one task asks for in turn, a few milliseconds each."""


def ask_brokers(
    spark: SparkSession, settings: AdminSettings, tasks: Sequence[BrokerTask], at_once: int | None
) -> DataFrame:
    """What brokers answer, one struct column for each of `BROKER_TABLES`; asked anew whenever it is computed.

    The settings travel inside the pickled function, as Spark's configuration and plans may be logged.

    Args:
        spark: The session.
        settings: How to reach the cluster.
        tasks: The brokers.
        at_once: Brokers asked at the same time, at most; None: as many as Spark has cores.
    """

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for index in _indices(batches):
            yield from read_broker(settings, tasks[index])

    return _ask(spark, len(tasks), at_once or len(tasks), read, BROKER_TABLES)


def ask_namespaces(
    spark: SparkSession, settings: AdminSettings, placement: Placement, namespaces: Sequence[str]
) -> DataFrame:
    """What is known of namespaces, one struct column for each of `NAMESPACE_TABLES`."""

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from read_namespaces(settings, placement, (namespaces[index] for index in _indices(batches)))

    return _ask(spark, len(namespaces), -(-len(namespaces) // NAMESPACES_A_TASK), read, NAMESPACE_TABLES)


def rows_of(answers: DataFrame, table: Table) -> DataFrame:
    """One table's rows of the answers."""
    return answers.where(answers[table.name].isNotNull()).select(f"{table.name}.*")


def _ask(
    spark: SparkSession, count: int, partitions: int, read: Callable[..., Any], tables: Sequence[Table]
) -> DataFrame:
    rows = spark.range(0, count, 1, max(1, min(count, partitions)))
    return map_in_arrow(rows, read, answer_ddl(tables))


def _indices(batches: Iterable[pa.RecordBatch]) -> Iterator[int]:
    for batch in batches:
        yield from batch.column(0).to_pylist()
