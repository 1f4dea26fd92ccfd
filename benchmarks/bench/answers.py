"""Brokers' answers about their topics, one by one and undecoded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import requests

from pulsar_steward.pulsar.statistics import PATH

if TYPE_CHECKING:
    from collections.abc import Iterator

_DOCUMENT = msgspec.json.Decoder(dict[str, dict[str, dict[str, dict[str, msgspec.Raw]]]])


def topics_of(url: str) -> Iterator[tuple[str, str, msgspec.Raw]]:
    """Each topic of a broker: its namespace, its full name, and its statistics."""
    for namespace, bundles in _DOCUMENT.decode(requests.get(url + PATH, timeout=300).content).items():
        for domains in bundles.values():
            for topics in domains.values():
                yield from ((namespace, name, statistics) for name, statistics in topics.items())
