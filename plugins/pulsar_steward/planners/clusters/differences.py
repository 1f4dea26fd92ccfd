"""Differences between members of a logical cluster that clients would notice, and names that clash."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.model.topics import PARTITION_END, namespace_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pulsar_steward.planners.clusters.from_snapshots import MemberFacts
    from pulsar_steward.snapshots.read import Snapshot

_TOPICS = f"""
select distinct regexp_replace(topic, '{PARTITION_END}', '') as topic from topics
where of_users(topic) and coalesce(namespace, namespace_of(topic)) in (select unnest($namespaces))
"""


class _Topic(msgspec.Struct, frozen=True):
    topic: str


class Clash(msgspec.Struct, frozen=True, kw_only=True):
    """Topics of one name on two members that do not replicate them: `topics` of them, and the first one."""

    namespace: str
    members: tuple[str, str]
    topics: int
    example: str


class Differing(msgspec.Struct, frozen=True, kw_only=True):
    """A setting, `version` or `configuration store`, whose values differ; members by value."""

    name: str
    members: dict[str, tuple[str, ...]]


class Differences(msgspec.Struct, frozen=True, kw_only=True):
    """Clashes, namespaces that are listed but that no member serves, and values that differ."""

    clashes: tuple[Clash, ...]
    unserved: tuple[str, ...]
    differing: tuple[Differing, ...]


def differences(members: Sequence[tuple[MemberFacts, Snapshot]]) -> Differences:
    """Compares the members of a logical cluster.

    Raises:
        SnapshotError: If a snapshot cannot be read.
    """
    facts = [each for each, _ in members]
    values = {
        each.name: each.settings
        | {"version": ", ".join(each.versions), "configuration store": each.meta.configuration_store_id or ""}
        for each in facts
    }
    return Differences(
        clashes=tuple(sorted(_clashes(members), key=lambda clash: (clash.namespace, clash.members))),
        unserved=_unserved(facts),
        differing=tuple(_differing(values)),
    )


def _clashes(members: Sequence[tuple[MemberFacts, Snapshot]]) -> Iterable[Clash]:
    for (one, its_snapshot), (other, others_snapshot) in combinations(members, 2):
        shared = one.replication.keys() & other.replication.keys()
        apart = sorted(name for name in shared if not _replicated(name, one, other))
        common = _topics(its_snapshot, apart) & _topics(others_snapshot, apart)
        by_namespace = defaultdict(list)
        for topic in sorted(common):
            by_namespace[namespace_of(topic)].append(topic)
        for namespace, topics in by_namespace.items():
            yield Clash(namespace=namespace, members=(one.name, other.name), topics=len(topics), example=topics[0])


def _replicated(namespace: str, one: MemberFacts, other: MemberFacts) -> bool:
    """True if the policies of a namespace have one member replicate to the other."""
    to, back = one.replication[namespace] or (), other.replication[namespace] or ()
    return other.meta.pulsar_cluster in to or one.meta.pulsar_cluster in back


def _topics(snapshot: Snapshot, namespaces: Sequence[str]) -> set[str]:
    if not namespaces:
        return set()
    return {row.topic for row in snapshot.select(_TOPICS, _Topic, namespaces=list(namespaces))}


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
