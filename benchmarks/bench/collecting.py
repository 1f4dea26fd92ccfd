"""Collecting: ``python -m benchmarks.bench.collecting spark|embedded OUT URL...``, after Spark, if any, has started."""

from __future__ import annotations

import functools
import sys
import time
from datetime import UTC, datetime
from typing import Any

import msgspec
import pyarrow.parquet as pq

from benchmarks.bench.figures import Figures, Meter, told
from benchmarks.observing import collected_here
from pulsar_steward.collect.collecting import Collecting, CollectParameters
from pulsar_steward.model.tables import TOPICS
from pulsar_steward.policy.schema import Policy
from pulsar_steward.pulsar.settings import AdminSettings
from pulsar_steward.snapshots.folder import LocalFiles, SnapshotFolder, snapshot_uri
from steward_spark.observing import ObservationParameters, collect_snapshot
from steward_spark.session import spark_session

CLUSTER = "bench"


def main(how: str, out: str, *urls: str) -> None:
    """Takes one snapshot of the cluster behind these URLs."""
    parts = dict[str, float]()
    timed(Collecting, "brokers", "ask all brokers, and write what they answer", parts)
    timed(Collecting, "_namespaces_and_endpoints", "ask for all namespaces", parts)
    timed(Collecting, "_drilled", "find suspects, and ask their owners about them", parts)
    timed(SnapshotFolder, "write", "write the small tables", parts)
    policy, now = Policy(), datetime.now(UTC)
    settings = AdminSettings(urls=urls, limits=policy.admin)
    folder = SnapshotFolder(LocalFiles(), snapshot_uri(out, CLUSTER, now))
    if how == "spark":
        figures = _by_spark(
            settings, ObservationParameters(cluster=CLUSTER, out=out, taken_at=now, policy=policy), folder
        )
    else:
        meter = Meter()
        collected_here(settings, CollectParameters(cluster=CLUSTER, taken_at=now, policy=policy.collect), folder)
        figures = meter.figures("topics", 0)
    files = [file for shard in folder.shards() for file in shard[TOPICS.name]]
    count = sum(pq.read_metadata(file).num_rows for file in files)
    told(msgspec.structs.replace(figures, count=count, parts=parts))


def _by_spark(settings: AdminSettings, observation: ObservationParameters, folder: SnapshotFolder) -> Figures:
    spark = spark_session(CLUSTER)
    # A worker process starts with the first job; the job of an hour's schedule pays for it just as once.
    spark.sparkContext.parallelize(range(2), 2).map(lambda number: number).count()
    try:
        meter = Meter()
        collect_snapshot(spark, settings, observation, folder)
        return meter.figures("topics", 0)
    finally:
        spark.stop()


def timed(owner: type, method: str, words: str, parts: dict[str, float]) -> None:
    """Has a method note how long it took, summed over its calls."""
    original = getattr(owner, method)

    @functools.wraps(original)
    def measured(*arguments: Any) -> Any:
        began = time.perf_counter()
        try:
            return original(*arguments)
        finally:
            parts[words] = parts.get(words, 0.0) + time.perf_counter() - began

    setattr(owner, method, measured)


if __name__ == "__main__":
    main(*sys.argv[1:])
