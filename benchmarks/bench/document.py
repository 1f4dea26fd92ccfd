"""The result as `docs/performance.md`, written by the command and by nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.bench.failover import Failover, table
from benchmarks.bench.targets import lines, targets
from pulsar_steward.model.units import KIB, MIB

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from benchmarks.bench.figures import Figures
    from benchmarks.bench.fleet import FleetFigures
    from benchmarks.bench.real import Cluster, Truth
    from benchmarks.bench.size import Size

LONGEST = 12
"""Checks of which the document says how long they take."""

SLOWEST = 8
"""Routes of the pages of which it does."""

FILE_ROUTE = "/assets/{name}"
"""Route that reads neither ledger nor snapshot: what any request costs."""


@dataclass(frozen=True)
class Measurements:
    """All of one command.

    Attributes:
        sizes: Rising.
        planning: Measurements of planners.
        asking: From a trigger to an approval that waits.
        fleet: Several clusters, looked at together.
        truth: A real cluster and a simulated one of the same shape.
        failovers: Real brokers that were lost, with few topics first.
        profile: Functions by their own time, of reading one broker's documents.
        date: ISO.
        machine: Cores, memory and the speed of one core, in words.
        versions: Of what took part, by name.
    """

    sizes: Sequence[Size]
    planning: Sequence[Figures]
    asking: Figures
    fleet: FleetFigures
    truth: Truth | None
    failovers: Sequence[Failover]
    profile: Sequence[tuple[str, float]]
    date: str
    machine: str
    versions: Mapping[str, str]


def markdown(bench: Measurements) -> str:
    """The document."""
    versions = ", ".join(f"{name} {version}" for name, version in bench.versions.items())
    text = [
        "# How long it takes",
        "",
        "Written by `make bench`, of one commit on one machine: the simulated cluster runs beside what is measured, on",
        "the same cores. Each figure is the median of three. Times begin when Spark has started, of a checkup when it",
        "is called; processor time is that of all processes that were measured, the cluster's not included; memory is",
        "the most that the largest process ever held. A machine is quicker on one day than on another: floors, and the",
        "fixed piece of work of `python -m benchmarks.machine_speed`, tell that from a change of the code.",
        "",
        f"{bench.date}, {bench.machine}, {versions}.",
        "",
        "## By size",
        "",
        "| partitions, brokers | what | seconds | in floors | processor seconds | in floors | peak memory |",
        "|---|---|---|---|---|---|---|",
        *(line for size in bench.sizes for line in _size(size)),
        "",
        *_reached(bench),
        "## Ratios",
        "",
        "| partitions | collect against the floor | a topic one by one against collecting | diagnose, its checks |",
        "|---|---|---|---|",
        *(_ratios(size) for size in bench.sizes),
        "",
        "The floor: the same documents fetched from the same cluster, decoded by msgspec and written by pyarrow, and",
        "nothing else. One by one: each topic's `/stats`, 32 at a time, of a sample. The checks: all of them asked of",
        "the same Parquet directly, on one thread, and nothing written, against the whole diagnosis by Spark.",
        "",
        "## Growth",
        "",
        "| from, to | collect | diagnose |",
        "|---|---|---|",
        *(_growth(small, large) for small, large in zip(bench.sizes, bench.sizes[1:], strict=False)),
        "",
        "## Planning",
        "",
        "| what | seconds | peak memory |",
        "|---|---|---|",
        *(
            f"| {each.count:,} {each.what} | {each.seconds:.2f} | {_memory(each.peak_bytes)} |"
            for each in bench.planning
        ),
    ]
    text += ["", "## A fleet", "", *_fleet(bench.fleet), "", "## Pages", "", *_pages(bench.sizes[-1])]
    if workers := bench.sizes[-1].diagnose.workers:
        text += ["", "## Spark's workers", "", *_workers(bench.sizes[-1].partitions, workers)]
    if bench.truth is not None:
        text += ["", "## The simulator beside real brokers", "", *_truth(bench.truth)]
    if bench.failovers:
        text += ["", "## A broker is lost", "", *table(bench.failovers)]
    if bench.profile:
        text += ["", "## Where the time goes", "", *_profile(bench.sizes[-1]), "", *_functions(bench.profile)]
    return "\n".join(text) + "\n"


def _reached(bench: Measurements) -> Iterator[str]:
    if found := targets(bench.sizes, bench.planning, bench.asking):
        yield from ("## Targets", "", *lines(found), "")


def _fleet(fleet: FleetFigures) -> Iterator[str]:
    yield f"{fleet.clusters} clusters of {fleet.partitions:,} partitions, side by side, as `--fleet` looks at them."
    yield ""
    yield "| what | seconds | processor seconds | peak memory |"
    yield "|---|---|---|---|"
    each = fleet.checkup
    memory = f"{_memory(each.peak_bytes)} a process"
    yield f"| `steward checkup --fleet` | {each.seconds:.0f} | {each.cpu_seconds:.0f} | {memory} |"
    yield f"| `steward whatif` on their snapshots | {fleet.placement:.1f} | | |"
    first, later = fleet.page
    yield f"| the page of all clusters, first and after it | {first:.2f}, {later:.3f} | | |"


def _pages(size: Size) -> Iterator[str]:
    """The slowest routes at the largest size."""
    pages = size.pages
    file = pages.later[FILE_ROUTE]
    yield f"Of {size.partitions:,} partitions, every route of the pages asked in a process of its own, without a login:"
    yield f"the {SLOWEST} slowest after their first request, of {len(pages.later)}. The first one is that of a process"
    yield "that has read nothing yet. Beside them a file that is only handed over."
    yield ""
    yield "| route | first | after it | times that file | KiB |"
    yield "|---|---|---|---|---|"
    slowest = sorted(pages.later, key=lambda route: -pages.later[route])[:SLOWEST]
    for route in dict.fromkeys([*slowest, FILE_ROUTE]):
        first, later = 1000 * pages.first[route], 1000 * pages.later[route]
        times = pages.later[route] / file
        yield f"| `{route}` | {first:,.0f} ms | {later:,.1f} ms | {times:,.0f} | {pages.sizes[route] / KIB:,.0f} |"


def _workers(partitions: int, workers: Sequence[Figures]) -> Iterator[str]:
    yield f"The diagnosis of {partitions:,} partitions on a standalone Spark cluster on the same machine, each worker"
    yield "with one core; they find the same as one machine."
    yield ""
    yield "| workers | seconds | times as fast as one |"
    yield "|---|---|---|"
    for count, each in enumerate(workers, start=1):
        yield f"| {count} | {each.seconds:.1f} | {workers[0].seconds / each.seconds:.1f} |"


def _truth(truth: Truth) -> Iterator[str]:
    count = truth.real.collect.count
    yield f"{count:,} topics, each with a consumer, on three brokers of Pulsar itself and on three simulated ones; all"
    yield "processes of both clusters share the cores with what is measured."
    yield ""
    yield "| cluster | bytes a topic | floor | collect | collect, processor seconds | rows of topics |"
    yield "|---|---|---|---|---|---|"
    yield from (_cluster(name, each) for name, each in {"real": truth.real, "simulated": truth.simulated}.items())


def _cluster(name: str, each: Cluster) -> str:
    collect = f"{each.collect.seconds:.1f} s | {each.collect.cpu_seconds:.1f} | {each.collect.count:,}"
    return f"| {name} | {each.topic_bytes:,.0f} | {each.floor.seconds:.2f} s | {collect} |"


def _functions(profile: Sequence[tuple[str, float]]) -> Iterator[str]:
    yield "Of making rows of one broker's 10,000 topics, in the tasks' Python, as `cProfile` sees it:"
    yield ""
    yield "| function | own time |"
    yield "|---|---|"
    yield from (f"| `{name}` | {share:.0%} |" for name, share in profile)


def _size(size: Size) -> Iterator[str]:
    where, found = f"{size.partitions:,}, {size.brokers}", size.diagnose
    measured = {
        "the floor": size.floor,
        "collect by Spark": size.collect,
        "collect embedded": size.embedded,
        "diagnose by Spark": found.spark,
        "diagnose embedded": found.embedded,
        "all checks directly, on one thread": found.direct,
        "`steward checkup`": size.checkup,
    }
    for what, each in measured.items():
        seconds = f"{each.seconds:.1f} | {each.seconds / size.floor.seconds:.1f}"
        processors = f"{each.cpu_seconds:.1f} | {each.cpu_seconds / size.floor.cpu_seconds:.1f}"
        yield f"| {where} | {what} | {seconds} | {processors} | {_memory(each.peak_bytes)} |"


def _ratios(size: Size) -> str:
    floor, found = size.collect.seconds / size.floor.seconds, size.diagnose
    alone = f"{found.spark.seconds:.1f} s against {found.direct.seconds:.1f} s: {found.times_direct:.1f} times"
    return f"| {size.partitions:,} | {floor:.1f} times | {size.against_one_by_one:.0f} times | {alone} |"


def _growth(small: Size, large: Size) -> str:
    partitions = large.partitions / small.partitions
    collect = large.collect.seconds / small.collect.seconds
    diagnose = large.diagnose.spark.seconds / small.diagnose.spark.seconds
    sizes = f"{small.partitions:,}, {large.partitions:,} ({partitions:.0f} times)"
    return f"| {sizes} | {collect:.1f} times | {diagnose:.1f} times |"


def _profile(size: Size) -> Iterator[str]:
    """Parts of collecting, and the checks that take longest, at the largest size."""
    yield f"Of collecting {size.partitions:,} partitions by Spark:"
    yield ""
    yield "| part | seconds |"
    yield "|---|---|"
    yield from (f"| {part} | {seconds:.1f} |" for part, seconds in size.collect.parts.items())
    yield ""
    yield "Of the checks, each alone on one thread; what several share, each computes for itself here:"
    yield ""
    yield "| check | seconds | findings |"
    yield "|---|---|---|"
    longest = sorted(size.diagnose.by_check.items(), key=lambda item: -item[1])[:LONGEST]
    yield from (f"| {check} | {seconds:.1f} | {size.diagnose.findings.get(check, 0):,} |" for check, seconds in longest)


def _memory(count: int) -> str:
    return f"{count / MIB:,.0f} MiB"
