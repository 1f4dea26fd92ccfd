"""``python -m benchmarks.bench``: collects, diagnoses, plans, shows pages, at two sizes, into `docs/performance.md`.

A run that ended early goes on where it ended, as long as it measures the same commit on the same sizes.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import tempfile
import urllib.request
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import psutil
import pyspark
from rich.console import Console

from benchmarks import machine_speed
from benchmarks.bench.document import Measurements, markdown
from benchmarks.bench.failover import TOPICS, Failover, failovers
from benchmarks.bench.figures import Figures
from benchmarks.bench.fleet import FleetFigures
from benchmarks.bench.kept import FOLDER, KeptParts, committed
from benchmarks.bench.median import median
from benchmarks.bench.pages import PageFigures
from benchmarks.bench.profile import profiled
from benchmarks.bench.real import Truth, compared
from benchmarks.bench.size import Size
from benchmarks.diagnose import TIMES, measure
from benchmarks.processes import ROOT, simulated, told_by
from benchmarks.telling import sayer, versions
from lab.prerequisites import missing
from pulsar_steward.pulsar.statistics import PATH

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

DOCUMENT = ROOT / "docs" / "performance.md"
SIZES = (10_000, 1_000_000)
PARTITIONS_A_BROKER = 10_000
FEWEST_BROKERS = 3
SAMPLE = 3_000
MEMORY = {"PYSPARK_SUBMIT_ARGS": "--driver-memory 3g --conf spark.ui.showConsoleProgress=false pyspark-shell"}


def main(argv: Sequence[str] | None = None) -> int:
    """Measures, prints and writes; returns the exit code."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.bench", description=__doc__)
    made.add_argument("--sizes", type=int, nargs="+", default=SIZES, metavar="PARTITIONS", help="of the clusters")
    made.add_argument("--out", type=Path, default=DOCUMENT, metavar="FILE", help="written when all of it was measured")
    made.add_argument("--times", type=int, default=TIMES, help="of each measurement; the one in the middle counts")
    made.add_argument("--profile", action="store_true", help="say where the time goes as well")
    arguments = made.parse_args(argv)
    times: int = arguments.times
    console = Console()

    say = sayer(console)
    kept = KeptParts(FOLDER, committed() if times == TIMES else None)
    with tempfile.TemporaryDirectory(prefix="bench-") as temporary:
        home = Path(temporary)
        sizes = [
            kept.part(f"{partitions}-partitions", Size, partial(measured, partitions, home, times, say), say)
            for partitions in arguments.sizes
        ]
        asking = kept.part("asking", Figures, partial(_asking, times, home, say), say)
        fleet = kept.part("fleet", FleetFigures, partial(_fleet, home / "fleet", say), say)
        real = _may_run_pulsar(say)
        truth = kept.part("truth", Truth, partial(compared, home / "truth", MEMORY, say), say) if real else None
        lost = [
            each
            for count in (TOPICS if real else ())
            for each in kept.part(
                f"lost-{count}", list[Failover], partial(failovers, count, home / f"lost-{count}", say), say
            )
        ]
    planning = [_median(times, "benchmarks.bench.planning", which) for which in ("coordinators", "bundles")]
    bench = Measurements(
        sizes,
        planning,
        asking,
        fleet,
        truth,
        lost,
        where_the_time_goes() if arguments.profile else [],
        datetime.now(UTC).date().isoformat(),
        _machine(),
        versions(Spark=pyspark.__version__, DuckDB=duckdb.__version__),
    )
    console.print(markdown(bench), markup=False, highlight=False)
    if tuple(arguments.sizes) == SIZES and times == TIMES and truth is not None:
        arguments.out.write_text(markdown(bench), encoding="utf-8")
        say(f"written: {arguments.out}")
        kept.remove()
    return 0


def _asking(times: int, home: Path, say: Callable[[str], None]) -> Figures:
    say("from a trigger to an approval, in an Airflow")
    asking = _median(times, "benchmarks.bench.asking", home / "airflow")
    say(f"  {asking.seconds:.1f} s")
    return asking


