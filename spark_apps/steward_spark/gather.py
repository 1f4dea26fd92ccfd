"""Asks brokers, namespaces and owners of suspects in parallel: each is a row, whose answer becomes Arrow batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pulsar_steward.collect.arrow import BROKER_TABLES, DRILL_TABLES, ENDPOINT_TABLES, NAMESPACE_TABLES
from pulsar_steward.collect.broker import BrokerTask, Scope, read_broker
from pulsar_steward.collect.drill import DrillTask, drill
from pulsar_steward.collect.metrics import read_endpoint
from pulsar_steward.collect.namespace import Placement, read_namespaces
from steward_spark.map_arrow import map_in_arrow
from steward_spark.schemas import answer_ddl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from pulsar_steward.admin.settings import AdminSettings
    from pulsar_steward.model.tables import Table
    from pulsar_steward.policy.schema import CollectPolicy

NAMESPACES_A_TASK = 200
"""Namespaces that one task asks for in turn, a few milliseconds each."""


def ask_brokers(
    spark: SparkSession, settings: AdminSettings, tasks: Sequence[BrokerTask], scope: Scope, at_once: int | None
) -> DataFrame:
    """What brokers answer, one struct column for each of `BROKER_TABLES`; asked anew whenever it is computed.

    The settings travel inside the pickled function, as Spark's configuration and plans may be logged.

    Args:
        spark: The session.
        settings: How to reach the cluster.
        tasks: The brokers.
        scope: How much is read of each.
        at_once: Brokers asked at the same time, at most; None: as many as Spark has cores.
    """

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for index in _indices(batches):
            yield from read_broker(settings, tasks[index], scope)

    return _ask(spark, len(tasks), at_once or len(tasks), read, BROKER_TABLES)


def ask_namespaces(
    spark: SparkSession, settings: AdminSettings, placement: Placement, namespaces: Sequence[str]
) -> DataFrame:
    """What is known of namespaces, one struct column for each of `NAMESPACE_TABLES`."""

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from read_namespaces(settings, placement, (namespaces[index] for index in _indices(batches)))

    return _ask(spark, len(namespaces), -(-len(namespaces) // NAMESPACES_A_TASK), read, NAMESPACE_TABLES)


def ask_endpoints(spark: SparkSession, settings: AdminSettings, policy: CollectPolicy) -> DataFrame:
    """What bookies and ZooKeeper tell, one struct column for each of `ENDPOINT_TABLES`."""
    urls = policy.metrics_urls

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for index in _indices(batches):
            yield from read_endpoint(settings, urls[index], policy.metrics_megabytes)

    return _ask(spark, len(urls), len(urls), read, ENDPOINT_TABLES)


def ask_owners(
    spark: SparkSession, settings: AdminSettings, tasks: Sequence[DrillTask], policy: CollectPolicy
) -> DataFrame:
    """What owners say of suspects, one struct column for each of `DRILL_TABLES`; one task a broker."""

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for index in _indices(batches):
            yield from drill(settings, tasks[index], policy)

    return _ask(spark, len(tasks), len(tasks), read, DRILL_TABLES)


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
