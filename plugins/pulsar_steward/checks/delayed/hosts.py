"""Brokers that share a host, and so are lost together."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from pulsar_steward.model.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

NOTHING_LOADED = (
    "No topic is loaded on any broker that was read: what this cluster carries, and would have to load again, cannot be"
    " seen at the moment."
)
"""Sentence for brokers without topics: after a restart of all brokers, or before the first use."""


def host_of(broker: str) -> str:
    """The host of ``host:webport``. Brokers in containers have host names of their own."""
    return broker.rpartition(":")[0]


def brokers_by_host(brokers: Iterable[str]) -> Mapping[str, Sequence[str]]:
    """Brokers of each host, in order."""
    found: dict[str, list[str]] = defaultdict(list)
    for broker in sorted(brokers):
        found[host_of(broker)].append(broker)
    return found


def all_on_one_host(brokers: Sequence[str]) -> str:
    """Further sentence if several brokers are all on one host; else empty."""
    by_host = brokers_by_host(brokers)
    if len(brokers) == 1 or len(by_host) > 1:
        return ""
    return f" All {counted(len(brokers), 'broker')} are on one host, {next(iter(by_host))}: its loss stops everything."
