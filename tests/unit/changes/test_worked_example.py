"""The kind of change that CONTRIBUTING.md writes down works as it is said there, in a copy of the project."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent, indent

import pytest

ROOT = Path(__file__).resolve().parents[3]
RECIPE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("### A kind of change\n")[1].split("\n### ")[0]
STRUCT, KIND, CASE, TEST = (dedent(block) for block in re.findall(r"   ```python\n(.*?)   ```", RECIPE, re.DOTALL))
UNION = "Change = UnloadBundle | SplitBundle | ChangeSetting\n"


def test_the_recipe_works(tmp_path: Path) -> None:
    """Its struct, its file, its case and its test, which passes."""
    made = carried_out(tmp_path)
    assert "3 passed" in made.stdout, made.stdout + made.stderr


@pytest.mark.parametrize(
    ("without", "error"),
    [
        ("member", "Invalid value 'load_bundle'"),
        ("case", "Expected code to be unreachable"),
        ("inverse", "abstract method '?inverse"),
        ("record", "abstract method '?record"),
    ],
)
def test_no_piece_can_be_left_out(tmp_path: Path, without: str, error: str) -> None:
    """It is not taken for another kind, and nothing is made up for it."""
    made = carried_out(tmp_path, without=without)
    assert made.returncode == 1, made.stdout + made.stderr
    assert re.search(error, made.stdout), made.stdout


def carried_out(folder: Path, *, without: str = "") -> subprocess.CompletedProcess[str]:
    """Follows the recipe in a copy of the library, but for one piece of it, and runs its test."""
    library = folder / "plugins" / "pulsar_steward"
    shutil.copytree(ROOT / "plugins" / "pulsar_steward", library)
    member = UNION if without == "member" else UNION.replace("\n", " | LoadBundle\n")
    change(library / "model" / "step.py", {"BundleChange =": f"{STRUCT}\n\nBundleChange =", UNION: member})
    case = "" if without == "case" else indent(CASE, " " * 8)
    first = "from pulsar_steward.changes.setting"
    imports = "from pulsar_steward.changes.load import Load\nfrom pulsar_steward.model.step import LoadBundle\n"
    change(
        library / "changes" / "__init__.py",
        {first: f"{imports}{first}", "        case _:": f"{case}        case _:"},
    )
    (library / "changes" / "load.py").write_text(KIND.replace(f"def {without}(", "def left_out("), encoding="utf-8")
    (folder / "test_load.py").write_text(TEST, encoding="utf-8")
    return subprocess.run(  # noqa: S603 - this Python
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib", str(folder)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(folder / "plugins"), str(ROOT)])},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def change(file: Path, replaced: dict[str, str]) -> None:
    """Replaces texts of a file, each of which is there once."""
    text = file.read_text(encoding="utf-8")
    for old, new in replaced.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    file.write_text(text, encoding="utf-8")
