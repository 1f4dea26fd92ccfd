"""How long a diagnosis of a large cluster takes, check by check, beside the same questions asked in DuckDB.

``python -m benchmarks.diagnose [TOPICS ...] [--folder DIR] [--apart]`` makes a snapshot of so many topics (a million),
diagnoses it in a process of its own, and prints a table. Snapshots are kept in the folder, and used again; without one
they are removed. ``--apart`` also runs each check alone, which takes several times as long.
"""

from __future__ import annotations

import argparse
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from benchmarks.diagnose_duckdb import QUERIES, diagnosed
from benchmarks.diagnose_one import One
from benchmarks.processes import output_of, told_by
from pulsar_steward.policy.schema import Policy
from steward_spark.place import SUCCESS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

MEBIBYTE = 1024 * 1024

_ONE = "benchmarks.diagnose_one"


@dataclass(frozen=True)
class DiagnoseFigures:
    """What the diagnosis of a snapshot took; seconds are those after Spark, or DuckDB, has started.

    Attributes:
        topics: Partitions of the cluster.
        seconds: All checks and the trends, until all is written.
        cpu_seconds: The same, of all cores.
        peak_memory_bytes: Most resident memory of Spark's process.
        by_check: Seconds of each check among the others; several run at a time.
        findings: Findings listed, by check.
        counting_seconds: To count the rows of every table.
        compared_seconds: The checks that DuckDB was asked for as well, and no others, in another process.
        duckdb_seconds: The same in DuckDB.
        duckdb_by_check: Each of them.
        apart: Seconds of each check alone, in the same Java afterwards; empty where that was not asked for.
    """

    topics: int
    seconds: float
    cpu_seconds: float
    peak_memory_bytes: int
    by_check: Mapping[str, float]
    findings: Mapping[str, int]
    counting_seconds: float
    compared_seconds: float
    duckdb_seconds: float
    duckdb_by_check: Mapping[str, float]
    apart: Mapping[str, float] = field(default_factory=dict)

    @property
    def times_duckdb(self) -> float:
        """How many times as long as DuckDB the checks take that both were asked for."""
        return self.compared_seconds / self.duckdb_seconds


class DifferentFindingsError(Exception):
    """Spark and DuckDB do not find the same: then their times cannot be compared."""


def measure(topics: int, folder: Path | None = None, *, apart: bool = False) -> DiagnoseFigures:
    """Diagnoses the snapshot of a cluster of a hundred brokers.

    Args:
        topics: Partitions of the cluster.
        folder: Where snapshots are kept; None: it is removed again.
        apart: Whether each check is carried out alone as well.

    Raises:
        DifferentFindingsError: If DuckDB finds anything else.
        subprocess.CalledProcessError: If a diagnosis fails; what it says is on standard error.
    """
    with _kept(folder) as kept:
        snapshot = kept / str(topics) / "taken_at=20260131T120000Z"
        if not (snapshot / SUCCESS).exists():
            output_of(_ONE, snapshot, "make", str(topics))
        whole = told_by(One, _ONE, snapshot, "apart" if apart else "diagnose")
        compared = told_by(One, _ONE, snapshot, "diagnose", *QUERIES)
        in_duckdb = diagnosed(snapshot, Policy())
    for check_id, (_, subjects) in in_duckdb.items():
        if set(subjects) != set(whole.subjects.get(check_id, [])):
            raise DifferentFindingsError(f"{check_id}: DuckDB and Spark disagree, look at both by hand")
    by_check = {check_id: seconds for check_id, (seconds, _) in in_duckdb.items()}
    return DiagnoseFigures(
        topics=topics,
        seconds=whole.seconds,
        cpu_seconds=whole.cpu_seconds,
        peak_memory_bytes=whole.peak_memory_bytes,
        by_check=whole.by_check,
        findings={check_id: len(subjects) for check_id, subjects in whole.subjects.items()},
        counting_seconds=whole.counting_seconds,
        compared_seconds=compared.seconds,
        duckdb_seconds=sum(by_check.values()),
        duckdb_by_check=by_check,
        apart=whole.apart,
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
    table = Table("check", "seconds", "alone", "DuckDB", "findings", title=f"{figures.topics:,} topics")
    for check_id, took in sorted(figures.by_check.items(), key=lambda pair: -pair[1]):
        alone, yardstick = figures.apart.get(check_id), figures.duckdb_by_check.get(check_id)
        found = figures.findings.get(check_id, 0)
        table.add_row(check_id, f"{took:.2f}", _seconds(alone), _seconds(yardstick), f"{found:,}")
    return table


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def summary(figures: DiagnoseFigures) -> str:
    """The totals in a few lines."""
    return (
        f"{figures.topics:,} topics: all checks {figures.seconds:.1f} s, {figures.cpu_seconds:.1f} s of processors,"
        f" {figures.peak_memory_bytes / MEBIBYTE:,.0f} MiB; counting all rows {figures.counting_seconds:.1f} s\n"
        f"{len(figures.duckdb_by_check)} of the checks alone {figures.compared_seconds:.1f} s, in DuckDB"
        f" {figures.duckdb_seconds:.2f} s: {figures.times_duckdb:.1f} times as long"
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Prints the table of each size."""
    parser = argparse.ArgumentParser(prog="benchmarks.diagnose", description=__doc__.partition("\n")[0])
    parser.add_argument("topics", nargs="*", type=int, default=[1_000_000], help="partitions (default: a million)")
    parser.add_argument("--folder", type=Path, help="where snapshots are kept to be used again")
    parser.add_argument("--apart", action="store_true", help="also carry out each check alone")
    arguments = parser.parse_args(argv)
    console = Console()
    for topics in arguments.topics:
        figures = measure(topics, arguments.folder, apart=arguments.apart)
        console.print(printed(figures))
        console.print(summary(figures))


if __name__ == "__main__":
    main()
