"""The endpoint that CONTRIBUTING.md writes down works as it is said there, in a copy of the project."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.recipes import blocks_in, change, copied, recipe, run_pytest

RECIPE = recipe("An endpoint")
METHOD, HANDLER, TEST = blocks_in(RECIPE)
(ROUTE,) = re.findall(r"`(Route\(.+?\))`", RECIPE)
READER, SIMULATED = Path("plugins/pulsar_steward/pulsar/reader.py"), Path("lab/simulator/brokers.py")
CONTRACT, TABLE = Path("tests/contract/test_reading.py"), Path("tests/unit/pulsar/test_reader.py")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of what the recipe touches, with the reader's new method in it."""
    copied(tmp_path, "lab", "tests/contract", "tests/unit/pulsar")
    _insert(tmp_path / READER, f"{METHOD}\n", before="    def clock_skew_milliseconds")
    return tmp_path


def test_the_recipe_works(copy: Path) -> None:
    """The recipe's method, handler, route and test work, without other changes to the reader's tests."""
    _insert(copy / SIMULATED, f"{HANDLER}\n\n", before="async def clusters(")
    _insert(copy / SIMULATED, f"    {ROUTE},\n", before='    Route("/admin/v2/brokers/{cluster}", listed)')
    with (copy / CONTRACT).open("a", encoding="utf-8") as file:
        file.write(f"\n\n{TEST}")

    done = run_pytest(copy, str(CONTRACT), str(TABLE), "-k", "at_run_time and simulator or every_method_is_tried")

    assert "2 passed" in done.stdout, done.stdout + done.stderr


def test_a_method_that_nobody_tries_is_found(copy: Path) -> None:
    """The reader's tests fail for a new method without a contract test, and name the method."""
    done = run_pytest(copy, str(TABLE), "-k", "every_method_is_tried")

    assert "1 failed" in done.stdout, done.stdout + done.stderr
    assert "dynamic_configuration" in done.stdout


def _insert(file: Path, text: str, *, before: str) -> None:
    change(file, {before: f"{text}{before}"})
