"""Recipes of CONTRIBUTING.md, which tests carry out in a copy of the project."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def recipe(title: str) -> str:
    """Text of a recipe, by its heading."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return page.partition(f"### {title}\n")[2].partition("\n### ")[0]


def blocks_in(text: str) -> list[str]:
    """Blocks of Python in a recipe's list, without the list's indent."""
    blocks = re.findall(r"   ```python\n(.*?)   ```", text, re.DOTALL)
    return [re.sub(r"^   ", "", block, flags=re.MULTILINE) for block in blocks]


def copied(folder: Path, *parts: str) -> Path:
    """Copies parts of the project there, such as ``lab``; returns the copy of the library."""
    for part in ("plugins/pulsar_steward", *parts):
        shutil.copytree(ROOT / part, folder / part)  # with what Python has compiled
    return folder / "plugins" / "pulsar_steward"


def change(file: Path, replaced: dict[str, str]) -> None:
    """Replaces texts of a file, each of which is there once."""
    text = file.read_text(encoding="utf-8")
    for old, new in replaced.items():
        assert text.count(old) == 1, (file.name, old)
        text = text.replace(old, new)
    file.write_text(text, encoding="utf-8")


def run_pytest(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs pytest on the copy; what is not in it is the project's own."""
    paths = (folder / "plugins", folder, ROOT / "spark_apps", ROOT)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib", *arguments],
        # Plugins that no recipe's test uses would be most of its time.
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths)), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
