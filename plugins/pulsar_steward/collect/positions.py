"""Hash positions of all topics in a bundle, also unloaded ones, from its owner; a split divides them.

The request loads nothing, but its response grows with the number of topics. So it is made for the coordinators'
bundles, and otherwise only for the few largest bundles of each broker.
"""

from __future__ import annotations

import logging
from heapq import nsmallest
from typing import TYPE_CHECKING

from pulsar_steward.collect.rows import UNFIT
from pulsar_steward.errors import AdminError, TimedOut, Unreachable
from pulsar_steward.model.bundles import TC_NAMESPACE
from pulsar_steward.model.units import MEGABYTE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulsar_steward.collect.bundles import BundleSum, Owned
    from pulsar_steward.policy.schema import CollectPolicy
    from pulsar_steward.pulsar.reader import Reader

log = logging.getLogger(__name__)


GIVING_UP = (Unreachable, TimedOut)
"""Errors after which the broker is not read any further: the next call would take as long."""

Positions = dict[tuple[str, str], list[int]]
"""Positions by namespace and range, in ascending order."""


def tc_positions(reader: Reader, owned: Owned) -> Positions:
    """Positions in the coordinators' bundles; an unreadable bundle is left out, as its positions can be computed.

    Raises:
        AdminError: If the owner does not respond.
    """
    found: Positions = {}
    for bundle in owned.get(TC_NAMESPACE, {}):
        try:
            positions = _asked(reader, TC_NAMESPACE, bundle)
        except GIVING_UP:
            raise
        except (AdminError, *UNFIT) as error:
            log.warning("left out: %s", error)
            continue
        if positions is not None:
            found[TC_NAMESPACE, bundle] = positions
    return found


def worst_positions(reader: Reader, sums: Mapping[tuple[str, str], BundleSum], policy: CollectPolicy) -> Positions:
    """Positions in a broker's largest bundles, if large enough; unreadable bundles are left out.

    Args:
        reader: Reader of the broker.
        sums: Sum of each of its bundles.
        policy: Size from which a bundle is large, and maximum number of bundles.
    """
    found: Positions = {}
    for namespace, bundle in worst(sums, policy):
        try:
            positions = _asked(reader, namespace, bundle)
        except GIVING_UP as error:
            log.warning("no more positions are asked for: %s", error)
            break
        except (AdminError, *UNFIT) as error:
            log.warning("left out: %s", error)
            continue
        if positions is not None:
            found[namespace, bundle] = positions
    return found


def worst(sums: Mapping[tuple[str, str], BundleSum], policy: CollectPolicy) -> list[tuple[str, str]]:
    """Bundles to read: the bundles with the highest multiple of a limit, at most `collect.positions_bundles`."""
    sizes = {name: _size(each, policy) for name, each in sums.items() if name[0] != TC_NAMESPACE and each.topics > 1}
    large = (name for name, size in sizes.items() if size >= 1)
    return nsmallest(policy.positions_bundles, large, key=lambda name: (-sizes[name], name))


def _size(each: BundleSum, policy: CollectPolicy) -> float:
    """Highest multiple of its limit among a bundle's figures."""
    return max(
        each.topics / policy.positions_from_topics,
        (each.producers + each.consumers) / policy.positions_from_clients,
        (each.throughput_in + each.throughput_out) / (policy.positions_from_megabytes * MEGABYTE),
    )


def _asked(reader: Reader, namespace: str, bundle: str) -> list[int] | None:
    positions = reader.topic_positions(namespace, bundle)
    return None if positions is None else sorted(positions.values())
