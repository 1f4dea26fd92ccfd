"""Logical cluster with supposed changes: members that come or leave, fewer brokers, more traffic, new namespaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.errors import ConfigurationError
from pulsar_steward.model.system import System
from pulsar_steward.model.units import counted
from pulsar_steward.planners.clusters.model import Amounts, Holding, LogicalCluster, Member, Resource

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pulsar_steward.planners.clusters.differences import Clash
    from pulsar_steward.planners.clusters.from_snapshots import MemberFacts


class AddedMember(msgspec.Struct, frozen=True, kw_only=True):
    """An empty member that would be added; only its ceiling of topics is known."""

    name: str
    topics: int
    region: str | None = None


class WhatIf(msgspec.Struct, frozen=True, kw_only=True):
    """Supposed changes.

    Attributes:
        added: New members.
        leaving: Names of members that all namespaces would leave.
        removed_brokers: Number of brokers that a member would lose, by its name.
        traffic: Factor of bytes in and out, of which CPU and the growth of stored bytes go along.
        namespaces: Topics of new namespaces, by name.
    """

    added: tuple[AddedMember, ...] = ()
    leaving: frozenset[str] = frozenset()
    removed_brokers: dict[str, int] = {}
    traffic: float = 1.0
    namespaces: dict[str, int] = {}


def supposed(
    facts: Sequence[MemberFacts],
    whatif: WhatIf,
    regions: Mapping[str, str] | None = None,
    together: Sequence[Sequence[str]] = (),
    clashes: Sequence[Clash] = (),
) -> LogicalCluster:
    """The logical cluster of these members, with supposed changes.

    Args:
        facts: Its members.
        whatif: The changes.
        regions: Regions of members by name.
        together: Groups of tenants that stay at one member.
        clashes: Topics of one name on two members: their namespaces stay where they are.

    Raises:
        ConfigurationError: If two members are the same cluster, or a change is about a cluster that is no member, takes
            its last broker, or adds a member that is there.
    """
    names = {each.name for each in facts}
    for number, each in enumerate(facts):
        for other in facts[:number]:
            told = each.meta.metadata_id or each.meta.system is System.KAFKA  # Kafka's own name is unique
            if each.meta.identity.is_same(other.meta.identity) and told:
                raise ConfigurationError(f"{other.name} and {each.name} are one cluster: name one of the two")
    for name in sorted(whatif.leaving | whatif.removed_brokers.keys()):
        if name not in names:
            raise ConfigurationError(f"{name} is no member: members are {', '.join(sorted(names))}")
    for added in whatif.added:
        if added.name in names:
            raise ConfigurationError(f"{added.name} is a member already: take another name for a new one")
    members = [_member(each, whatif, (regions or {}).get(each.name)) for each in facts]
    new = [
        Holding(namespace=name, member=None, load={Resource.TOPICS: topics})
        for name, topics in whatif.namespaces.items()
    ]
    held = [_busier(it, whatif.traffic) for each in facts for it in each.holdings]
    return LogicalCluster(
        members=(*members, *(_added(each) for each in whatif.added)),
        holdings=(*_pinned(held, clashes), *new),
        together=tuple(map(frozenset, together)),
    )


def _member(facts: MemberFacts, whatif: WhatIf, region: str | None) -> Member:
    removed, there = whatif.removed_brokers.get(facts.name, 0), facts.capacity.brokers
    if removed >= there:
        raise ConfigurationError(
            f"{facts.name} has {counted(there, 'broker')} that answered: at least one has to be left"
        )
    return Member(
        name=facts.name,
        pulsar_name=facts.meta.pulsar_cluster,
        region=region,
        ceilings=facts.capacity.ceilings(removed),
        own=_times(facts.own, Resource.MILLICPU, whatif.traffic),
        leaving=facts.name in whatif.leaving,
        whole=not facts.meta.unread_brokers,
    )


def _added(added: AddedMember) -> Member:
    return Member(name=added.name, region=added.region, ceilings={Resource.TOPICS: added.topics})


def _pinned(holdings: Sequence[Holding], clashes: Sequence[Clash]) -> Iterator[Holding]:
    """The holdings; a namespace that clashes stays: its clients would get the other member's messages."""
    why = {
        (clash.namespace, here): f"{there} has other topics of the same name, such as {clash.example}"
        for clash in clashes
        for here, there in (clash.members, clash.members[::-1])
    }
    for each in holdings:
        reason = each.pinned or why.get((each.namespace, each.member or ""))
        yield msgspec.structs.replace(each, pinned=reason)


def _busier(holding: Holding, traffic: float) -> Holding:
    growth = holding.growth
    if growth and growth.get(Resource.STORED_BYTES, 0) > 0:
        growth = _times(growth, Resource.STORED_BYTES, traffic)
    load = _times(holding.load, Resource.MILLICPU, traffic)
    return msgspec.structs.replace(holding, load=load, growth=growth)


def _times(amounts: Amounts, resource: Resource, factor: float) -> Amounts:
    return amounts | {resource: round(amounts.get(resource, 0) * factor)}
