"""Time that a diagnosis of a large cluster takes: by Spark, on threads, and beside its checks alone on one thread.

``python -m benchmarks.diagnose [TOPICS ...] [--folder DIR]`` makes a snapshot of so many topics (a million), diagnoses
it in processes of their own, and prints a table. Snapshots are kept in the folder, and used again; without one they are
removed.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from rich.console import Console
from rich.table import Table

from benchmarks.bench.figures import Figures
from benchmarks.bench.median import median
from benchmarks.bench.workers import diagnosed_on
from benchmarks.diagnose_one import One
from benchmarks.processes import output_of, told_by
from pulsar_steward.model.units import MIB
from pulsar_steward.snapshots.folder import SUCCESS

if TYPE_CHECKING:
    from collections.abc import Iterator

TIMES = 3
"""Measurements of each kind, of which the one in the middle counts."""

_ONE = "benchmarks.diagnose_one"


class DiagnoseFigures(msgspec.Struct, frozen=True):
    """Seconds and memory that the diagnosis of a snapshot took.

    Attributes:
        topics: Partitions of the cluster.
        spark: By Spark's tasks, until all is written.
        embedded: On threads of one process, the same.
        direct: All checks and nothing else, on one thread.
        by_check: Seconds of each check alone, on one thread; what several share each computes for itself.
        findings: Findings listed, by check.
        workers: By one and by two workers of a Spark cluster, each with a core; empty: not measured.
    """

    topics: int
    spark: Figures
    embedded: Figures
    direct: Figures
    by_check: Mapping[str, float]
    findings: Mapping[str, int]
    workers: Sequence[Figures] = ()

    @property
    def times_direct(self) -> float:
        """Ratio of the time of Spark's diagnosis to that of the checks alone."""
        return self.spark.seconds / self.direct.seconds


class DifferentFindingsError(Exception):
    """Not everybody finds the same: then their times cannot be compared."""


def measure(
    topics: int,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    *,
    on_workers: bool = False,
    times: int = TIMES,
) -> DiagnoseFigures:
    """Diagnoses the snapshot of a cluster of a hundred brokers or more, each way; what counts is the median.

    Args:
        topics: Partitions of the cluster.
        folder: Where snapshots are kept; None: it is removed again.
        environment: Further variables for whoever diagnoses.
        times: How often each way.
        on_workers: Whether to do it on one and on two workers of a Spark cluster as well.

    Raises:
        DifferentFindingsError: If not all of them find the same.
        subprocess.CalledProcessError: If a diagnosis fails; what it says is on standard error.
    """
    with _kept(folder) as kept:
        snapshot = kept / str(topics) / "cluster=large" / "taken_at=20260131T120000Z"
        if not (snapshot / SUCCESS).exists():
            output_of(_ONE, snapshot, "make", str(topics))
        spark, embedded, direct = (
            median(partial(told_by, One, _ONE, snapshot, way, environment=environment), lambda one: one.figures, times)
            for way in ("spark", "embedded", "direct")
        )
        counts = (1, 2) if on_workers else ()
        workers = [diagnosed_on(count, snapshot, kept / f"{topics}-on-{count}", times) for count in counts]
    if any(each.subjects != spark.subjects for each in (embedded, direct, *workers)):
        raise DifferentFindingsError(f"of {topics:,} topics: look at all of them by hand")
    return DiagnoseFigures(
        topics=topics,
        spark=spark.figures,
        embedded=embedded.figures,
        direct=direct.figures,
        by_check=direct.by_check,
        findings={check_id: len(subjects) for check_id, subjects in direct.subjects.items()},
        workers=[each.figures for each in workers],
    )


@contextmanager
def _kept(folder: Path | None) -> Iterator[Path]:
    if folder is not None:
        yield folder.resolve()
        return
    with tempfile.TemporaryDirectory() as removed:
        yield Path(removed)


def printed(figures: DiagnoseFigures) -> Table:
    """One row a check, the slowest first."""
    table = Table("check", "seconds alone", "findings", title=f"{figures.topics:,} topics")
    for check_id, took in sorted(figures.by_check.items(), key=lambda pair: -pair[1]):
        table.add_row(check_id, f"{took:.2f}", f"{figures.findings.get(check_id, 0):,}")
    return table


def summary(figures: DiagnoseFigures) -> str:
    """The totals in a few lines."""
    ways = {"by Spark": figures.spark, "on threads": figures.embedded, "checks alone": figures.direct}
    return "\n".join(
        f"{figures.topics:,} topics, {way}: {each.seconds:.1f} s, {each.cpu_seconds:.1f} s of processors,"
        f" {each.peak_bytes / MIB:,.0f} MiB"
        for way, each in ways.items()
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Prints the table of each size."""
    parser = argparse.ArgumentParser(prog="benchmarks.diagnose", description=__doc__.partition("\n")[0])
    parser.add_argument("topics", nargs="*", type=int, default=[1_000_000], help="partitions (default: a million)")
    parser.add_argument("--folder", type=Path, help="where snapshots are kept to be used again")
    arguments = parser.parse_args(argv)
    console = Console()
    for topics in arguments.topics:
        figures = measure(topics, arguments.folder)
        console.print(printed(figures))
        console.print(summary(figures))


if __name__ == "__main__":
    main()
