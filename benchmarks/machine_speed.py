"""Speed of this machine, by a fixed piece of work: so that seconds of runs on different machines compare.

``python -m benchmarks.machine_speed`` prints it; any Python will do, nothing else is needed.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
import zlib

ROUNDS = 60
TOPICS = 12_000


def fixed_work() -> str:
    """Writes, compresses, reads and sorts the same made-up statistics a fixed number of times; returns their digest."""
    topics = [
        {
            "topic": f"persistent://tenant/namespace/topic-{number}",
            "backlog": number * 7919 % 10_007,
            "rate": number / 7,
        }
        for number in range(TOPICS)
    ]
    digest = hashlib.sha256()
    for _ in range(ROUNDS):
        text = json.dumps(topics).encode()
        read = json.loads(zlib.decompress(zlib.compress(text, 3)))
        topics = sorted(read, key=lambda topic: (topic["backlog"], topic["topic"]))
        digest.update(text)
    return digest.hexdigest()


def seconds(processes: int) -> float:
    """Seconds of wall time for so many processes that each do the fixed work, Python's start included."""
    began = time.monotonic()
    running = [subprocess.Popen([sys.executable, __file__, "work"]) for _ in range(processes)]
    codes = [each.wait() for each in running]
    if any(codes):
        raise SystemExit("the fixed piece of work failed")
    return time.monotonic() - began


def main() -> None:
    """Prints the speed of one core, and of all cores together."""
    if sys.argv[1:] == ["work"]:
        fixed_work()
        return
    cores = os.cpu_count() or 1
    print(f"this machine's speed: a fixed piece of work takes {seconds(1):.1f} s", end="")
    print(f", and {seconds(cores):.1f} s on each of {cores} cores at once" if cores > 1 else "")


if __name__ == "__main__":
    main()
