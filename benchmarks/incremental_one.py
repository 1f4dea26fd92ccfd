"""What checks of tables that hardly change take, and what it takes to know that these did not change.

``python -m benchmarks.incremental_one SNAPSHOT``, made by `benchmarks.incremental`; the last line of the output is
`Resting` as JSON. Both are measured in a Java that has got warm.
"""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

import msgspec
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from benchmarks.diagnose_one import HEAP, cpu_seconds, java_of
from pulsar_steward.model.tables import CONFIGURATION, NAMESPACES, TRANSACTION_COORDINATORS
from pulsar_steward.policy.schema import Policy
from steward_spark.checks.registry import CHECKS
from steward_spark.diagnosing import judged
from steward_spark.holding import held
from steward_spark.place import SnapshotPlace
from steward_spark.session import spark_session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark.sql import SparkSession

    from pulsar_steward.model.tables import Table
    from steward_spark.frames import Frames

RESTING = ("ttl-before-quota", "quota-check-disabled", "tc-skew")
"""The checks that need nothing but policies, settings and the placement of coordinators, and who was read."""

TABLES = (NAMESPACES, CONFIGURATION, TRANSACTION_COORDINATORS)


class Resting(msgspec.Struct, frozen=True):
    """Seconds, and processor seconds of Java and Python, on all cores.

    Attributes:
        seconds: Of the checks, among themselves: what other checks derive of the same tables is not there.
        cpu_seconds: The same.
        digest_seconds: Of digests of their tables that no order of rows changes.
        digest_cpu_seconds: The same.
    """

    seconds: float
    cpu_seconds: float
    digest_seconds: float
    digest_cpu_seconds: float


def main(uri: str) -> None:
    """Prints what it measured."""
    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", f"--driver-memory {HEAP} pyspark-shell")
    spark = spark_session("benchmark")
    try:
        place = SnapshotPlace(spark, uri)
        checks = [check for check in CHECKS if check.info.check_id in RESTING]
        took = _took(spark, place, lambda frames: judged(frames, Policy(), checks))
        told = Resting(*took, *_took(spark, place, lambda frames: digests(frames, TABLES)))
        sys.stdout.write(f"{msgspec.json.encode(told).decode()}\n")
    finally:
        spark.stop()


def digests(frames: Frames, tables: Iterable[Table]) -> list[str]:
    """One a table, of all its rows and columns."""
    return [_digest(frames, table) for table in tables]


def _digest(frames: Frames, table: Table) -> str:
    row = F.xxhash64(*table.names).cast("decimal(20)")
    counted = frames.read(table).agg(F.sum(row).alias("sum"), F.count("*").alias("rows"))
    return ",".join(map(str, counted.collect()[0]))


def _took(spark: SparkSession, place: SnapshotPlace, work: Callable[[Frames], object]) -> tuple[float, float]:
    """The least of three times: the first one compiles."""
    return min(_once(spark, place, work) for _ in range(3))


def _once(spark: SparkSession, place: SnapshotPlace, work: Callable[[Frames], object]) -> tuple[float, float]:
    java = java_of(spark)
    cpu, began = cpu_seconds(java), time.perf_counter()
    with held(spark, place, []) as frames:
        work(frames)
    return time.perf_counter() - began, cpu_seconds(java) - cpu


if __name__ == "__main__":
    main(sys.argv[1])
