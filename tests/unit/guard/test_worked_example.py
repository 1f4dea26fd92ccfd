"""The guard that CONTRIBUTING.md writes down works as it is said there, in a copy of the project."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).resolve().parents[3]
RECIPE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("### A guard\n")[2].partition("\n### ")[0]
GUARD, TEST = (dedent(block) for block in re.findall(r"   ```python\n(.*?)   ```", RECIPE, re.DOTALL))
LAST = "    Protected(),\n"


def test_the_recipe_works(tmp_path: Path) -> None:
    """Its file, a line in the list of guards, and its test, which passes."""
    guards = tmp_path / "plugins" / "pulsar_steward" / "guard"
    shutil.copytree(ROOT / "plugins" / "pulsar_steward", guards.parent)
    (guards / "idle_bundle.py").write_text(GUARD, encoding="utf-8")
    registry = (guards / "evaluate.py").read_text(encoding="utf-8")
    assert LAST in registry
    first, rest = registry.split("from pulsar_steward.guard.limits", 1)
    named = f"{first}from pulsar_steward.guard.idle_bundle import IdleBundle\nfrom pulsar_steward.guard.limits{rest}"
    (guards / "evaluate.py").write_text(named.replace(LAST, f"{LAST}    IdleBundle(),\n"), encoding="utf-8")
    (tmp_path / "test_idle_bundle.py").write_text(TEST, encoding="utf-8")

    done = subprocess.run(  # noqa: S603 - this Python
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib", str(tmp_path)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path / "plugins"), str(ROOT)])},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert "3 passed" in done.stdout, done.stdout + done.stderr
