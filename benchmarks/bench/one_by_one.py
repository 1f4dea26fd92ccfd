"""What a script would do: each topic's ``stats`` asked for, 32 at a time; of a sample, as all would take hours.

``python -m benchmarks.bench.one_by_one SAMPLE URL...``
"""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import TYPE_CHECKING

import msgspec
import requests

from benchmarks.bench.figures import Meter, told
from pulsar_steward.admin.statistics import PATH

if TYPE_CHECKING:
    from collections.abc import Iterator

CONNECTIONS = 32
_OUTER = msgspec.json.Decoder(dict[str, dict[str, dict[str, dict[str, msgspec.Raw]]]])
_here = threading.local()


def topics_of(url: str) -> Iterator[tuple[str, str]]:
    """Each topic of a broker, with the broker."""
    for bundles in _OUTER.decode(requests.get(url + PATH, timeout=300).content).values():
        for domains in bundles.values():
            for topics in domains.values():
                yield from ((url, name) for name in topics if "/pulsar/" not in name)


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
        known += topics_of(url)
        if len(known) > 2 * int(sample):
            break
    chosen = Random(1).sample(known, min(int(sample), len(known)))  # noqa: S311 - the same topics each time
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        list(pool.map(asked, chosen[:CONNECTIONS]))
        meter = Meter()
        list(pool.map(asked, chosen))
        figures = meter.figures("topics", len(chosen))
    told(figures)


if __name__ == "__main__":
    main(*sys.argv[1:])
