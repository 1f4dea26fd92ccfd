"""Collecting, as the job does: ``python -m benchmarks.bench.collecting OUT URL...``, after Spark has started."""

from __future__ import annotations

import functools
import sys
import time
from datetime import UTC, datetime
from typing import Any

import msgspec

from benchmarks.bench.figures import Meter, told
from pulsar_steward.admin.settings import AdminSettings
from pulsar_steward.model.tables import TOPICS
from pulsar_steward.policy.schema import Policy
from steward_spark.collecting import Order, _Collecting, collect
from steward_spark.place import SnapshotPlace
from steward_spark.session import spark_session


def main(out: str, *urls: str) -> None:
    """Takes one snapshot of the cluster behind these URLs."""
    spark = spark_session("bench")
    # A worker process starts with the first job; the job of an hour's schedule pays for it just as once.
    spark.sparkContext.parallelize(range(2), 2).map(lambda number: number).count()
    policy, parts = Policy(), dict[str, float]()
    timed(_Collecting, "brokers", "ask all brokers, and write what they answer", parts)
    timed(_Collecting, "_coordinators", "ask for all namespaces, and put all bundles together", parts)
    timed(_Collecting, "_drilled", "find suspects", parts)
    timed(SnapshotPlace, "write", "ask owners about suspects, and write the small tables", parts)
    meter = Meter()
    order = Order(cluster="bench", out=out, taken_at=datetime.now(UTC), policy=policy.collect)
    uri = collect(spark, AdminSettings(urls=urls, limits=policy.admin), order)
    figures = meter.figures("topics", 0, parts)
    count = SnapshotPlace(spark, uri).read(TOPICS).count()
    spark.stop()
    told(msgspec.structs.replace(figures, count=count))


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
