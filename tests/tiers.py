"""Which tests run: those of `make check`, of the gate, all, or the extended ones that a change calls for.

A test with the marker ``extended`` is a sample or a variant of what tests of the gate prove, and the marker names
these. In the folders `VARIED` the further parameters of a test are such variants of its first. `tests/README.md` says
which changes call for which extended tests; this file reads that table. `make check` runs the tests of the gate that
need no `REAL_PARTS`, without the `LONG` ones; who names tests or folders gets these, too.

``python -m tests.tiers called-for PATH...`` prints the extended tests that changes of these paths call for, and
``python -m tests.tiers moved`` the table of all extended tests with what proves the same in the gate.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

ROOT = Path(__file__).resolve().parents[1]
README = Path(__file__).with_name("README.md")
LONG = Path(__file__).with_name("long_tests.txt")
"""Tests that take over a second, which `make check` leaves to the gate; written with the budgets (`budgets.py`)."""

MARKER = "extended"
VARIED = (
    "tests/apply",
    "tests/attacks",
    "tests/checks",
    "tests/unit/cli",
    "tests/unit/ledger",
    "tests/unit/orchestration",
)
"""Folders in which the gate runs a parametrised test with its first parameters alone, as the others take minutes."""

REAL_PARTS = frozenset({"airflow", "labs", "postgres", "spark"})
"""Fixtures that start a real Airflow, Pulsar, PostgreSQL or Spark."""

MARKERS_OF_REAL_PARTS = ("live", "postgres", "spark")
"""For tests that start one of these without its fixture, or ask for that by its name."""

FOLDERS_OF_REAL_PARTS = ("tests/live", "tests/browser", "tests/install", "tests/spark")

CALLS_FOR = re.compile(r"^\| changed[^\n]*\n\|[-|]+\n(?P<rows>(?:\|[^\n]*\n)+)", re.MULTILINE)
QUOTED = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class Extended:
    """An extended test, or a file of such tests, or a folder whose ``conftest.py`` makes variants of its tests.

    Attributes:
        test: ``tests/folder/test_file.py``, with ``::name`` behind it unless the whole file is extended.
        proofs: The tests of the gate that prove the same contract.
        some: Whether only some of its parameters are extended; the gate runs the others.
    """

    test: str
    proofs: tuple[str, ...]
    some: bool = False


def extended_tests(files: Iterable[Path]) -> Iterator[Extended]:
    """Every use of the marker in these files."""
    for file in files:
        text = file.read_text(encoding="utf-8")
        if f"mark.{MARKER}" not in text:  # quicker than to parse it
            continue
        name = file.parent if file.name == "conftest.py" else file
        path = name.relative_to(ROOT).as_posix()
        for node in ast.parse(text).body:
            function = node if isinstance(node, ast.FunctionDef) else None
            test = f"{path}::{function.name}" if function and function.name.startswith("test_") else path
            whole = function.decorator_list if function else _listed(node)
            for mark in _marks(node):
                yield Extended(test, tuple(ast.literal_eval(proof) for proof in mark.args), some=mark not in whole)


def _marks(node: ast.AST) -> list[ast.Call]:
    """Calls of the marker within a statement."""
    calls = [each for each in ast.walk(node) if isinstance(each, ast.Call)]
    return [call for call in calls if ast.unparse(call.func) == f"pytest.mark.{MARKER}"]


def _listed(node: ast.stmt) -> list[ast.expr]:
    """The marks of a module's ``pytestmark``."""
    if not isinstance(node, ast.Assign):
        return []
    return node.value.elts if isinstance(node.value, ast.List) else [node.value]


def files_with_marks() -> list[Path]:
    """Every file that may mark a test."""
    return sorted([*ROOT.glob("tests/**/test_*.py"), *ROOT.glob("tests/**/conftest.py")])


def table_of_calls(text: str) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """The rows of the table in `tests/README.md`: paths that may change, and extended tests that are run then."""
    table = CALLS_FOR.search(text)
    if table is None:
        raise ValueError(f"no table of what changes call for: see {README}")
    rows = (row.split("|")[1:3] for row in table["rows"].splitlines())
    return [(tuple(QUOTED.findall(paths)), tuple(QUOTED.findall(tests))) for paths, tests in rows]


def called_for(changed: Iterable[str], text: str | None = None) -> list[str]:
    """The extended tests that changes call for, as paths of tests; a changed extended test calls for itself.

    Args:
        changed: Paths of changed files, from the project's root.
        text: The README with the table; the project's by default.
    """
    paths = list(changed)
    rows = table_of_calls(README.read_text(encoding="utf-8") if text is None else text)
    called = {
        test
        for prefixes, tests in rows
        for test in tests
        if any(path.startswith(prefix) for path in paths for prefix in prefixes)
    }
    own = {each.test for each in extended_tests(files_with_marks())}
    return sorted(called | {test for test in own if test.partition("::")[0] in paths})


