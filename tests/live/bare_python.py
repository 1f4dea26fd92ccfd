"""A Python as executors on another machine have it: with the third-party packages, and without Steward."""

from __future__ import annotations

import os
import subprocess
import sysconfig
import venv
from pathlib import Path


def bare_python(folder: Path) -> str:
    """Makes one in a folder; the path of its interpreter."""
    venv.EnvBuilder(symlinks=True).create(folder)
    packages = sysconfig.get_path("purelib", "venv", {"base": str(folder), "platbase": str(folder)})
    # What such a line names is searched for modules, but not for further files of such lines: an editable install.
    Path(packages, "third-party.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    return str(folder / "bin" / "python")


def imports(python: str, module: str) -> bool:
    known = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    command = [python, "-c", f"import {module}"]
    return subprocess.run(command, env=known, capture_output=True, check=False, cwd="/").returncode == 0
