"""The two tiers of tests hold together, and a run prints which folders are over their budget."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests import tiers
from tests.budgets import README, USUAL_S, budgets, folder_of, long_tests, over, with_budgets
from tests.tiers import LONG, ROOT, VARIED, called_for, extended_tests, files_with_marks, moved, table_of_calls

EXTENDED = list(extended_tests(files_with_marks()))
CALLS = table_of_calls(tiers.README.read_text(encoding="utf-8"))
CODE = ("plugins/pulsar_steward", "spark_apps/steward_spark", "lab", "benchmarks")
NO_CODE_OF_THE_TOOL = {"benchmarks/bench", "lab/demo"}
"""What no test is about, or what every test rests on."""

TABLE = """
| changed | extended tests |
|---|---|
| `lab/a/`, `plugins/b.py` | `tests/live/test_x.py::test_one`, `tests/chaos` |
| `dags/` | `tests/chaos` |
"""


def test_changes_call_for_the_tests_beside_them() -> None:
    assert called_for(["plugins/b.py", "lab/a/c/d.py", "dags/e.py"], TABLE) == [
        "tests/chaos",
        "tests/live/test_x.py::test_one",
    ]
    assert called_for(["dags/e.py"], TABLE) == ["tests/chaos"]
    assert called_for(["docs/a.md", "plugins/b_too.md"], TABLE) == []


def test_a_changed_extended_test_calls_for_itself() -> None:
    file = EXTENDED[0].test.partition("::")[0]
    assert {each.test for each in EXTENDED if each.test.startswith(file)} <= set(called_for([file], TABLE))


@pytest.mark.parametrize("part", sorted(tiers.REAL_PARTS))
def test_make_check_starts_no_real_part(part: str) -> None:
    """A test that asks for one by its name looks as if it needed none: the fixture itself refuses."""
    fixture: Any = SimpleNamespace(argname=part)
    request: Any = SimpleNamespace(config=SimpleNamespace(getoption=lambda _: "check"))
    with pytest.raises(pytest.fail.Exception, match=f"starts no {part}"):
        tiers.pytest_fixture_setup(fixture, request)


@pytest.mark.parametrize("extended", EXTENDED, ids=lambda extended: extended.test)
def test_the_gate_proves_the_same(extended: tiers.Extended) -> None:
    assert extended.proofs
    for proof in extended.proofs:
        path, _, name = proof.partition("::")
        assert (ROOT / path).exists(), proof
        assert not name or f"def {name}(" in (ROOT / path).read_text(encoding="utf-8"), proof
        assert not {proof, path} & {each.test for each in EXTENDED if not each.some}


def test_the_document_lists_what_moved() -> None:
    assert moved(EXTENDED) in tiers.README.read_text(encoding="utf-8")


def test_every_extended_test_is_called_for() -> None:
    targets = tuple(target for _, tests in CALLS for target in tests)
    assert [each.test for each in EXTENDED if not each.test.startswith(targets)] == []
    known = (*(each.test for each in EXTENDED), *VARIED)
    assert [target for target in targets if not any(each.startswith(target) for each in known)] == []
    assert set(VARIED) <= set(targets)


def test_the_table_knows_all_of_the_code() -> None:
    paths = [path for paths, _ in CALLS for path in paths]
    assert [path for path in paths if not (ROOT / path).exists()] == []
    packages = {
        package.relative_to(ROOT).as_posix()
        for code in CODE
        for package in Path(ROOT, code).iterdir()
        if package.is_dir() and package.name != "__pycache__"
    }
    covered = {package for package in packages if any(f"{package}/".startswith(path) for path in paths)}
    assert packages - covered == NO_CODE_OF_THE_TOOL


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
    files = {path: FOLDERS.parent / path for path, *_ in named}
    texts = {path: file.read_text(encoding="utf-8") if file.exists() else "" for path, file in files.items()}
    assert [(path, name) for path, *_, name in named if f"def {name}(" not in texts[path]] == []


def test_the_readme_has_a_budget_of_each_folder() -> None:
    there = {folder_of(file.relative_to(FOLDERS.parent).as_posix()) for file in FOLDERS.rglob("test_*.py")}
    assert budgets(README.read_text(encoding="utf-8")).keys() == there
