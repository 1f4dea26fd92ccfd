"""One simulated cluster, and the two kinds of places that Spark observes it into."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from lab.simulator import ClusterSpec, NamespaceSpec, SubscriptionSpec, TopicSpec
from pulsar_steward.policy.schema import Policy
from pulsar_steward.pulsar.settings import AdminSettings
from pulsar_steward.snapshots.folder import SnapshotFolder
from steward_spark.hadoop_files import files_at
from steward_spark.observing import ObservationParameters, observe

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from lab.simulator import Simulator

TAKEN_AT = datetime(2026, 1, 31, 23, 59, 59, tzinfo=UTC)
TROUBLE = SubscriptionSpec("s", consumers=2, backlog=7, unacked=5, ack_holes=3, delayed=2)


class Observed(Protocol):
    """Observes a cluster by Spark."""

    def __call__(self, cluster: Simulator, out: str, policy: Policy | None = None) -> SnapshotFolder:
        """Returns the snapshot, which is diagnosed."""


def a_cluster(brokers: int) -> ClusterSpec:
    """A cluster of the given number of brokers, with some topics whose own statistics are collected."""
    return ClusterSpec(
        namespaces=tuple(
            NamespaceSpec(f"acme/n{number}", topics=(TopicSpec("t", partitions=9, subscriptions=(TROUBLE,)),))
            for number in range(3)
        ),
        brokers=brokers,
    )


@pytest.fixture
def observed(spark: SparkSession) -> Observed:
    """Observes a cluster by a whole job, as `observe.py` does."""

    def carry_out(cluster: Simulator, out: str, policy: Policy | None = None) -> SnapshotFolder:
        settings = AdminSettings(urls=cluster.admin_urls)
        observation = ObservationParameters(cluster="lab", out=out, taken_at=TAKEN_AT, policy=policy or Policy())
        uri = observe(spark, settings, observation)
        return SnapshotFolder(files_at(spark, uri), uri)

    return carry_out


@pytest.fixture
def elsewhere(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    """A folder of another file system of Hadoop, which is reached through Java alone."""
    hadoop: Any = spark.sparkContext._jsc.hadoopConfiguration()
    name = f"steward{tmp_path.name.replace('_', '').replace('-', '')}"
    Path(tmp_path / "elsewhere").mkdir()
    link = f"fs.viewfs.mounttable.{name}.link./snapshots"
    hadoop.set(link, f"file://{tmp_path / 'elsewhere'}")
    yield f"viewfs://{name}/snapshots"
    hadoop.unset(link)
