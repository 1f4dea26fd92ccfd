"""Budgets of the folders of tests: what is over its own is printed, and the table is written by a command."""

from __future__ import annotations

from pathlib import Path

from tests.budgets import README, USUAL_S, budgets, folder_of, long_tests, over, with_budgets
from tests.tiers import LONG

FOLDERS = Path(__file__).resolve().parents[1]
TEXT = "Seconds.\n\n| folder | seconds |\n|---|---|\n| `tests/a` | 10 |\n| `tests/b` | 20 |\n\nMore.\n"


def test_a_folder_is_over_its_budget_on_a_usual_machine() -> None:
    assert over({"tests/a": 15, "tests/b": 15}, budgets(TEXT), USUAL_S) == ["tests/a: 15 s, its budget is 10 s"]
    assert over({"tests/a": 15, "tests/b": 15}, budgets(TEXT), USUAL_S * 2) == []
    assert over({"tests/new": 5}, budgets(TEXT), USUAL_S) == ["tests/new: 5 s, its budget is 0 s"]


def test_budgets_are_written_in_their_table() -> None:
    """A folder that ran gets half as much again as it took; the others stay, and so does the text around."""
    assert with_budgets(TEXT, {"tests/b": 30, "tests/c": 1}, USUAL_S) == TEXT.replace(
        "| `tests/b` | 20 |", "| `tests/b` | 45 |\n| `tests/c` | 2 |"
    )


def test_long_tests_are_told_from_quick_ones_on_a_usual_machine() -> None:
    took = {"tests/a.py::test_b": 1.0, "tests/a.py::test_a": 2.5, "tests/a.py::test_c": 0.9}
    assert long_tests(took, USUAL_S) == "tests/a.py::test_a\ntests/a.py::test_b\n"
    assert long_tests(took, USUAL_S * 2) == "tests/a.py::test_a\n"


def test_every_long_test_is_there() -> None:
    """One that is renamed counts as quick until the list is written anew."""
    named = [test.partition("[")[0].split("::") for test in LONG.read_text(encoding="utf-8").splitlines()]
    texts = {path: (FOLDERS.parent / path).read_text(encoding="utf-8") for path in {path for path, *_ in named}}
    assert [name for path, *_, name in named if f"def {name}(" not in texts[path] and path.endswith(".py")] == []


def test_the_readme_has_a_budget_of_each_folder() -> None:
    there = {folder_of(file.relative_to(FOLDERS.parent).as_posix()) for file in FOLDERS.rglob("test_*.py")}
    assert budgets(README.read_text(encoding="utf-8")).keys() == there
