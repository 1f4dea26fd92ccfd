"""Transaction coordinators of the live cluster: their brokers, and whether they have recovered."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from pulsar_steward.apply.health import READY
from pulsar_steward.facts.protocol import not_recovered, not_served
from pulsar_steward.model.bundles import BundleRange, position_of, tc_topic

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pulsar_steward.apply.live_reader import LiveReader


def restless_coordinators(reader: LiveReader, owners: Mapping[str, Collection[str]]) -> tuple[str, ...]:
    """Coordinators that no broker serves, or that have not recovered, each in words, in the order of their numbers.

    Args:
        reader: Reads the cluster.
        owners: Brokers that now own bundles of the coordinators' namespace, with these bundles.

    Raises:
        AdminError: If a coordinator cannot be read.
    """
    owner_of = {BundleRange.parse(name.rpartition("/")[2]): owner for owner, names in owners.items() for name in names}
    served: defaultdict[str, list[int]] = defaultdict(list)
    found: dict[int, str] = {}
    for number in range(reader.coordinators()):
        position = position_of(tc_topic(number))
        owner = next((owner for bundle, owner in owner_of.items() if position in bundle), None)
        if owner is None:
            found[number] = not_served(number)
        else:
            served[owner].append(number)
    for owner, numbers in served.items():
        states = reader.coordinator_states(owner, numbers)
        found |= {number: not_recovered(number, state) for number, state in states.items() if state != READY}
    return tuple(found[number] for number in sorted(found))
