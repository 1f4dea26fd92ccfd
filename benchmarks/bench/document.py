"""The result as `docs/performance.md`, written by the command and by nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from benchmarks.bench.figures import Figures

MEBIBYTE = 1 << 20


@dataclass(frozen=True)
class Size:
    """What was measured on a cluster of one size.

    Attributes:
        partitions: About so many.
        brokers: How many.
        collect: Collecting, to Parquet.
        floor: The same documents fetched, decoded and written, and nothing else.
        one_by_one: A sample of topics asked for one by one.
        diagnose: All checks on that snapshot; None: not measured at this size.
        yardstick_seconds: A part of the same diagnosis in DuckDB, and the same part in Spark.
    """

    partitions: int
    brokers: int
    collect: Figures
    floor: Figures
    one_by_one: Figures
    diagnose: Figures | None
    yardstick_seconds: tuple[float, float] | None = None

    @property
    def against_one_by_one(self) -> float:
        """How many times fewer seconds a topic than asking for each."""
        alone = self.one_by_one.seconds / self.one_by_one.count
        return alone / (self.collect.seconds / self.collect.count)


@dataclass(frozen=True)
class Bench:
    """All of one command.

    Attributes:
        sizes: Rising.
        planning: Measurements of planners.
        date: ISO.
        machine: Cores and memory, in words.
        versions: Of what took part, by name.
        profile: Where the time goes, as lines; empty where it was not asked for.
    """

    sizes: Sequence[Size]
    planning: Sequence[Figures]
    date: str
    machine: str
    versions: Mapping[str, str]
    profile: Sequence[str] = ()


def markdown(bench: Bench) -> str:
    """The document."""
    versions = ", ".join(f"{name} {version}" for name, version in bench.versions.items())
    lines = [
        "# How long it takes",
        "",
        "Written by `make bench`, in one run on one machine: the simulated cluster runs beside what is measured, on",
        "the same cores. Times begin when Spark has started; processor time is that of all processes that were",
        "measured, the cluster's not included; memory is the most that the largest process ever held.",
        "",
        f"{bench.date}, {bench.machine}, {versions}.",
        "",
        "## By size",
        "",
        "| partitions, brokers | what | seconds | processor seconds | peak memory |",
        "|---|---|---|---|---|",
        *(line for size in bench.sizes for line in _size(size)),
        "",
        "## Ratios",
        "",
        "| partitions | collect against the floor | a topic one by one against collecting | diagnose against DuckDB |",
        "|---|---|---|---|",
        *(_ratios(size) for size in bench.sizes),
        "",
        "The floor: the same documents fetched from the same cluster, decoded by msgspec and written by pyarrow, and",
        "nothing else. One by one: each topic's `/stats`, 32 at a time, of a sample. DuckDB: some of the same checks",
        "on the same Parquet, against the same checks in Spark.",
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
        *(f"| {each.count:,} {each.what} | {each.seconds:.2f} | {_memory(each)} |" for each in bench.planning),
    ]
    if bench.profile:
        lines += ["", "## Where the time goes", "", "```", *bench.profile, "```"]
    return "\n".join(lines) + "\n"


def _size(size: Size) -> Iterator[str]:
    where = f"{size.partitions:,}, {size.brokers}"
    named = {"collect": size.collect, "the floor": size.floor, "diagnose": size.diagnose}
    for what, figures in named.items():
        if figures is not None:
            yield f"| {where} | {what} | {figures.seconds:.1f} | {figures.cpu_seconds:.1f} | {_memory(figures)} |"


def _ratios(size: Size) -> str:
    yardstick = "-"
    if size.yardstick_seconds is not None:
        duckdb, spark = size.yardstick_seconds
        yardstick = f"{spark:.1f} s against {duckdb:.1f} s: {spark / duckdb:.1f} times"
    floor = size.collect.seconds / size.floor.seconds
    return f"| {size.partitions:,} | {floor:.1f} times | {size.against_one_by_one:.0f} times | {yardstick} |"


def _growth(small: Size, large: Size) -> str:
    partitions = large.partitions / small.partitions
    diagnose = "-"
    if small.diagnose and large.diagnose:
        diagnose = f"{large.diagnose.seconds / small.diagnose.seconds:.1f} times"
    collect = large.collect.seconds / small.collect.seconds
    return f"| {small.partitions:,}, {large.partitions:,} ({partitions:.0f} times) | {collect:.1f} times | {diagnose} |"


def _memory(figures: Figures) -> str:
    return f"{figures.peak_bytes / MEBIBYTE:,.0f} MiB"
