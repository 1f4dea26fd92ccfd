"""Which commit `make test-all` last passed on: what changed since then is what `.ci/run` looks at.

``begin`` before the tests and ``end`` after they passed; the commit, the day and the minutes go into
``.ci/tested-in-full``, to be committed.
"""

from __future__ import annotations

import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NOTE = ROOT / ".ci" / "tested-in-full"
BEGUN = ROOT / "var" / "tested-in-full"


def _git(*words: str) -> str:
    command = ["git", "-C", str(ROOT), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603 - git


def begin() -> None:
    """Remembers what is tested, and when that began."""
    BEGUN.parent.mkdir(exist_ok=True)
    BEGUN.write_text(f"{_git('rev-parse', 'HEAD')} {time.time():.0f}\n", encoding="utf-8")


def end() -> None:
    """Writes the note, unless the files are not those of the commit: then it says so."""
    commit, began = BEGUN.read_text(encoding="utf-8").split()
    BEGUN.unlink()
    if _git("status", "--porcelain") or _git("rev-parse", "HEAD") != commit:
        print("all tests passed, but files differ from the commit: .ci/tested-in-full stays as it was")  # noqa: T201
        return
    minutes = (time.time() - float(began)) / 60
    NOTE.write_text(f"{commit} {datetime.now(UTC):%Y-%m-%d} {minutes:.0f} minutes\n", encoding="utf-8")
    print(f"all tests passed in {minutes:.0f} minutes: commit {NOTE.relative_to(ROOT)}")  # noqa: T201 - for who ran it


if __name__ == "__main__":
    {"begin": begin, "end": end}[sys.argv[1]]()
