"""How many seconds each folder of tests may take: a table in `tests/README.md`, and what a run took beyond it.

``pytest --keep-budgets`` writes the table: what each folder took, and half as much again; and the list of the tests
that take over `LONG_S`, which `make check` leaves out. Seconds are those of a
machine whose fixed piece of work (`benchmarks.machine_speed`) takes `USUAL_S`: a slow machine is not over its budget.
Extended tests do not count.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.machine_speed import seconds
from tests.tiers import FOLDERS_OF_REAL_PARTS, LONG, MARKER, MARKERS_OF_REAL_PARTS

if TYPE_CHECKING:
    from collections.abc import Mapping

README = Path(__file__).with_name("README.md")
TABLE = re.compile(r"(?<=\| folder \| seconds \|\n\|---\|---\|\n)(?:\|[^\n]*\n)*")
ROW = re.compile(r"\| `([^`]+)` \| (\d+) \|")
USUAL_S = 1.6
LONG_S = 1.0
MACHINE = pytest.StashKey[float]()


def folder_of(test: str) -> str:
    """``tests/unit/ledger`` of a test below it, and of other tests the folder in ``tests``."""
    parts = test.partition("::")[0].split("/")[:-1]
    return "/".join(parts[: 3 if parts[1:2] == ["unit"] else 2])


def budgets(text: str) -> dict[str, int]:
    """Seconds by folder, from the README of the tests."""
    table = TABLE.search(text)
    return {folder: int(each) for folder, each in ROW.findall(table[0])} if table else {}


def over(took: Mapping[str, float], allowed: Mapping[str, int], machine_s: float) -> list[str]:
    """A line for each folder that took longer than it may, on a machine of this speed."""
    usual = {folder: each * USUAL_S / machine_s for folder, each in took.items()}
    return [
        f"{folder}: {each:.0f} s, its budget is {allowed.get(folder, 0)} s"
        for folder, each in sorted(usual.items())
        if each > allowed.get(folder, 1)
    ]


def with_budgets(text: str, took: Mapping[str, float], machine_s: float) -> str:
    """The README with new rows for these folders."""
    new = {folder: math.ceil(each * USUAL_S / machine_s * 1.5) for folder, each in took.items()}
    rows = "".join(f"| `{folder}` | {each} |\n" for folder, each in sorted((budgets(text) | new).items()))
    return TABLE.sub(lambda _: rows, text)


def long_tests(took: Mapping[str, float], machine_s: float) -> str:
    """The tests that take over `LONG_S` on a usual machine, a line each."""
    return "".join(f"{test}\n" for test, each in sorted(took.items()) if each * USUAL_S / machine_s >= LONG_S)


# -- as a plugin of pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option that writes the table and the list."""
    parser.addoption("--keep-budgets", action="store_true", help="write tests/README.md and tests/long_tests.txt anew")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Measures the machine before tests keep it busy, where a whole tier is run, in the process that sums up."""
    if not hasattr(session.config, "workerinput") and session.config.args_source is not pytest.Config.ArgsSource.ARGS:
        session.config.stash[MACHINE] = seconds(1)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Says which folders are over their budgets, or writes these."""
    if MACHINE not in config.stash:
        return
    took: defaultdict[str, float] = defaultdict(float)
    by_test: defaultdict[str, float] = defaultdict(float)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport) and MARKER not in report.keywords:
                took[folder_of(report.nodeid)] += report.duration
                real = any(each in report.keywords for each in MARKERS_OF_REAL_PARTS)
                if not real and not report.nodeid.startswith(FOLDERS_OF_REAL_PARTS):
                    by_test[report.nodeid] += report.duration
    text = README.read_text(encoding="utf-8")
    if config.getoption("--keep-budgets"):
        README.write_text(with_budgets(text, took, config.stash[MACHINE]), encoding="utf-8")
        LONG.write_text(long_tests(by_test, config.stash[MACHINE]), encoding="utf-8")
    for told in over(took, budgets(text), config.stash[MACHINE]):
        terminalreporter.write_line(f"over budget: {told}")
