"""Speed of reading a broker's Prometheus text: the filter of names before the library, against the library alone.

``python -m benchmarks.prometheus_text`` makes the text of a broker of so many topics and prints a table.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console
from rich.table import Table

from pulsar_steward.collect.metrics import SERIES
from pulsar_steward.pulsar.metrics import Exposition

if TYPE_CHECKING:
    from collections.abc import Callable

TOPICS = 1_000
SERIES_A_TOPIC = 60
PIECE = 1 << 16
WANTED = "pulsar_subscription_delayed"


def text() -> bytes:
    """A made-up answer: of each topic 60 series, one of which is wanted; every fourth of these does not rest."""
    lines = []
    for topic in range(TOPICS):
        labels = f'cluster="c",namespace="t/n{topic % 50}",topic="persistent://t/n{topic % 50}/topic-{topic}"'
        lines += [f"pulsar_made_up_{number}{{{labels}}} {number}.5" for number in range(SERIES_A_TOPIC - 1)]
        lines.append(f'{WANTED}{{{labels},subscription="s"}} {topic if topic % 4 == 0 else 0}')
    return "\n".join(lines).encode()


def filtered(body: bytes) -> int:
    """As `collect` reads it; returns the samples that are kept."""
    pieces = (body[at : at + PIECE] for at in range(0, len(body), PIECE))
    return sum(1 for _ in Exposition(pieces, len(body)).samples(SERIES["broker"]))


def library_alone(body: bytes) -> int:
    """Every line by the library; returns all samples."""
    return sum(len(family.samples) for family in text_string_to_metric_families(body.decode()))


def main() -> None:
    """Prints the table."""
    body = text()
    table = Table("read by", "samples", "seconds", "MB/s", "ratio", title=f"{len(body) / 1e6:.0f} MB of metrics")
    ways: dict[str, Callable[[bytes], int]] = {"filter, then library": filtered, "library alone": library_alone}
    first = 0.0
    for name, way in ways.items():
        began = time.perf_counter()
        samples = way(body)
        seconds = time.perf_counter() - began
        first = first or seconds
        speed = len(body) / 1e6 / seconds
        table.add_row(name, f"{samples:,}", f"{seconds:.2f}", f"{speed:.0f}", f"{seconds / first:.1f}")
    Console().print(table)


if __name__ == "__main__":
    main()
