"""Targets, the figures beside them, and the reasons where they were missed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from benchmarks.bench.checkup import FIRST_LINE
from pulsar_steward.model.units import GIB

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.bench.figures import Figures
    from benchmarks.bench.size import Size

SMALL, LARGE = 10_000, 1_000_000
"""Partitions of the clusters that targets are for."""


class Target(NamedTuple):
    """One of them.

    Attributes:
        what: In words.
        wanted: At most.
        measured: What was reached.
        unit: Behind both.
        why: What stands in its way.
    """

    what: str
    wanted: float
    measured: float
    unit: str
    why: str

    @property
    def met(self) -> bool:
        """True if it was reached."""
        return self.measured <= self.wanted


def targets(sizes: Sequence[Size], planning: Sequence[Figures], asking: Figures) -> list[Target]:
    """Those of the sizes that were measured, and of what has none."""
    by_size = {size.partitions: size for size in sizes}
    found: list[Target] = []
    if small := by_size.get(SMALL):
        found += _of_small(small)
    if large := by_size.get(LARGE):
        found += _of_large(large, by_size.get(SMALL))
    return [
        *found,
        Target("plan moves of 1,000 coordinators", 1, planning[0].seconds, "s", ""),
        Target("from a trigger to an approval that waits", 35, asking.seconds, "s", _AIRFLOW),
    ]


def _of_small(size: Size) -> Iterator[Target]:
    where, diagnose = f"of {size.partitions:,} partitions", size.diagnose.spark
    yield Target(f"collect {where}", 4, size.collect.seconds, "s", _SUSPECTS)
    yield Target(f"diagnose {where}", 3, diagnose.seconds, "s", _DATABASES)
    yield Target(f"diagnose {where}", 5, diagnose.cpu_seconds, "processor seconds", _DATABASES)
    checkup = f"checkup of three brokers, {size.partitions:,} partitions"
    yield Target(checkup, 5, size.checkup.seconds, "s", _SUSPECTS)
    yield Target(f"{checkup}: its first line", 1, size.checkup.parts[FIRST_LINE], "s", "")


def _of_large(size: Size, small: Size | None) -> Iterator[Target]:
    where, diagnose, checkup = f"of {size.partitions:,} partitions", size.diagnose.spark, size.checkup
    why_collect = _MORE_THAN_THE_FLOOR + _fixed(small, size)
    yield Target(f"collect {where}", 10, size.collect.seconds, "s", why_collect)
    yield Target(f"collect {where}", 2.5, size.collect.seconds / size.floor.seconds, "floors", why_collect)
    yield Target(f"diagnose {where}", 8, diagnose.seconds, "s", "")
    yield Target(f"diagnose {where}", 3, size.diagnose.times_direct, "times all its checks on one thread", "")
    pages = size.pages
    yield Target(f"slowest page {where}, after its first request", 0.3, pages.later[pages.slowest], "s", "")
    yield Target(f"checkup {where}", 25, checkup.seconds, "s", why_collect)
    yield Target(f"checkup {where}, its process", 2, checkup.peak_bytes / GIB, "GiB", "")


_AIRFLOW = "Airflow starts a process for each of the tasks on the way, and each of them imports Airflow"

_SUSPECTS = (
    "most of it is waiting, as no broker is asked about suspects more often than `collect.drill_calls_per_second` says"
)

_DATABASES = "each shard has a database of its own, and most of its time goes into making views and planning questions"

_MORE_THAN_THE_FLOOR = (
    "the floor writes seven columns of topics; collecting writes four tables of them, counts clients, keeps the worst"
    " ones, asks each broker seven more questions, every namespace for its policies, and owners about suspects"
)


def _fixed(small: Size | None, size: Size) -> str:
    """Share of collecting that does not grow with the cluster, in words; empty: it was not measured."""
    if small is None:
        return ""
    little, much = small.collect.cpu_seconds, size.collect.cpu_seconds
    share = 100 * little / much
    return f"; of its {much:.0f} seconds of processor time {share:.0f} % go at {small.partitions:,} partitions already"


def lines(all_of_them: Sequence[Target]) -> Iterator[str]:
    """As a table, and the reasons below it, each once."""
    yield "| what | wanted | measured | |"
    yield "|---|---|---|---|"
    for each in all_of_them:
        yield f"| {each.what} | at most {each.wanted:g} {each.unit} | {each.measured:.2g} {each.unit} | {_word(each)} |"
    for why in dict.fromkeys(each.why for each in all_of_them if not each.met and each.why):
        names = ", ".join(dict.fromkeys(each.what for each in all_of_them if each.why == why and not each.met))
        yield ""
        yield f"Why {names}: {why}."


def _word(target: Target) -> str:
    return "met" if target.met else "**missed**"
