"""Baseline of a script: each topic's ``stats`` asked for, 32 at a time; of a sample, as all would take hours.

``python -m benchmarks.bench.one_by_one SAMPLE URL...``
"""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from random import Random

import msgspec
import requests

from benchmarks.bench.answers import topics_of
from benchmarks.bench.figures import Meter, told

CONNECTIONS = 32
_here = threading.local()


def asked(task: tuple[str, str]) -> int:
    """Asks a topic's owner for its statistics; returns how many bytes it answered."""
    url, name = task
    if not hasattr(_here, "session"):
        _here.session = requests.Session()
    answer = _here.session.get(f"{url}/admin/v2/{name.replace('://', '/')}/stats", timeout=60)
    answer.raise_for_status()
    return len(msgspec.json.decode(answer.content))


def main(sample: str, *urls: str) -> None:
    """Asks for so many topics of the first brokers."""
    known: list[tuple[str, str]] = []
    for url in urls:
        known += ((url, name) for _, name, _ in topics_of(url) if "/pulsar/" not in name)
        if len(known) > 2 * int(sample):
            break
    chosen = Random(1).sample(known, min(int(sample), len(known)))
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        list(pool.map(asked, chosen[:CONNECTIONS]))
        meter = Meter()
        list(pool.map(asked, chosen))
        figures = meter.figures("topics", len(chosen))
    told(figures)


if __name__ == "__main__":
    main(*sys.argv[1:])
