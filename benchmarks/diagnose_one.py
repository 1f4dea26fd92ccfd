"""One diagnosis in a process of its own, so that what it takes is its own: made by `benchmarks.diagnose`.

``python -m benchmarks.diagnose_one SNAPSHOT make TOPICS`` makes a snapshot; ``... SNAPSHOT diagnose [CHECK_ID ...]``
diagnoses it, by all checks if none is named, and ``... SNAPSHOT apart`` then does so once more for each check alone.
``... SNAPSHOT again`` does what a task does that is tried again after ``... diagnose``. The last line of the output is
`One` as JSON. What Java takes is read from Linux's ``/proc``.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from benchmarks.large_snapshot import Cluster, write
from pulsar_steward.model.tables import COLLECTED, FINDINGS
from pulsar_steward.policy.schema import Policy
from steward_spark.checks.check import Check
from steward_spark.checks.registry import CHECKS
from steward_spark.diagnosing import diagnose, judged
from steward_spark.holding import held
from steward_spark.place import DIAGNOSED_NOTE, SnapshotPlace
from steward_spark.session import spark_session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from steward_spark.checks.check import Judgement
    from steward_spark.frames import Frames

HEAP = "3g"
"""Leaves a quarter of 4 GiB to what Java takes besides."""


class One(msgspec.Struct, frozen=True):
    """What one diagnosis took, after Spark had started.

    Attributes:
        seconds: Until all tables were written.
        cpu_seconds: Of Java and Python, on all cores.
        peak_memory_bytes: Most resident memory of Java since it started.
        by_check: Seconds of each check. Several run at a time and wait for frames that another one derives: they add
            up to more than `seconds`, and the first of those that share a frame pays for it.
        subjects: Of the findings listed, by check.
        counting_seconds: To count the rows of every table afterwards, in a Java that has got warm.
        apart: Seconds of each check alone; empty where that was not asked for.
    """

    seconds: float
    cpu_seconds: float
    peak_memory_bytes: int
    by_check: dict[str, float]
    subjects: dict[str, list[str]]
    counting_seconds: float
    apart: dict[str, float]


def main(arguments: Sequence[str]) -> None:
    """Does what the arguments say."""
    uri, what, *rest = arguments
    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", f"--driver-memory {HEAP} pyspark-shell")
    spark = spark_session("benchmark")
    try:
        if what == "make":
            write(spark, uri, Cluster(int(rest[0])))
        else:
            if what != "again":
                SnapshotPlace(spark, uri).remove_note(DIAGNOSED_NOTE)
            one = _diagnosed(spark, uri, [check for check in CHECKS if not rest or check.info.check_id in rest])
            told = msgspec.structs.replace(one, apart=_apart(spark, uri)) if what == "apart" else one
            sys.stdout.write(f"{msgspec.json.encode(told).decode()}\n")
    finally:
        spark.stop()


def _diagnosed(spark: SparkSession, uri: str, checks: Sequence[Check]) -> One:
    place, seconds = SnapshotPlace(spark, uri), dict[str, float]()
    spark.range(1).count()  # starts what Spark starts with its first job
    java = java_of(spark)
    cpu, began = cpu_seconds(java), time.perf_counter()
    diagnose(spark, uri, Policy(), [_timed(check, seconds) for check in checks])
    took, cpu = time.perf_counter() - began, cpu_seconds(java) - cpu
    peak, began = _peak_memory_bytes(java), time.perf_counter()
    for table in COLLECTED:
        place.read(table).count()
    counting = time.perf_counter() - began
    subjects: dict[str, list[str]] = {}
    for row in place.read(FINDINGS).select("check_id", "subject").collect():
        subjects.setdefault(row["check_id"], []).append(row["subject"])
    return One(took, cpu, peak, seconds, subjects, counting, {})


def _timed(check: Check, seconds: dict[str, float]) -> Check:
    """The check, which notes how long it took."""

    def judge(frames: Frames, policy: Policy) -> Judgement:
        began = time.perf_counter()
        try:
            return check.judge(frames, policy)
        finally:
            seconds[check.info.check_id] = time.perf_counter() - began

    return Check(check.info, judge)


def _apart(spark: SparkSession, uri: str) -> dict[str, float]:
    """Each check alone, in a Java that has got warm; each derives for itself what it needs."""
    seconds: dict[str, float] = {}
    for check in CHECKS:
        with held(spark, SnapshotPlace(spark, uri), []) as frames:
            judged(frames, Policy(), [_timed(check, seconds)])
    return seconds


def java_of(spark: SparkSession) -> Path:
    """Where Linux tells what the Java of a session takes."""
    gateway = spark.sparkContext._gateway  # noqa: SLF001 - Spark does not tell which process it runs in
    if gateway is None:
        raise RuntimeError("Spark runs in no process of its own: start the benchmark without spark-submit")
    return Path("/proc", str(gateway.proc.pid))


def cpu_seconds(java: Path) -> float:
    """Of Java, and of this process."""
    fields = (java / "stat").read_text().rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK") + time.process_time()


def _peak_memory_bytes(java: Path) -> int:
    lines = dict(line.split(":", 1) for line in (java / "status").read_text().splitlines())
    return int(lines["VmHWM"].split()[0]) * 1024


if __name__ == "__main__":
    main(sys.argv[1:])
