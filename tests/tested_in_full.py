"""Which commit last passed all tests that could tell it from one that did: `.ci/run` looks at what changed since.

That is a commit on which `make test-all` passed, or one on which `.ci/run` passed with every sample and variant that
changes since the commit noted before call for. ``begin`` before the tests and ``end`` after they passed; the commit,
the day, the minutes and what ran go into ``.ci/tested-in-full``, to be committed.
"""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime

from benchmarks.bench.kept import committed
from tests.tiers import ROOT

NOTE = ROOT / ".ci" / "tested-in-full"
BEGUN = ROOT / "var" / "tested-in-full"


NOT_COMMITTED = "not-committed"


def begin() -> None:
    """Remembers what is tested, and when that began."""
    BEGUN.parent.mkdir(exist_ok=True)
    BEGUN.write_text(f"{committed() or NOT_COMMITTED} {time.time():.0f}\n", encoding="utf-8")


def end(what: str) -> None:
    """Writes the note, unless the files are not those of the commit: then it says so.

    Args:
        what: What passed, such as ``make test-all``.
    """
    commit, began = BEGUN.read_text(encoding="utf-8").split()
    BEGUN.unlink()
    if committed() != commit:
        words = "all tests passed, but files differ from the commit: .ci/tested-in-full stays as it was"
        print(words)
        return
    minutes = (time.time() - float(began)) / 60
    NOTE.write_text(f"{commit} {datetime.now(UTC):%Y-%m-%d} {minutes:.0f} minutes, {what}\n", encoding="utf-8")
    print(f"all tests passed in {minutes:.0f} minutes: commit {NOTE.relative_to(ROOT)}")


if __name__ == "__main__":
    begin() if sys.argv[1] == "begin" else end(sys.argv[2])
