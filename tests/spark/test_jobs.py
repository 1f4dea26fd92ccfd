"""How many jobs Spark is given for an observation: a few, whatever the size of the cluster and the number of checks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lab.simulator import running_simulator as running
from pulsar_steward.checks.registry import CHECKS
from pulsar_steward.diagnose import diagnosing
from pulsar_steward.policy.schema import Policy
from pulsar_steward.pulsar.settings import AdminSettings
from steward_spark.observing import ObservationParameters, observe
from tests.spark.conftest import TAKEN_AT, Observed, a_cluster

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from pulsar_steward.snapshots.folder import SnapshotFolder

pytestmark = [pytest.mark.spark, pytest.mark.extended("tests/spark/test_equal.py")]

MOST_JOBS = 10


def next_job(spark: SparkSession) -> int:
    """The id of a job that is started now: they are numbered from 0."""
    context = spark.sparkContext
    context.setJobGroup("counting", "counting")
    context.parallelize([0], 1).count()
    ids = context.statusTracker().getJobIdsForGroup("counting")
    context._jsc.clearJobGroup()
    return int(max(ids))


@pytest.mark.parametrize("place", ["folder", "elsewhere"])
def test_an_observation_takes_few_jobs(
    spark: SparkSession, observed: Observed, elsewhere: str, tmp_path: Path, place: str, record_property: object
) -> None:
    counts: dict[tuple[int, int], int] = {}
    for brokers, checks in ((2, len(CHECKS)), (40, len(CHECKS)), (2, 2)):
        out = f"{tmp_path / 'here' if place == 'folder' else elsewhere}/{brokers}-{checks}"
        with running(a_cluster(brokers)) as cluster, pytest.MonkeyPatch.context() as patch:
            _all, *others = diagnosing.diagnose.__defaults__ or ()
            patch.setattr(diagnosing.diagnose, "__defaults__", (CHECKS[:checks], *others))
            before = next_job(spark)
            folder = observed(cluster, out)
            counts[brokers, checks] = next_job(spark) - before - 1
        assert folder.diagnosed()
    print(f"jobs of an observation ({place}): {counts}")  # noqa: T201 - the number is what this is about
    assert len(set(counts.values())) == 1, counts
    assert max(counts.values()) <= MOST_JOBS, counts


def test_a_retry_after_collecting_only_diagnoses(observed: Observed, tmp_path: Path) -> None:
    with running(a_cluster(2)) as cluster:
        first = observed(cluster, str(tmp_path))
        files = files_of(first)
        first.files.delete(f"{first.uri}/verdicts")
        assert not first.diagnosed()
        asked = len(cluster.requests.all())
        again = observed(cluster, str(tmp_path))
        assert len(cluster.requests.all()) == asked
    assert again.uri == first.uri
    assert again.diagnosed()
    assert files_of(again) == files


def test_a_retry_needs_no_cluster_any_more(spark: SparkSession, observed: Observed, tmp_path: Path) -> None:
    """A retry of a finished observation succeeds when the cluster can no longer be reached."""
    with running(a_cluster(2)) as cluster:
        uri = observed(cluster, str(tmp_path)).uri
    gone = AdminSettings(urls=("http://127.0.0.1:1",))
    observation = ObservationParameters(cluster="lab", out=str(tmp_path), taken_at=TAKEN_AT, policy=Policy())
    assert observe(spark, gone, observation) == uri


def files_of(folder: SnapshotFolder) -> list[str]:
    """Files that were collected."""
    return [file for table in ("topics", "metrics", "brokers") for file in folder.files.names(f"{folder.uri}/{table}")]
