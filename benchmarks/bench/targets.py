"""What was to be reached at a million partitions, what was, and why not where it was not."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.bench.document import Size
    from benchmarks.bench.figures import Figures

PARTITIONS = 1_000_000
GIBIBYTE = 1 << 30


class Target(NamedTuple):
    """One of them.

    Attributes:
        what: In words.
        wanted: At most, or at least where `more` is better.
        measured: What was reached.
        unit: Behind both.
        why: What stands in its way.
        more: Whether more is better.
    """

    what: str
    wanted: float
    measured: float
    unit: str
    why: str
    more: bool = False

    @property
    def met(self) -> bool:
        """Whether it was reached."""
        return self.measured >= self.wanted if self.more else self.measured <= self.wanted


def targets(sizes: Sequence[Size], planning: Sequence[Figures]) -> list[Target]:
    """All of them; none where the largest size was not measured."""
    size = next((each for each in sizes if each.partitions == PARTITIONS), None)
    if size is None:
        return []
    collect, found, smallest = size.collect, size.diagnose, sizes[0]
    grown = size.partitions / smallest.partitions
    why_collect, why_diagnose = _why_collect(smallest, size), _why_diagnose(smallest, size)
    return [
        Target("collect", 12, collect.seconds, "s", why_collect),
        Target("collect against the floor", 1.5, collect.seconds / size.floor.seconds, "times", why_collect),
        Target("collect, the largest process", 2, collect.peak_bytes / GIBIBYTE, "GiB", ""),
        Target("one by one against collecting", 80, size.against_one_by_one, "times", why_collect, more=True),
        Target("diagnose", 30, found.seconds, "s", why_diagnose),
        Target("diagnose, the largest process", 4, found.peak_memory_bytes / GIBIBYTE, "GiB", ""),
        Target("diagnose against DuckDB", 3, found.times_duckdb, "times", why_diagnose),
        Target("plan moves of 1,000 coordinators", 1, planning[0].seconds, "s", ""),
        Target(
            "growth of collecting, by partitions", 1, collect.seconds / smallest.collect.seconds / grown, "times", ""
        ),
        Target(
            "growth of diagnosing, by partitions", 1, found.seconds / smallest.diagnose.seconds / grown, "times", ""
        ),
    ]


def _why_collect(smallest: Size, size: Size) -> str:
    return (
        "the floor writes seven columns of topics; collecting writes five tables of them, counts clients, keeps the"
        " worst ones, asks each broker seven more questions, every namespace for its policies, and owners about"
        f" suspects; {_fixed('collecting', smallest, smallest.collect.cpu_seconds, size.collect.cpu_seconds)}: Java's"
        " way to start, plan and compile a dozen queries for the first time. What grows is the tasks' Python, whose"
        " functions are below"
    )


def _why_diagnose(smallest: Size, size: Size) -> str:
    fixed = _fixed("diagnosing", smallest, smallest.diagnose.cpu_seconds, size.diagnose.cpu_seconds)
    return (
        f"{fixed}, where there is next to nothing to compute: planning, compiling and starting the queries of some"
        " forty checks, in a Java that is young. DuckDB has none of it"
    )


def _fixed(what: str, smallest: Size, little: float, much: float) -> str:
    return (
        f"of the {much:.0f} seconds of processor time that {what} takes, {100 * little / much:.0f} % go at"
        f" {smallest.partitions:,} partitions already"
    )


def lines(all_of_them: Sequence[Target]) -> Iterator[str]:
    """As a table, and the reasons below it, each once."""
    yield "| at a million partitions | wanted | measured | |"
    yield "|---|---|---|---|"
    for each in all_of_them:
        bound = "at least" if each.more else "at most"
        yield f"| {each.what} | {bound} {each.wanted:g} {each.unit} | {each.measured:.2g} {each.unit} | {_word(each)} |"
    for why in dict.fromkeys(each.why for each in all_of_them if not each.met and each.why):
        names = ", ".join(each.what for each in all_of_them if each.why == why and not each.met)
        yield ""
        yield f"Why {names}: {why}."


def _word(target: Target) -> str:
    return "met" if target.met else "**missed**"
