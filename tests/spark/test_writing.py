"""The two ways from brokers' answers into a snapshot: files that tasks write themselves, and Spark's own."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lab.simulator import ClusterSpec, NamespaceSpec, SubscriptionSpec, TopicSpec
from lab.simulator import running_simulator as running
from pulsar_steward.admin.settings import AdminSettings
from pulsar_steward.errors import SnapshotError
from pulsar_steward.model.tables import BROKERS, COLLECTED, METRICS, SNAPSHOT, TOPICS, Table
from steward_spark.collecting import Order, collect
from steward_spark.place import STAGING, SnapshotPlace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TROUBLE = SubscriptionSpec("s", consumers=2, backlog=7, unacked=5, ack_holes=3, delayed=2)
SPEC = ClusterSpec(
    namespaces=tuple(
        NamespaceSpec(f"acme/n{number}", topics=(TopicSpec("t", partitions=9, subscriptions=(TROUBLE,)),))
        for number in range(3)
    ),
    brokers=5,
)
OF_THE_MOMENT = {
    BROKERS.name: {"read_milliseconds", "clock_skew_milliseconds"},
    METRICS.name: {"value"},
    SNAPSHOT.name: {"taken_at"},
}


def rows(place: SnapshotPlace, table: Table) -> list[dict[str, Any]]:
    """A table's rows, in one order, without what differs from one moment to the next."""
    left_out = OF_THE_MOMENT.get(table.name, set())
    read = (row.asDict() for row in place.read(table).collect())
    return sorted(({key: row[key] for key in row if key not in left_out} for row in read), key=str)


@pytest.mark.extended(
    "tests/spark/test_collecting.py",
    "tests/spark/test_writing.py::test_files_of_tries_that_did_not_end_well_do_not_count",
)
def test_both_ways_lead_to_the_same_snapshot(spark: SparkSession, tmp_path: Path) -> None:
    """A folder is written by the tasks, any other file system by Spark; readers see no difference."""
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    hadoop.set("fs.viewfs.mounttable.steward.link./snapshots", f"file://{tmp_path / 'elsewhere'}")
    Path(tmp_path / "elsewhere").mkdir()
    taken_at = datetime(2026, 1, 31, 23, 59, 59, tzinfo=UTC)
    with running(SPEC) as cluster:
        settings = AdminSettings(urls=cluster.admin_urls)
        outs = (str(tmp_path / "here"), "viewfs://steward/snapshots")
        folder, other = (
            SnapshotPlace(spark, collect(spark, settings, Order(cluster="lab", out=out, taken_at=taken_at)))
            for out in outs
        )

    assert (folder.staging() is None, other.staging() is None) == (False, True)
    for table in COLLECTED:
        assert rows(folder, table) == rows(other, table), table.name
    assert folder.read(TOPICS).count() >= 27
    assert not Path(folder.uri, STAGING).exists()


def test_files_of_tries_that_did_not_end_well_do_not_count(spark: SparkSession, tmp_path: Path) -> None:
    """A task that was tried again, or two that ran at once, left files that nobody named."""
    with running(SPEC) as cluster:
        settings = AdminSettings(urls=cluster.admin_urls)
        order = Order(cluster="lab", out=str(tmp_path), taken_at=datetime(2026, 1, 1, tzinfo=UTC))
        place = SnapshotPlace(spark, collect(spark, settings, order))
        count = place.read(TOPICS).count()
        (one, *_) = Path(place.uri, TOPICS.name).glob("*.parquet")
        staged = Path(place.uri, STAGING, TOPICS.name)
        staged.mkdir(parents=True)
        os.link(one, staged / "part-of-a-lost-try.parquet")

        collect(spark, settings, order)

    assert place.read(TOPICS).count() == count


def test_files_that_the_driver_does_not_see_are_an_error(spark: SparkSession, tmp_path: Path) -> None:
    """Tasks on other machines wrote them there: half of a snapshot would be missing."""
    place = SnapshotPlace(spark, str(tmp_path))

    with pytest.raises(SnapshotError, match=r"topics/part-1\.parquet, which a Spark task wrote, is not there.*hdfs"):
        place.take_in(TOPICS, ["part-1.parquet"])
