"""``steward checkup``, as it is typed, from its start to its end: ``python -m benchmarks.bench.checkup URL...``."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING

from benchmarks.bench.figures import Figures, told
from pulsar_steward.errors import StewardError

if TYPE_CHECKING:
    from collections.abc import Collection

HEALTHY, FINDINGS = 0, 1
FIRST_LINE = "its first line"
"""Seconds until it says something, among a measurement's parts."""


def main(*urls: str) -> None:
    """Looks once."""
    told(looked(*(word for url in urls for word in ("--admin-url", url))))


def looked(*options: str, outcomes: Collection[int] = (HEALTHY, FINDINGS)) -> Figures:
    """Figures of one check-up with these options, which ends with one of these exit codes."""
    command = [sys.executable, "-m", "pulsar_steward.cli", "checkup", *options]
    began = time.perf_counter()
    with (
        tempfile.TemporaryFile() as report,
        subprocess.Popen(
            command,
            stdout=report,
            stderr=subprocess.PIPE,
            text=True,
        ) as process,
    ):
        assert process.stderr is not None  # noqa: S101 - asked for above
        said = process.stderr.readline()
        first = time.perf_counter() - began
        said += process.stderr.read()
    seconds = time.perf_counter() - began
    if process.returncode not in outcomes:
        raise StewardError(f"steward checkup ended with {process.returncode}: {said.strip()}")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu, peak = used.ru_utime + used.ru_stime, used.ru_maxrss * 1024
    parts = {FIRST_LINE: first}
    return Figures(seconds=seconds, cpu_seconds=cpu, peak_bytes=peak, what="checkups", count=1, parts=parts)


if __name__ == "__main__":
    main(*sys.argv[1:])
