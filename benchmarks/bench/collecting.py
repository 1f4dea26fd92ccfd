"""Collecting, as the job does: ``python -m benchmarks.bench.collecting OUT URL...``, after Spark has started."""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime

from benchmarks.bench.figures import Meter, told
from pulsar_steward.admin.settings import AdminSettings
from pulsar_steward.model.tables import TOPICS
from pulsar_steward.policy.schema import Policy
from steward_spark.collecting import Order, collect
from steward_spark.place import SnapshotPlace
from steward_spark.session import spark_session


def main(out: str, *urls: str) -> None:
    """Takes one snapshot of the cluster behind these URLs."""
    spark = spark_session("bench")
    # A worker process starts with the first job; the job of an hour's schedule pays for it just as once.
    spark.sparkContext.parallelize(range(2), 2).map(lambda number: number).count()
    policy = Policy()
    meter, began = Meter(), time.perf_counter()
    order = Order(cluster="bench", out=out, taken_at=datetime.now(UTC), policy=policy.collect)
    uri = collect(spark, AdminSettings(urls=urls, limits=policy.admin), order)
    took = time.perf_counter() - began
    figures = meter.figures("topics", 0, {"collect": took})
    count = SnapshotPlace(spark, uri).read(TOPICS).count()
    spark.stop()
    told(type(figures)(**{**{name: getattr(figures, name) for name in figures.__struct_fields__}, "count": count}))


if __name__ == "__main__":
    main(*sys.argv[1:])
