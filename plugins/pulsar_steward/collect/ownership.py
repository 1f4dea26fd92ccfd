"""Assignment of a broker's topics to bundles, as its statistics are older than its list of bundles.

Statistics are up to a minute old. They still contain a bundle that was unloaded since, and a split bundle as a whole.
So topics are assigned by hash position to the bundles that the broker owns now.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from pulsar_steward.model.bundles import BundleRange, position_of, range_holding

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pulsar_steward.pulsar.statistics import BundleStatistics, TopicStatistics

Owned = dict[str, dict[str, BundleRange]]
"""Bundles that one broker owns: namespace → range as text → range."""


def owned_by_namespace(bundles: Iterable[str]) -> Owned:
    """Groups the bundles of `Reader.owned_bundles` (``tenant/ns/range``) by namespace."""
    owned: Owned = defaultdict(dict)
    for bundle in bundles:
        namespace, _, text = bundle.rpartition("/")
        owned[namespace][text] = BundleRange.parse(text)
    return dict(owned)


def as_owned_now(statistics: BundleStatistics, owned: Owned) -> Iterator[tuple[str, dict[str, TopicStatistics]]]:
    """Yields the topics that the broker still owns, by the ranges that it owns now; other topics have moved away."""
    ranges = owned.get(statistics.namespace, {})
    if statistics.bundle in ranges:
        yield statistics.bundle, statistics.topics
        return
    found: dict[str, dict[str, TopicStatistics]] = defaultdict(dict)
    written = {bundle: text for text, bundle in ranges.items()}
    ordered = sorted(written)
    for name, topic in statistics.topics.items() if ordered else ():
        position = position_of(name)
        bundle = range_holding(ordered, position)
        if position in bundle:
            found[written[bundle]][name] = topic
    yield from found.items()
