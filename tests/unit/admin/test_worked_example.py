"""The endpoint that CONTRIBUTING.md writes down works as it is said there, in a copy of the project."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
RECIPE = PAGE.partition("### An endpoint\n")[2].partition("\n### ")[0]
METHOD, HANDLER, TEST = (
    re.sub(r"^   ", "", block, flags=re.MULTILINE)
    for block in re.findall(r"   ```python\n(.*?)   ```", RECIPE, re.DOTALL)
)
(ROUTE,) = re.findall(r"`(Route\(.+?\))`", RECIPE)
READER, SIMULATED = Path("plugins/pulsar_steward/admin/reader.py"), Path("lab/simulator/brokers.py")
CONTRACT, TABLE = Path("tests/contract/test_reading.py"), Path("tests/unit/admin/test_reader.py")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of what the recipe touches, with the reader's new method in it."""
    for folder in ("plugins/pulsar_steward", "lab", "tests/contract", "tests/unit/admin"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    _insert(tmp_path / READER, f"{METHOD}\n", before="    def clock_skew_milliseconds")
    return tmp_path


def test_the_recipe_works(copy: Path) -> None:
    """Its method, handler, route and test, which passes; nothing else of the reader's tests has to change."""
    _insert(copy / SIMULATED, f"{HANDLER}\n\n", before="async def clusters(")
    _insert(copy / SIMULATED, f"    {ROUTE},\n", before='    Route("/admin/v2/brokers/{cluster}", listed)')
    with (copy / CONTRACT).open("a", encoding="utf-8") as file:
        file.write(f"\n\n{TEST}")

    done = _run(copy, str(CONTRACT), str(TABLE), "-k", "at_run_time and simulator or every_method_is_tried")

    assert "2 passed" in done.stdout, done.stdout + done.stderr


def test_a_method_that_nobody_tries_is_found(copy: Path) -> None:
    """Without its contract test the method would be held to nothing."""
    done = _run(copy, str(TABLE), "-k", "every_method_is_tried")

    assert "1 failed" in done.stdout, done.stdout + done.stderr
    assert "dynamic_configuration" in done.stdout


def _insert(file: Path, text: str, *, before: str) -> None:
    first, found, rest = file.read_text(encoding="utf-8").partition(before)
    assert found, f"{file.name} has no {before!r}"
    file.write_text(f"{first}{text}{found}{rest}", encoding="utf-8")


def _run(copy: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    paths = (copy / "plugins", copy, ROOT / "spark_apps", ROOT)
    return subprocess.run(  # noqa: S603 - this Python
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib", *arguments],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths))},
        cwd=copy,
        capture_output=True,
        text=True,
        check=False,
    )
