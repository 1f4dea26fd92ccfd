"""``steward checkup``, as it is typed, from its start to its end: ``python -m benchmarks.bench.checkup URL...``."""

from __future__ import annotations

import resource
import subprocess
import sys
import time

from benchmarks.bench.figures import Figures, told
from pulsar_steward.errors import StewardError

HEALTHY, FINDINGS = 0, 1


def main(*urls: str) -> None:
    """Looks once."""
    command = [sys.executable, "-m", "pulsar_steward.cli", "checkup"]
    began = time.perf_counter()
    done = subprocess.run(  # noqa: S603 - our own module
        [*command, *(word for url in urls for word in ("--admin-url", url))],
        check=False,
        capture_output=True,
        text=True,
    )
    seconds = time.perf_counter() - began
    if done.returncode not in {HEALTHY, FINDINGS}:
        raise StewardError(f"steward checkup ended with {done.returncode}: {done.stderr.strip()}")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu, peak = used.ru_utime + used.ru_stime, used.ru_maxrss * 1024
    told(Figures(seconds=seconds, cpu_seconds=cpu, peak_bytes=peak, what="checkups", count=1))


if __name__ == "__main__":
    main(*sys.argv[1:])
