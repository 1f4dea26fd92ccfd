"""Differences between members of a logical cluster that clients would notice, and names that clash."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.errors import ConfigurationError
from pulsar_steward.model.system import System
from pulsar_steward.model.topics import PARTITION_END, namespace_of
from pulsar_steward.planners.clusters.from_snapshots import is_kafkas_own

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pulsar_steward.planners.clusters.from_snapshots import MemberFacts
    from pulsar_steward.snapshots.read import Snapshot

_TOPICS = f"""
select distinct regexp_replace(topic, '{PARTITION_END}', '') as topic from topics
where of_users(topic) and coalesce(namespace, namespace_of(topic)) in (select unnest($namespaces))
"""


_KAFKA_TOPICS = "select distinct topic from kafka_partitions"

_KAFKA_POSITIONS = "select group_id, unnest(topics) as topic from kafka_groups"


class _Topic(msgspec.Struct, frozen=True):
    topic: str


class _KafkaPosition(msgspec.Struct, frozen=True):
    group_id: str
    topic: str


class Clash(msgspec.Struct, frozen=True, kw_only=True):
    """Topics of one name on two members that do not replicate them: `topics` of them, and the first one.

    Topics of Kafka have no namespace, and whether a mirror keeps them the same is not told.
    """

    namespace: str
    members: tuple[str, str]
    topics: int
    example: str


class Differing(msgspec.Struct, frozen=True, kw_only=True):
    """A setting, `version` or `configuration store`, whose values differ; members by value."""

    name: str
    members: dict[str, tuple[str, ...]]


class ForeignPositions(msgspec.Struct, frozen=True, kw_only=True):
    """Offsets of Kafka that one member holds of topics that it does not have.

    Attributes:
        member: The member that holds them.
        owner: The member that has the topics; None: none has.
        groups: Consumer groups.
        topics: Topics.
        example: The first topic.
    """

    member: str
    owner: str | None
    groups: int
    topics: int
    example: str


class Differences(msgspec.Struct, frozen=True, kw_only=True):
    """Clashes, namespaces that no member serves, values that differ, and offsets of other members' topics."""

    clashes: tuple[Clash, ...]
    unserved: tuple[str, ...]
    differing: tuple[Differing, ...]
    foreign_positions: tuple[ForeignPositions, ...] = ()


def differences(members: Sequence[tuple[MemberFacts, Snapshot]]) -> Differences:
    """Compares the members of a logical cluster.

    Raises:
        ConfigurationError: If they are of different systems.
        SnapshotError: If a snapshot cannot be read.
    """
    facts = [each for each, _ in members]
    of_system = {each.meta.system: each for each in facts}
    if len(of_system) > 1:
        words = " and ".join(f"{each.name} is of {system.called}" for system, each in sorted(of_system.items()))
        raise ConfigurationError(f"{words}: a logical cluster is of one system; name its members by --cluster")
    values = {
        each.name: each.settings
        | {"version": ", ".join(each.versions), "configuration store": each.meta.configuration_store_id or ""}
        for each in facts
    }
    return Differences(
        clashes=tuple(sorted(_clashes(members), key=lambda clash: (clash.namespace, clash.members))),
        unserved=_unserved(facts),
        differing=tuple(_differing(values)),
        foreign_positions=tuple(_foreign_positions(members)) if System.KAFKA in of_system else (),
    )


def _clashes(members: Sequence[tuple[MemberFacts, Snapshot]]) -> Iterable[Clash]:
    for one, other in combinations(members, 2):
        by_namespace = defaultdict(list)
        for topic in sorted(_common(one, other)):
            by_namespace[namespace_of(topic) if "://" in topic else ""].append(topic)
        names = one[0].name, other[0].name
        for namespace, topics in by_namespace.items():
            yield Clash(namespace=namespace, members=names, topics=len(topics), example=topics[0])


def _common(one: tuple[MemberFacts, Snapshot], other: tuple[MemberFacts, Snapshot]) -> set[str]:
    """Topics of one name on two members, which do not replicate them as far as that is told."""
    (facts, snapshot), (other_facts, other_snapshot) = one, other
    if facts.meta.system is System.KAFKA:
        common = _kafka_topics(snapshot) & _kafka_topics(other_snapshot)
        return {topic for topic in common if not is_kafkas_own(topic)}
    shared = facts.replication.keys() & other_facts.replication.keys()
    apart = sorted(name for name in shared if not _replicated(name, facts, other_facts))
    return _topics(snapshot, apart) & _topics(other_snapshot, apart)


def _replicated(namespace: str, one: MemberFacts, other: MemberFacts) -> bool:
    """True if the policies of a namespace have one member replicate to the other."""
    to, back = one.replication[namespace] or (), other.replication[namespace] or ()
    return other.meta.pulsar_cluster in to or one.meta.pulsar_cluster in back


def _topics(snapshot: Snapshot, namespaces: Sequence[str]) -> set[str]:
    if not namespaces:
        return set()
    return {row.topic for row in snapshot.select(_TOPICS, _Topic, namespaces=list(namespaces))}


def _kafka_topics(snapshot: Snapshot) -> set[str]:
    return {row.topic for row in snapshot.select(_KAFKA_TOPICS, _Topic)}


def _foreign_positions(members: Sequence[tuple[MemberFacts, Snapshot]]) -> Iterable[ForeignPositions]:
    """Offsets that members hold of others' topics, by member and the first one that has the topic."""
    there = {facts.name: _kafka_topics(snapshot) for facts, snapshot in sorted(members, key=lambda each: each[0].name)}
    for facts, snapshot in members:
        groups: defaultdict[str | None, set[str]] = defaultdict(set)
        topics: defaultdict[str | None, set[str]] = defaultdict(set)
        for each in snapshot.select(_KAFKA_POSITIONS, _KafkaPosition):
            if each.topic not in there[facts.name]:
                owner = next((name for name, held in there.items() if each.topic in held), None)
                groups[owner].add(each.group_id)
                topics[owner].add(each.topic)
        for owner in sorted(groups, key=lambda name: name or ""):
            yield ForeignPositions(
                member=facts.name,
                owner=owner,
                groups=len(groups[owner]),
                topics=len(topics[owner]),
                example=min(topics[owner]),
            )


def _unserved(facts: Sequence[MemberFacts]) -> tuple[str, ...]:
    served = {name for each in facts for name, clusters in each.replication.items() if clusters != frozenset()}
    listed = {name for each in facts for name in (*each.replication, *(each.meta.served_elsewhere or ()))}
    return tuple(sorted(listed - served))


def _differing(values: dict[str, dict[str, str]]) -> Iterable[Differing]:
    for name in sorted({name for each in values.values() for name in each}):
        by_value: dict[str, list[str]] = defaultdict(list)
        for member in sorted(values):
            if value := values[member].get(name):
                by_value[value].append(member)
        if len(by_value) > 1:
            yield Differing(name=name, members={value: tuple(named) for value, named in by_value.items()})
