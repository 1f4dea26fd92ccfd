"""The diagnosis of a snapshot on workers of a standalone Spark cluster on this machine, each with one core."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.bench.median import median
from benchmarks.diagnose_one import One
from benchmarks.processes import told_by
from lab.spark_cluster import running_spark

if TYPE_CHECKING:
    from pathlib import Path

MEMORY_MB = 2048
"""Of each worker; its executor's Java takes half of it."""


def diagnosed_on(workers: int, snapshot: Path, home: Path, times: int) -> One:
    """The median diagnosis.

    Args:
        workers: How many.
        snapshot: Its folder.
        home: A new folder for the cluster.
        times: How often it is measured.
    """
    with running_spark(home, workers=workers, memory_mb=MEMORY_MB) as cluster:
        conf = {
            "spark.executor.memory": f"{MEMORY_MB // 2}m",
            "spark.cores.max": str(workers),
            # Begins when all executors are there, so that each of them gets its share.
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        }
        words = [f"--conf {key}={value}" for key, value in conf.items()]
        environment = {
            "PYSPARK_SUBMIT_ARGS": f"--master {cluster.url} {' '.join(words)} pyspark-shell",
            "SPARK_LOCAL_IP": cluster.host,
        }
        return median(
            lambda: told_by(One, "benchmarks.diagnose_one", snapshot, "spark", environment=environment),
            lambda each: each.figures,
            times,
        )
