"""Placement of the transaction coordinators, computed from bundles: a request to the brokers would load them."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.model.bundles import BundleRange, position_of, tc_topic

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class SystemBundle(msgspec.Struct, frozen=True):
    """A bundle of ``pulsar/system``: its range as text, its owner (None: no owner), and whether the owner is known."""

    bundle: str
    owner: str | None
    owner_known: bool


class Coordinator(msgspec.Struct, frozen=True):
    """A row of the table `transaction_coordinators`."""

    coordinator: int
    position: int
    bundle: str | None
    broker: str | None
    broker_known: bool


def placement(count: int, bundles: Iterable[SystemBundle]) -> list[Coordinator]:
    """Computes the placement of the coordinators 0 to `count` - 1.

    Args:
        count: Number of the cluster's transaction coordinators.
        bundles: The bundles of ``pulsar/system``. A bundle split during collecting may be present besides its halves:
            owned bundles take precedence.
    """
    bundles = tuple(bundles)
    owned = _Ranges([bundle for bundle in bundles if bundle.owner is not None])
    others = _Ranges([bundle for bundle in bundles if bundle.owner is None])
    return [_placed(number, owned, others) for number in range(count)]


def _placed(number: int, owned: _Ranges, others: _Ranges) -> Coordinator:
    position = position_of(tc_topic(number))
    bundle = owned.holding(position) or others.holding(position)
    if bundle is None:
        return Coordinator(number, position, None, None, broker_known=False)
    return Coordinator(number, position, bundle.bundle, bundle.owner, bundle.owner_known)


class _Ranges:
    """Bundles by hash position; there may be gaps between them."""

    def __init__(self, bundles: Sequence[SystemBundle]) -> None:
        pairs = [(BundleRange.parse(bundle.bundle), bundle) for bundle in bundles]
        self._ranges = sorted(pairs, key=lambda pair: pair[0])

    def holding(self, position: int) -> SystemBundle | None:
        index = bisect_right(self._ranges, position, key=lambda pair: pair[0].lower) - 1
        if index < 0 or position not in self._ranges[index][0]:
            return None
        return self._ranges[index][1]