def _fleet(home: Path, say: Callable[[str], None]) -> FleetFigures:
    say("a fleet")
    fleet = told_by(FleetFigures, "benchmarks.bench.fleet", home)
    say(f"  {fleet.clusters} clusters of {fleet.partitions:,} partitions: {fleet.checkup.seconds:.1f} s")
    return fleet


def measured(partitions: int, folder: Path, times: int, say: Callable[[str], None]) -> Size:
    """Everything at one size, in a folder below the given one."""
    home = folder / str(partitions)
    brokers = max(partitions // PARTITIONS_A_BROKER, FEWEST_BROKERS)
    home.mkdir()
    with simulated(partitions, brokers) as urls:
        for url in urls:
            for path in (PATH, "/admin/v2/broker-stats/load-report", "/metrics/"):
                urllib.request.urlopen(url + path).read()  # noqa: S310 - the simulator's, which keeps its answers
        say(f"{partitions:,} partitions on {brokers} brokers")
        floor = _median(times, "benchmarks.bench.floor", home / "floor", *urls)
        say(f"  floor {floor.seconds:.1f} s, {floor.cpu_seconds:.1f} s of processor time")
        by_spark, embedded = (
            _median(times, "benchmarks.bench.collecting", how, home / how, *urls, environment=MEMORY)
            for how in ("spark", "embedded")
        )
        checkup = _median(times, "benchmarks.bench.checkup", *urls)
        for what, each in {"collect by Spark": by_spark, "embedded": embedded, "checkup": checkup}.items():
            say(f"  {what} {_took(each, floor)}")
        one_by_one = _median(times, "benchmarks.bench.one_by_one", str(SAMPLE), *urls)
        say(f"  one by one {1000 * one_by_one.seconds / one_by_one.count:.2f} ms a topic")
    # The simulated brokers stand by no longer: a diagnosis asks nobody.
    large = partitions >= max(SIZES)
    diagnose = measure(partitions, home / "diagnosed", environment=MEMORY, on_workers=large, times=times)
    pages = median(
        lambda: told_by(PageFigures, "benchmarks.bench.pages", home / "diagnosed" / str(partitions)),
        lambda each: each.figures,
        times,
    )
    say(f"  slowest page {1000 * pages.later[pages.slowest]:.0f} ms after its first request: {pages.slowest}")
    ways = {"diagnose by Spark": diagnose.spark, "embedded": diagnose.embedded, "checks alone": diagnose.direct}
    ways |= {f"on {count} workers": each for count, each in enumerate(diagnose.workers, start=1)}
    for what, each in ways.items():
        say(f"  {what} {_took(each, floor)}")
    return Size(partitions, brokers, by_spark, embedded, floor, one_by_one, checkup, diagnose, pages)


def _median(times: int, module: str, *arguments: Path | str, environment: Mapping[str, str] | None = None) -> Figures:
    """The median of a module's measurements; where it is given a folder, each one gets a folder of its own."""
    numbers = itertools.count(1)

    def measure() -> Figures:
        number = next(numbers)
        own = [each / str(number) if isinstance(each, Path) else each for each in arguments]
        return told_by(Figures, module, *own, environment=environment)

    return median(measure, _itself, times)


def _itself(figures: Figures) -> Figures:
    return figures


def _took(figures: Figures, floor: Figures) -> str:
    floors = f"{figures.seconds / floor.seconds:.1f} floors"
    return f"{figures.seconds:.1f} s ({floors}), {figures.cpu_seconds:.1f} s of processor time"


def where_the_time_goes() -> list[tuple[str, float]]:
    """Of reading one broker."""
    with simulated(FEWEST_BROKERS * PARTITIONS_A_BROKER, FEWEST_BROKERS) as urls:
        return profiled(urls[0])


def _may_run_pulsar(say: Callable[[str], None]) -> bool:
    complaints = missing()
    for complaint in complaints:
        say(f"  left out: {complaint}")
    return not complaints


def _machine() -> str:
    memory = psutil.virtual_memory().total / (1 << 30)
    return f"{os.cpu_count()} cores, {memory:.0f} GiB, a fixed piece of work in {machine_speed.seconds(1):.1f} s"


if __name__ == "__main__":
    sys.exit(main())