def changed_since(commit: str) -> list[str]:
    """Paths that differ between a commit and the files as they are; every path of a commit that git does not know."""
    known = git("cat-file", "-e", f"{commit}^{{commit}}").returncode == 0
    if not known:
        print(f"git does not know {commit}: every file counts as changed", file=sys.stderr)
    command = ("diff", "--name-only", commit, "--") if known else ("ls-files",)
    return git(*command).stdout.splitlines()


def git(*words: str) -> subprocess.CompletedProcess[str]:
    """Git's answer about this project; look at the return code."""
    command = ["git", "-C", str(ROOT), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def moved(tests: Iterable[Extended]) -> str:
    """The table of extended tests, with what proves the same in the gate, as Markdown."""
    lines = [
        f"| `{each.test}`{' (some parameters)' if each.some else ''} | "
        + ", ".join(f"`{proof}`" for proof in each.proofs)
        + " |"
        for each in tests
    ]
    return "\n".join(["| extended test | the gate proves the same contract by |", "|---|---|", *lines])


# -- as a plugin of pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options that `make test`, `make test-all` and `make test-for` give."""
    group = parser.getgroup("tiers")
    group.addoption(
        "--tier",
        choices=("check", "gate", "all", "extended"),
        default="all",
        help="the gate's tests without or with real parts, all tests, or only the extended ones",
    )
    group.addoption(
        "--called-for",
        action="append",
        default=[],
        metavar="TEST",
        help="of the extended tests only this one, or those of this file or folder; may be given several times",
    )
    group.addoption("--until", type=float, help="seconds of the epoch from when on no extended test is begun")


def pytest_configure(config: pytest.Config) -> None:
    """Declares the marker."""
    config.addinivalue_line("markers", f"{MARKER}(*proofs): `make test-all` only; these tests prove the same")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what the tier does not run."""
    tier, starts = config.getoption("--tier"), tuple(config.getoption("--called-for"))
    if tier == "all":
        return
    for item in _variants(items):
        item.add_marker(MARKER)
    whole = config.args_source is not pytest.Config.ArgsSource.ARGS
    long = set(LONG.read_text(encoding="utf-8").splitlines()) if tier == "check" and whole else set()
    chosen: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        (chosen if _is_chosen(item, tier, starts) and item.nodeid not in long else left_out).append(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = chosen


def _variants(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Tests of the folders `VARIED` with further parameters than the first."""
    seen: set[str] = set()
    variants = []
    for item in items:
        name = item.nodeid.partition("[")[0]
        if item.nodeid.startswith(VARIED) and name in seen:
            variants.append(item)
        seen.add(name)
    return variants


def _is_chosen(item: pytest.Item, tier: str, starts: tuple[str, ...]) -> bool:
    if is_extended(item):
        return item.nodeid.startswith(starts) if starts else tier == "extended"
    return tier == "gate" or (tier == "check" and not needs_real_parts(item))


def is_extended(item: pytest.Item) -> bool:
    """Whether a test is a sample or a variant."""
    return item.get_closest_marker(MARKER) is not None


def needs_real_parts(item: pytest.Item) -> bool:
    """Whether a test needs a real Pulsar, Airflow, Spark, PostgreSQL or browser."""
    return (
        bool(REAL_PARTS.intersection(getattr(item, "fixturenames", ())))
        or any(item.get_closest_marker(name) for name in MARKERS_OF_REAL_PARTS)
        or item.nodeid.startswith(FOLDERS_OF_REAL_PARTS)
    )


def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> None:
    """Refuses a real part to `make check`: a test that asks for one by its name looks as if it needed none."""
    if fixturedef.argname in REAL_PARTS and request.config.getoption("--tier") == "check":
        pytest.fail(f"`make check` starts no {fixturedef.argname}: mark the test, as `needs_real_parts` says")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leaves an extended test out when the time for such tests is over."""
    until = item.config.getoption("--until")
    if until is not None and is_extended(item) and time.time() > until:
        pytest.skip("left out: no time is left for samples and variants")


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints what is asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.tiers", description="Which extended tests there are.")
    commands = parser.add_subparsers(dest="command", required=True)
    calls = commands.add_parser("called-for", help="the extended tests that changes call for, one a line")
    calls.add_argument("paths", nargs="*", help="changed files or folders")
    calls.add_argument("--since", metavar="COMMIT", help="also what changed since this commit")
    commands.add_parser("moved", help="the table of extended tests, as Markdown")
    given = parser.parse_args(arguments)
    if given.command == "moved":
        print(moved(extended_tests(files_with_marks())))
        return
    for test in called_for([*given.paths, *(changed_since(given.since) if given.since else [])]):
        print(test)


if __name__ == "__main__":
    main()
