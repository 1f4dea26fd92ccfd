"""Scenes: faults that are in a cluster at the same time, and are looked at together."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lab.faults.fault import MadeUpFault, RealFault
from pulsar_steward.policy.layers import NAMESPACES, NARROW

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from lab.faults.registry import AnyFault

MOST = 36
"""Faults of one scene: more would keep two cores busy for longer than some of them last."""


@dataclass(frozen=True)
class Scene:
    """Faults of one cluster.

    Attributes:
        name: For people, and for the snapshots of it.
        faults: Several only where all of them are real, and none is alone.
        policy: What holds while they are looked at, as a policy file would have it.
    """

    name: str
    faults: tuple[AnyFault, ...]
    policy: Mapping[str, object]

    @property
    def first(self) -> AnyFault:
        """Any of them, for what they have in common."""
        return self.faults[0]

    @property
    def observations(self) -> int:
        """Number of observations."""
        return self.first.observations

    @property
    def settings(self) -> tuple[tuple[str, str], ...]:
        """Of ``broker.conf``."""
        return self.first.settings if isinstance(self.first, RealFault) else ()

    @property
    def own_lab(self) -> bool:
        """True if its lab serves no other scene."""
        return isinstance(self.first, RealFault) and self.first.own_lab

    @property
    def bookies(self) -> tuple[int, dict[str, str]]:
        """How many bookies its lab has, and the settings of each."""
        return (self.first.bookies, dict(self.first.bookie_settings)) if isinstance(self.first, RealFault) else (1, {})


def scenes(faults: Iterable[AnyFault]) -> list[Scene]:
    """All of these faults in as few scenes as they allow: made-up ones first, then by the labs that they need.

    Faults share one that have the same brokers' settings, number of looks, and policy where that cannot differ by
    namespace: where it can, each has its own in its namespace.
    """
    groups: defaultdict[tuple[object, ...], list[AnyFault]] = defaultdict(list)
    for fault in faults:
        groups[_key(fault)].append(fault)
    parts = (part for group in groups.values() for part in _parts(group))
    taken: defaultdict[str, int] = defaultdict(int)
    found = []
    for part in parts:
        name = _name(part)
        taken[name] += 1
        found.append(Scene(f"{name}-{taken[name]}" if taken[name] > 1 else name, tuple(part), policy_of(part)))
    return sorted(found, key=_order)


def _parts(group: Sequence[AnyFault]) -> list[Sequence[AnyFault]]:
    """Equally many in each, and `MOST` at most."""
    count = -(-len(group) // MOST)
    return [group[number::count] for number in range(count)]


def policy_of(faults: Sequence[AnyFault]) -> dict[str, object]:
    """The policy of these faults together.

    Raises:
        ValueError: They differ in a section that cannot differ by namespace.
    """
    if len(faults) == 1:
        return dict(faults[0].policy)
    whole, *others = (_for_the_cluster(fault) for fault in faults)
    if any(other != whole for other in others):
        raise ValueError(f"these cannot be looked at together: {', '.join(fault.name for fault in faults)}")
    own = {
        fault.namespace: {name: section for name, section in fault.policy.items() if name in NARROW}
        for fault in faults
        if isinstance(fault, RealFault)
    }
    by_namespace = {namespace: sections for namespace, sections in own.items() if sections}
    return whole | ({NAMESPACES: by_namespace} if by_namespace else {})


def _for_the_cluster(fault: AnyFault) -> dict[str, object]:
    return {name: section for name, section in fault.policy.items() if name not in NARROW}


def _key(fault: AnyFault) -> tuple[object, ...]:
    if not isinstance(fault, RealFault) or fault.alone or fault.own_lab:
        return (fault.name,)
    policy = json.dumps(_for_the_cluster(fault), sort_keys=True)
    return (fault.settings, fault.among, fault.observations, policy)


def _name(faults: Sequence[AnyFault]) -> str:
    """As its only fault, or else what is particular about it: of several settings, the first says enough."""
    first = faults[0]
    if len(faults) == 1 or not isinstance(first, RealFault):
        return first.name
    parts = [
        first.among or "together",
        *("-".join([setting, value.rpartition(".")[2]]) for setting, value in first.settings[:1]),
        *sorted(_for_the_cluster(first)),
        *([f"{first.observations}-looks"] if first.observations > 1 else []),
    ]
    return "-".join(parts)


def _order(scene: Scene) -> tuple[object, ...]:
    """Made-up clusters, Kafka, then labs of Pulsar: shared ones before those of one scene, the many before the few."""
    if not isinstance(scene.first, RealFault):
        return (0 if isinstance(scene.first, MadeUpFault) else 1,)
    return (2, scene.settings, scene.own_lab, -len(scene.faults))
