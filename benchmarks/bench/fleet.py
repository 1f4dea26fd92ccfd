"""A fleet of simulated clusters, looked at once: ``python -m benchmarks.bench.fleet HOME [CLUSTERS] [PARTITIONS]``.

Clusters of that size each are looked at side by side by ``steward checkup --fleet``; then ``steward whatif`` takes them
as one logical cluster, and the pages show all of them.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from urllib.request import urlopen

import msgspec
from sqlalchemy import make_url

from benchmarks.bench.checkup import looked
from benchmarks.bench.figures import Figures
from benchmarks.bench.pages import seconds_of
from benchmarks.processes import simulated
from pulsar_steward.ledger.store import open_ledger, open_to_read
from pulsar_steward.pages.html import make_app
from pulsar_steward.pages.sources import Sources
from pulsar_steward.pulsar.statistics import PATH

CLUSTERS, PARTITIONS, BROKERS = 20, 50_000, 5


class FleetFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of a fleet.

    Attributes:
        clusters: How many.
        partitions: Of each, about.
        checkup: Of ``steward checkup --fleet``, from its start to its end; its largest process has the peak.
        placement: Seconds of ``steward whatif`` on their snapshots, from its start to its end.
        page: Seconds of the page of all clusters: the first request, and those after it.
    """

    clusters: int
    partitions: int
    checkup: Figures
    placement: float
    page: tuple[float, float]


def main(home: str, clusters: str = str(CLUSTERS), partitions: str = str(PARTITIONS)) -> None:
    """Measures, and prints `FleetFigures` as JSON."""
    folder = Path(home)
    folder.mkdir(parents=True)
    file, snapshots, number = folder / "fleet.yaml", folder / "snapshots", int(clusters)
    with ExitStack() as running:
        names = [f"cluster-{each:02d}" for each in range(number)]
        fleet = {
            name: running.enter_context(simulated(int(partitions), BROKERS, seed=seed, cluster=name))
            for seed, name in enumerate(names)
        }
        for url in (url for urls in fleet.values() for url in urls):
            for path in (PATH, "/admin/v2/broker-stats/load-report", "/metrics/"):
                urlopen(url + path).read()  # noqa: S310 - the simulator's, which keeps its answers
        entries = [{"name": name, "admin_url": urls} for name, urls in fleet.items()]
        file.write_bytes(msgspec.yaml.encode({"clusters": entries}))
        checkup = looked("--fleet", str(file), "--keep", str(snapshots))
    figures = FleetFigures(
        clusters=number,
        partitions=int(partitions),
        checkup=checkup,
        placement=_placed(snapshots),
        page=_page(folder, snapshots),
    )
    sys.stdout.write(f"{msgspec.json.encode(figures).decode()}\n")


def _placed(snapshots: Path) -> float:
    command = [sys.executable, "-m", "pulsar_steward.cli", "whatif", "--json", "--snapshots", str(snapshots)]
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def _page(folder: Path, snapshots: Path) -> tuple[float, float]:
    url = f"sqlite:///{folder / 'ledger.db'}"
    open_ledger(url).dispose()
    now = datetime.now(UTC)
    app = make_app(Sources(lambda: open_to_read(make_url(url)), str(snapshots), lambda: now), lambda: None)
    first, *later = asyncio.run(seconds_of(app, "/"))[0]
    return first, statistics.median(later)


if __name__ == "__main__":
    main(*sys.argv[1:])
