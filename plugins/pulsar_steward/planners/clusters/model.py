"""A logical cluster: its members, the namespaces that they hold, and how full each member is."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class Resource(StrEnum):
    """Something that a member can run out of; amounts are whole numbers, so that sums do not depend on the order."""

    TOPICS = "topics"
    """Loaded topics; a partition is a topic."""
    METADATA_NODES = "metadata_nodes"
    """Nodes of the metadata store."""
    MILLICPU = "millicpu"
    """Thousandths of a processor of the brokers."""
    STORED_BYTES = "stored_bytes"
    """Bytes of messages, each copy in BookKeeper counted once."""


FORECAST = (Resource.TOPICS, Resource.METADATA_NODES, Resource.STORED_BYTES)
"""Resources with a growth; the use of processors follows the hour, and a day of it says nothing."""

RESOURCES = tuple(Resource)

Amounts = dict[Resource, int]
"""Amounts by resource; a missing one is 0 for loads, and not known for ceilings."""


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A Pulsar cluster of a logical one.

    Attributes:
        name: Its name in Steward.
        pulsar_name: Its own name (``clusterName``), which policies of namespaces name; empty: the same.
        region: Its region; None: none was declared.
        ceilings: The most that it should carry, by resource; a missing one is not known and does not bound.
        own: Load that no namespace takes along, such as Pulsar's own topics.
        leaving: True if all namespaces have to leave it, and none may come.
        whole: False if brokers could not be read: neither its load nor its ceilings are known, and none may come.
    """

    name: str
    pulsar_name: str = ""
    region: str | None = None
    ceilings: Amounts
    own: Amounts = {}
    leaving: bool = False
    whole: bool = True

    @property
    def policy_name(self) -> str:
        """Its name in policies of namespaces."""
        return self.pulsar_name or self.name


class Holding(msgspec.Struct, frozen=True, kw_only=True):
    """A namespace at one member that serves it; a replicated namespace has one for each.

    Attributes:
        namespace: ``tenant/namespace``.
        member: The member; None: a new namespace that has to be placed.
        load: Its part of the member's load.
        growth: Growth of its load in a day; None: not known.
        allowed: Clusters that its policies allow, by Pulsar's names; None: all.
        replicated_to: Clusters that its policies replicate it to, by Pulsar's names.
        pinned: Reason why it cannot be moved; None: it can.
    """

    namespace: str
    member: str | None
    load: Amounts
    growth: Amounts | None = {}
    allowed: frozenset[str] | None = None
    replicated_to: frozenset[str] = frozenset()
    pinned: str | None = None

    @property
    def tenant(self) -> str:
        """The tenant."""
        return self.namespace.partition("/")[0]

    @property
    def stored_bytes(self) -> int:
        """Bytes that a move has to copy."""
        return self.load.get(Resource.STORED_BYTES, 0)


class LogicalCluster(msgspec.Struct, frozen=True, kw_only=True):
    """Members, namespaces, and groups of tenants whose namespaces have to be at one member."""

    members: tuple[Member, ...]
    holdings: tuple[Holding, ...]
    together: tuple[frozenset[str], ...] = ()


class Use(msgspec.Struct, frozen=True, kw_only=True):
    """Use of one resource of a member; `ceiling` and `growth` (in a day) are None if not known."""

    resource: Resource
    load: int
    ceiling: int | None
    growth: int | None

    @property
    def part(self) -> float:
        """Used part of the ceiling; 0 if that is not known."""
        return used_part(self.load, math.inf if self.ceiling is None else self.ceiling)

    @property
    def days(self) -> float | None:
        """Days until the ceiling is reached, 0 if it is; infinite: never at this growth; None: not known."""
        if self.ceiling is None:
            return None
        if self.load > self.ceiling:
            return 0.0
        if self.growth is None:
            return None
        return (self.ceiling - self.load) / self.growth if self.growth > 0 else math.inf


class MemberUse(msgspec.Struct, frozen=True, kw_only=True):
    """How full a member is, by each resource."""

    member: str
    namespaces: int
    uses: tuple[Use, ...]

    @property
    def fullest(self) -> Use:
        """The resource that is used most, the first one at a tie."""
        return max(self.uses, key=lambda use: use.part)

    @property
    def over(self) -> tuple[Use, ...]:
        """Resources that are over their ceilings."""
        return tuple(use for use in self.uses if use.part > 1)

    @property
    def first(self) -> Use | None:
        """The resource that reaches its ceiling first; None: of none it is known."""
        known = [use for use in self.uses if use.days is not None]
        return min(known, key=lambda use: use.days or 0.0, default=None)


def used_part(load: int, ceiling: float) -> float:
    """Part of a ceiling that is used: more than 1 is over it."""
    if ceiling > 0:
        return load / ceiling
    return math.inf if load > 0 else 0.0


def uses_of(cluster: LogicalCluster, homes: Mapping[int, str | None]) -> tuple[MemberUse, ...]:
    """How full each member is, by name.

    Args:
        cluster: The logical cluster.
        homes: Members of holdings by their number, where they differ from the present ones.
    """
    held: dict[str, list[Holding]] = {member.name: [] for member in cluster.members}
    for number, holding in enumerate(cluster.holdings):
        home = homes.get(number, holding.member)
        if home is not None:
            held[home].append(holding)
    return tuple(
        MemberUse(
            member=member.name,
            namespaces=len(held[member.name]),
            uses=tuple(_use(member, resource, held[member.name]) for resource in RESOURCES),
        )
        for member in sorted(cluster.members, key=lambda each: each.name)
    )


def _use(member: Member, resource: Resource, held: Iterable[Holding]) -> Use:
    growths = [None if each.growth is None else each.growth.get(resource, 0) for each in held]
    known = [each for each in growths if each is not None]
    return Use(
        resource=resource,
        load=member.own.get(resource, 0) + sum(each.load.get(resource, 0) for each in held),
        ceiling=member.ceilings.get(resource),
        growth=sum(known) if len(known) == len(growths) and resource in FORECAST else None,
    )
