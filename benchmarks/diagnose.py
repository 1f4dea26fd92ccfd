"""How long each check takes on the snapshot of a large cluster, beside counting the rows of the same Parquet.

``python -m benchmarks.diagnose [TOPICS]`` makes a snapshot of so many topics (a million) in a folder that is removed
again, diagnoses it once, and prints a table. Checks run several at a time and wait for frames that another one
derives: their seconds add up to more than the total, and the first of those that share a frame pays for it.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table as Printed

from benchmarks.large_snapshot import Cluster, write
from pulsar_steward.model.tables import COLLECTED
from pulsar_steward.policy.schema import Policy
from steward_spark.checks.check import Check
from steward_spark.checks.registry import CHECKS
from steward_spark.diagnosing import judged
from steward_spark.holding import held
from steward_spark.place import SnapshotPlace
from steward_spark.session import spark_session

if TYPE_CHECKING:
    from steward_spark.checks.check import Judgement
    from steward_spark.frames import Frames

MEMORY = "3g"
TOPICS_A_NAMESPACE = 500
BROKERS = 100


def timed(check: Check, seconds: dict[str, float]) -> Check:
    """The check, which notes how long it took."""

    def judge(frames: Frames, policy: Policy) -> Judgement:
        begun = time.perf_counter()
        try:
            return check.judge(frames, policy)
        finally:
            seconds[check.info.check_id] = time.perf_counter() - begun

    return Check(check.info, judge)


def main() -> None:
    """Prints the table."""
    topics = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", f"--driver-memory {MEMORY} pyspark-shell")
    spark = spark_session("benchmark")
    with tempfile.TemporaryDirectory() as folder:
        place = SnapshotPlace(spark, f"{folder}/taken_at=20260131T120000Z")
        write(spark, place.uri, Cluster(topics, max(topics // TOPICS_A_NAMESPACE, 1), BROKERS))
        begun = time.perf_counter()
        rows = {table.name: place.read(table).count() for table in COLLECTED}
        counting = time.perf_counter() - begun
        seconds: dict[str, float] = {}
        begun = time.perf_counter()
        with held(spark, place, []) as frames:
            findings, _ = judged(frames, Policy(), [timed(check, seconds) for check in CHECKS])
        total = time.perf_counter() - begun
    spark.stop()
    printed = Printed("check", "seconds", "findings")
    for check_id, took in seconds.items():
        count = sum(finding.check_id == check_id for finding in findings)
        printed.add_row(check_id, f"{took:.2f}", f"{count:,}")
    console = Console()
    console.print(printed)
    console.print(f"{sum(rows.values()):,} rows, {rows['topics']:,} topics: all checks {total:.1f} s")
    console.print(f"counting the rows of every table {counting:.1f} s: {total / counting:.1f} times as long")


if __name__ == "__main__":
    main()
