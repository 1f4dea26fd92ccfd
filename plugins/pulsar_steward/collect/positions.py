"""Hash positions of the topics in a bundle, reported by its owner: what a split divides, topics not loaded included.

The call loads nothing, but its response is as long as the bundle is full. So it is made for the coordinators' bundles,
and of all others only for the largest few of each broker.
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

    from pulsar_steward.admin.reader import Reader
    from pulsar_steward.collect.ownership import Owned
    from pulsar_steward.collect.sums import BundleSum
    from pulsar_steward.policy.schema import CollectPolicy

log = logging.getLogger(__name__)


GIVING_UP = (Unreachable, TimedOut)
"""Errors after which no more is read from the broker: the next call would take as long."""

Positions = dict[tuple[str, str], list[int]]
"""Positions by namespace and range, in ascending order."""


def tc_positions(reader: Reader, owned: Owned) -> Positions:
    """Positions in the coordinators' bundles; an unreadable one is left out: these positions can be computed.

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
    """Positions in a broker's largest bundles, where they are large enough; what cannot be read is left out.

    Args:
        reader: Reader of the broker.
        sums: Sum of each of its bundles.
        policy: The size from which a bundle is large, and how many are read.
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
    """Bundles to read: those that exceed one of the limits most come first, at most `collect.positions_bundles`."""
    sizes = {name: _size(each, policy) for name, each in sums.items() if name[0] != TC_NAMESPACE and each.topics > 1}
    large = (name for name, size in sizes.items() if size >= 1)
    return nsmallest(policy.positions_bundles, large, key=lambda name: (-sizes[name], name))


def _size(each: BundleSum, policy: CollectPolicy) -> float:
    """Multiple of a limit that a bundle reaches, for the figure that exceeds its limit most."""
    return max(
        each.topics / policy.positions_from_topics,
        (each.producers + each.consumers) / policy.positions_from_clients,
        (each.throughput_in + each.throughput_out) / (policy.positions_from_megabytes * MEGABYTE),
    )


def _asked(reader: Reader, namespace: str, bundle: str) -> list[int] | None:
    positions = reader.topic_positions(namespace, bundle)
    return None if positions is None else sorted(positions.values())
