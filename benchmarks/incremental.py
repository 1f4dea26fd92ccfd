"""What is saved where a snapshot need not be diagnosed again, and what taking over single checks would save.

``python -m benchmarks.incremental [TOPICS ...] [--times N] [--folder DIR]`` makes a snapshot of so many topics, lets
processes of their own diagnose it, do so again as a task that is tried again, and carry out the checks whose tables
hardly ever change, and prints a table in Markdown: medians of N times. Without a folder the snapshots are removed.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import msgspec

from benchmarks.diagnose_one import One
from benchmarks.incremental_one import RESTING, Resting
from benchmarks.processes import output_of, told_by
from steward_spark.place import SUCCESS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Round(msgspec.Struct, frozen=True):
    """One measurement of each kind, each in a process of its own, from when Spark has started."""

    whole: One
    again: One
    resting: Resting


def measure(topics: int, folder: Path, times: int) -> list[Round]:
    """Rounds on one snapshot of so many topics."""
    snapshot = folder / str(topics) / "taken_at=20260131T120000Z"
    if not (snapshot / SUCCESS).exists():
        output_of("benchmarks.diagnose_one", snapshot, "make", str(topics))
    return [_round(snapshot) for _ in range(times)]


def _round(snapshot: Path) -> Round:
    whole = told_by(One, "benchmarks.diagnose_one", snapshot, "diagnose")
    again = told_by(One, "benchmarks.diagnose_one", snapshot, "again")
    return Round(whole, again, told_by(Resting, "benchmarks.incremental_one", snapshot))


def lines(topics: int, rounds: Sequence[Round]) -> Iterator[str]:
    """Rows of the table."""
    kinds = {
        "diagnosed": [(each.whole.seconds, each.whole.cpu_seconds) for each in rounds],
        "diagnosed already": [(each.again.seconds, each.again.cpu_seconds) for each in rounds],
        f"these {len(RESTING)} checks alone": [(each.resting.seconds, each.resting.cpu_seconds) for each in rounds],
        "digests of their tables": [(each.resting.digest_seconds, each.resting.digest_cpu_seconds) for each in rounds],
    }
    for what, taken in kinds.items():
        seconds, cpu = zip(*taken, strict=True)
        yield f"| {topics:,} | {what} | {median(seconds):.2f} | {median(cpu):.2f} | {min(cpu):.2f} to {max(cpu):.2f} |"


def main(argv: Sequence[str] | None = None) -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(prog="benchmarks.incremental", description=__doc__.partition("\n")[0])
    parser.add_argument("topics", nargs="*", type=int, default=[10_000, 100_000], help="partitions, of each snapshot")
    parser.add_argument("--times", type=int, default=3, help="rounds on each of them")
    parser.add_argument("--folder", type=Path, help="where snapshots are kept to be used again")
    arguments = parser.parse_args(argv)
    print("| partitions | what | seconds | processor seconds | from, to |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as removed:
        for topics in arguments.topics:
            for line in lines(topics, measure(topics, (arguments.folder or Path(removed)).resolve(), arguments.times)):
                print(line, flush=True)


if __name__ == "__main__":
    main()
