"""One cluster observed in three ways: by Spark into a folder, by Spark to where only Java reaches, and on threads."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lab.simulator import running_simulator as running
from pulsar_steward.collect.arrow import BROKER_TABLES, answer_schema
from pulsar_steward.collect.collecting import CollectParameters, collect
from pulsar_steward.collect.reading import TaskDivision, WrittenByTasks
from pulsar_steward.diagnose.diagnosing import diagnose
from pulsar_steward.model.tables import (
    BROKERS,
    COLLECTED,
    CONFIGURATION,
    DIAGNOSED,
    DRILLED,
    FINDINGS,
    METRICS,
    SNAPSHOT,
    TOPICS,
    VERDICTS,
    Table,
)
from pulsar_steward.policy.schema import Policy
from pulsar_steward.pulsar.settings import AdminSettings
from pulsar_steward.runtime.parallel import OnThreads
from pulsar_steward.snapshots.folder import STAGING, LocalFiles, SnapshotFolder, snapshot_uri
from steward_spark.reading import answer_ddl
from tests.spark.conftest import TAKEN_AT, Observed, a_cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lab.simulator import Simulator

pytestmark = pytest.mark.spark

OF_THE_MOMENT = {
    BROKERS.name: {"read_milliseconds", "clock_skew_milliseconds", "cpu_percent", "memory_percent"},
    METRICS.name: {"value"},
    # The simulator's ledgers were closed a moment ago.
    DRILLED.name: {"oldest_ledger_milliseconds", "unread_closed_milliseconds"},
    SNAPSHOT.name: {"read_from", "read_until"},
}
CLOCKS = re.compile(r"within [0-9.]+ s")
"""What `clock-skew` says of clocks that are all well."""


def rows(folder: SnapshotFolder, table: Table) -> list[dict[str, Any]]:
    """A table's rows, in one order, without what differs from one moment to the next."""
    left_out = OF_THE_MOMENT.get(table.name, set())
    read = folder.read(table).to_pylist()
    if table is VERDICTS:
        read = [row | {"reason": CLOCKS.sub("within a moment", row["reason"])} for row in read]
    return sorted(({key: row[key] for key in row if key not in left_out} for row in read), key=str)


def on_threads(cluster: Simulator, out: Path) -> SnapshotFolder:
    """Observes the cluster on threads, as the command line does."""
    folder, threads = SnapshotFolder(LocalFiles(), snapshot_uri(str(out), "lab", TAKEN_AT)), OnThreads(4)
    settings = AdminSettings(urls=cluster.admin_urls)
    reading = WrittenByTasks(settings, folder, threads, TaskDivision(4, 4))
    collect(settings, CollectParameters(cluster="lab", taken_at=TAKEN_AT), folder, reading, threads)
    diagnose(folder, Policy(), threads)
    return folder


def test_three_ways_lead_to_the_same_snapshot_and_the_same_findings(
    observed: Observed, elsewhere: str, tmp_path: Path
) -> None:
    """A snapshot has the same rows whether threads, the tasks of Spark or Spark itself wrote it."""
    with running(a_cluster(5)) as cluster:
        here = on_threads(cluster, tmp_path / "threads")
        folder = observed(cluster, str(tmp_path / "here"))
        other = observed(cluster, elsewhere)
    assert (here.staging() is None, folder.staging() is None, other.staging() is None) == (False, False, True)
    for table in (*COLLECTED, *DIAGNOSED):
        expected = rows(here, table)
        assert rows(folder, table) == expected, table.name
        assert rows(other, table) == expected, table.name
    for table in (SNAPSHOT, CONFIGURATION, METRICS, FINDINGS, VERDICTS):
        assert here.read(table).num_rows, table.name
    assert here.read(TOPICS).num_rows >= 27
    assert not any(Path(each.uri, STAGING).exists() for each in (here, folder))


def test_spark_and_arrow_agree_on_what_tasks_answer(spark: SparkSession) -> None:
    made = spark.createDataFrame(answer_schema(BROKER_TABLES).empty_table())
    assert made.schema.simpleString() == spark.createDataFrame([], answer_ddl(BROKER_TABLES)).schema.simpleString()
