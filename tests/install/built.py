"""The wheel of this repository, and environments that hold nothing but what is installed into them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from shutil import which

import pytest

ROOT = Path(__file__).resolve().parents[2]
MINUTES_TO_INSTALL = 15
PINNED = re.compile(r"^[\w.-]+(?:\[[\w,-]+\])?==[^\\]+", re.MULTILINE)


@dataclass(frozen=True)
class Environment:
    """A virtual environment, away from the repository.

    Attributes:
        folder: The environment.
        home: An empty folder that commands run in, and take for the user's home.
    """

    folder: Path
    home: Path

    @property
    def python(self) -> Path:
        """The environment's Python interpreter."""
        return self.folder / "bin" / "python"

    def variables(self, **more: str) -> dict[str, str]:
        """Environment of its commands: nothing of the repository, of an Airflow or of a Steward."""
        kept = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
        kept = {name: value for name, value in kept.items() if not name.startswith(("AIRFLOW", "STEWARD", "SPARK"))}
        path = os.pathsep.join([str(self.folder / "bin"), kept["PATH"]])
        return kept | caches() | {"HOME": str(self.home), "PATH": path, "COLUMNS": "80"} | more

    def run(self, *words: str, check: bool = True, **more: str) -> subprocess.CompletedProcess[str]:
        """Runs one of its commands."""
        ended = subprocess.run(
            [str(self.folder / "bin" / words[0]), *words[1:]],
            cwd=self.home,
            env=self.variables(**more),
            capture_output=True,
            text=True,
            timeout=MINUTES_TO_INSTALL * 60,
            check=False,
        )
        assert not check or ended.returncode == 0, f"{words}: {ended.returncode}\n{ended.stdout}\n{ended.stderr}"
        return ended


def caches() -> dict[str, str]:
    """Returns the cache folders of pip and uv of this user, also for commands with another home."""
    home = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return {"PIP_CACHE_DIR": str(home / "pip"), "UV_CACHE_DIR": str(home / "uv")}


def build_wheel(folder: Path) -> Path:
    """The wheel, as `python -m build` makes it."""
    return _built("wheel", folder)


def build_sdist(folder: Path) -> Path:
    """The source distribution, as `python -m build` makes it."""
    return _built("sdist", folder)


def _built(kind: str, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    code = f"import sys; from hatchling.build import build_{kind} as build; print(build(sys.argv[1]))"
    built = subprocess.run(
        [sys.executable, "-c", code, str(folder)], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return folder / built.stdout.splitlines()[-1]


def clean_environment(folder: Path, python: str | None = None) -> Environment:
    """A new environment with nothing but pip, of this Python or another version of it; skips where there is none."""
    home = folder / "home"
    home.mkdir(parents=True)
    subprocess.run([python_of(python), "-m", "venv", str(folder / "venv")], check=True)
    return Environment(folder / "venv", home)


def python_of(version: str | None) -> str:
    """An interpreter of that version (``3.12``): on the path, or of pyenv."""
    if version is None:
        return sys.executable
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = [which(f"python{version}"), *map(str, sorted(root.glob(f"{version}.*/bin/python")))]
    for each in filter(None, found):
        if not subprocess.run([each, "-c", "import venv, ssl"], capture_output=True, check=False).returncode:
            return each
    pytest.skip(f"no Python {version} on this machine")


def constraints(folder: Path) -> Path:
    """The versions of the lock, so that what the world releases tomorrow fails no test today."""
    lines = PINNED.findall((ROOT / "requirements.lock").read_text(encoding="utf-8"))
    file = folder / "constraints.txt"
    file.write_text("\n".join(line.strip() for line in lines), encoding="utf-8")
    return file
