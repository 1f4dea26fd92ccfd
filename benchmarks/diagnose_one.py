"""One diagnosis in a process of its own, so that what it takes is its own: made by `benchmarks.diagnose`.

``python -m benchmarks.diagnose_one SNAPSHOT make TOPICS`` makes a snapshot. ``... SNAPSHOT spark`` diagnoses it by
Spark's tasks, ``... SNAPSHOT embedded`` on threads, and ``... SNAPSHOT direct`` only carries out all checks, on one
thread, and then each alone. The last line of the output is `One` as JSON.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from benchmarks.bench.figures import Figures, Meter
from benchmarks.large_snapshot import Cluster, write
from pulsar_steward.checks.registry import CHECKS, VIEWS, checks_of
from pulsar_steward.diagnose.diagnosing import diagnose
from pulsar_steward.diagnose.runner import run_checks
from pulsar_steward.diagnose.running import SnapshotSources
from pulsar_steward.model.system import System
from pulsar_steward.model.tables import FINDINGS, SMALL
from pulsar_steward.policy.schema import Policy
from pulsar_steward.runtime.parallel import OnThreads, on_this_thread
from pulsar_steward.snapshots.folder import LocalFiles, SnapshotFolder
from steward_spark.observing import diagnose_snapshot
from steward_spark.session import spark_session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsar_steward.checks.check import Check
    from pulsar_steward.diagnose.runner import CheckResult

WHAT = "findings"


class One(msgspec.Struct, frozen=True):
    """Seconds and memory that one diagnosis took, after Spark, if any, had started.

    Attributes:
        figures: Until all tables were written; of ``direct`` until all checks were judged.
        subjects: Of the findings listed, by check.
        by_check: Seconds of each check alone; empty but for ``direct``.
    """

    figures: Figures
    subjects: dict[str, list[str]]
    by_check: dict[str, float] = {}


def main(arguments: Sequence[str]) -> None:
    """Does what the arguments say."""
    uri, what, *rest = arguments
    folder = SnapshotFolder(LocalFiles(), uri)
    match what:
        case "make":
            write(Path(uri), Cluster(int(rest[0])))
            return
        case "spark":
            one = _by_spark(folder)
        case "embedded":
            meter = Meter()
            diagnose(folder, Policy(), OnThreads(os.cpu_count() or 1))
            one = _of_folder(meter, folder)
        case "direct":
            one = _directly(folder)
        case _:
            raise SystemExit(f"{what}: give one of make, spark, embedded, direct")
    sys.stdout.write(f"{msgspec.json.encode(one).decode()}\n")


def _by_spark(folder: SnapshotFolder) -> One:
    spark = spark_session("benchmark")
    # A worker process starts with the first job; the application that has collected has paid for it.
    spark.sparkContext.parallelize(range(2), 2).map(lambda number: number).count()
    try:
        meter = Meter()
        diagnose_snapshot(spark, folder.uri, Policy())
        return _of_folder(meter, folder)
    finally:
        spark.stop()


def _of_folder(meter: Meter, folder: SnapshotFolder) -> One:
    figures = meter.figures(WHAT, 0)
    found = folder.read(FINDINGS)
    subjects: dict[str, list[str]] = {}
    for check_id, subject in zip(found["check_id"].to_pylist(), found["subject"].to_pylist(), strict=True):
        subjects.setdefault(check_id, []).append(subject)
    return One(msgspec.structs.replace(figures, count=found.num_rows), subjects)


def _directly(folder: SnapshotFolder) -> One:
    """Runs the checks alone: reads what they ask for, and writes nothing."""
    snapshot = SnapshotSources({table.name: folder.source(table) for table in SMALL}, folder.shards())
    meter = Meter()
    results = _checked(snapshot, CHECKS)
    subjects = {
        each.check.check_id: [finding.subject for finding in each.judgement.findings]
        for each in results
        if each.judgement.findings
    }
    figures, by_check = meter.figures(WHAT, sum(map(len, subjects.values()))), dict[str, float]()
    for check in checks_of(System.PULSAR).values():
        began = time.perf_counter()
        _checked(snapshot, [check])
        by_check[check.check_id] = time.perf_counter() - began
    return One(figures, subjects, by_check)


def _checked(snapshot: SnapshotSources, checks: Sequence[Check]) -> list[CheckResult]:
    return run_checks(snapshot, Policy(), checks, VIEWS, on_this_thread)


if __name__ == "__main__":
    main(sys.argv[1:])
