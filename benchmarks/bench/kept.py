"""Parts that were measured, kept until the document is written: a failure in the last one does not lose the others."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING, TypeVar

import msgspec

from benchmarks.processes import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

T = TypeVar("T")

FOLDER = ROOT / "var" / "bench"


class KeptParts:
    """Parts that an earlier run of the same code measured, and those of this one.

    A tree with changes that are not committed has no name by which a later run could tell that it measures the same:
    nothing is kept of it.
    """

    def __init__(self, folder: Path, commit: str | None) -> None:
        """Keeps them below the folder, under the commit; None: keeps nothing."""
        self._folder = folder / commit if commit else None

    def part(self, name: str, kind: type[T], measure: Callable[[], T], say: Callable[[str], None]) -> T:
        """The part as it was measured already, else as it is measured now."""
        file = self._folder / f"{name}.json" if self._folder else None
        if file and file.exists():
            say(f"{name}: as measured before, {file}")
            return msgspec.json.decode(file.read_bytes(), type=kind)
        measured = measure()
        if file:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(msgspec.json.encode(measured))
        return measured

    def remove(self) -> None:
        """Removes them: the next run measures everything."""
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)


def committed() -> str | None:
    """The commit that is measured; None: there are changes beside it, or no repository."""
    try:
        return None if _git("status", "--porcelain") else _git("rev-parse", "HEAD")
    except (OSError, subprocess.CalledProcessError):
        return None


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments],  # noqa: S607 - the user's own git
        check=True,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    return done.stdout.strip()
