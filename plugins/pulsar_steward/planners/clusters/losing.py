"""If a cluster were lost now, which data would the others lack, by namespace? It is judged before anybody fails over.

Functions of a snapshot raise `SnapshotError` if a table cannot be read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.checks.backlog.replication_stopped import BACKLOGS
from pulsar_steward.errors import ConfigurationError
from pulsar_steward.model.topics import OWN_TENANT
from pulsar_steward.planners.clusters.replication import replication_end

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulsar_steward.planners.clusters.replication import ReplicationEnd, Sent
    from pulsar_steward.snapshots.read import Snapshot

_HELD = """
select coalesce(namespace, namespace_of(topic)) as namespace, count(*) as topics,
    coalesce(sum(storage_bytes), 0)::bigint as stored_bytes
from topics where of_users(topic) and starts_with(topic, 'persistent://') group by all
"""

# Only topics that were looked into tell whether a position goes along (`isReplicated`).
_SUBSCRIPTIONS = """
select distinct s.topic, coalesce(s.namespace, namespace_of(s.topic)) as namespace, s.subscription, d.replicated
from subscriptions s left join drilled d on d.topic = s.topic and d.subscription = s.subscription
where of_users(s.topic) and starts_with(s.topic, 'persistent://') and not starts_with(s.subscription, '__')
    and not is_reader(s.subscription)
"""

# Of the topics that are counted as held: those that are not persistent may be replicated as well.
_SENDING = """
select coalesce(namespace, namespace_of(topic)) as namespace, remote, count(*) as topics
from replicators where of_users(topic) and starts_with(topic, 'persistent://') group by all
"""

_LOADED = "select topic from topics where coalesce(namespace, namespace_of(topic)) in (select unnest($names))"


class _Held(msgspec.Struct, frozen=True):
    namespace: str
    topics: int
    stored_bytes: int


class _Subscription(msgspec.Struct, frozen=True):
    topic: str
    namespace: str
    subscription: str
    replicated: bool | None


class _Sending(msgspec.Struct, frozen=True):
    namespace: str
    remote: str
    topics: int


class _Topic(msgspec.Struct, frozen=True):
    topic: str


class MissingNamespace(msgspec.Struct, frozen=True, kw_only=True):
    """What would be missing of a namespace; None: not told.

    Attributes:
        namespace: ``tenant/namespace``.
        topics: Loaded topics at the lost cluster that are stored.
        served_by: Other clusters that replicate it, the one with the fewest waiting entries first; empty: nobody else
            serves it, and all that it stores is missing.
        entries: Entries that the first of them has not got yet; a batch of messages is one entry.
        messages: The same in messages.
        delay_seconds: Longest time that something has been waiting.
        unsent_topics: Topics that are not replicated to the first of them.
        stored_bytes: What its topics store at the lost cluster.
        subscriptions: Durable subscriptions there.
        subscriptions_lost: Those whose position nobody else has: they would begin anew.
        subscriptions_unknown: Those of which it is not told whether their position goes along.
    """

    namespace: str
    topics: int
    served_by: tuple[str, ...]
    entries: int | None
    messages: int | None
    delay_seconds: int | None
    unsent_topics: int
    stored_bytes: int
    subscriptions: int
    subscriptions_lost: int
    subscriptions_unknown: int

    @property
    def is_complete(self) -> bool:
        """True if nothing would be missing, as far as it is told, and all of it is told."""
        nothing = not (self.entries or self.unsent_topics or self.subscriptions_lost or self.subscriptions_unknown)
        return bool(self.served_by) and self.entries is not None and nothing


class LostCluster(msgspec.Struct, frozen=True, kw_only=True):
    """The loss of a cluster: its namespaces; first the ones that no other cluster serves, then by what waits."""

    cluster: str
    namespaces: tuple[MissingNamespace, ...]
    lower_bound: bool


def loss_of(cluster: str, members: Mapping[str, Snapshot]) -> LostCluster:
    """What the other members would be missing if a cluster were lost as it was at its snapshot.

    Args:
        cluster: Name of the cluster in Steward.
        members: Snapshots of all members by that name.

    Raises:
        ConfigurationError: If the cluster is no member, or of Kafka.
    """
    if cluster not in members:
        raise ConfigurationError(f"--lose {cluster}: no member has this name: members are {', '.join(sorted(members))}")
    members[cluster].meta().require_pulsar()
    lost = replication_end(members[cluster])
    others = [replication_end(snapshot) for name, snapshot in sorted(members.items()) if name != cluster]
    held = {row.namespace: row for row in members[cluster].select(_HELD, _Held)}
    names = sorted(each for each in held.keys() | lost.policies.keys() if not each.startswith(OWN_TENANT))
    receivers = {name: _receivers(name, lost, others) for name in names}
    subscriptions = _subscriptions(members, cluster, receivers)
    rows = members[cluster].select(_SENDING, _Sending, views=BACKLOGS)
    sending = {(row.namespace, row.remote): row.topics for row in rows}
    found = [
        _missing(held.get(name, _Held(name, 0, 0)), receivers[name], lost, sending, subscriptions.get(name, []))
        for name in names
    ]
    found.sort(key=lambda each: (bool(each.served_by), each.is_complete, -(each.entries or 0), each.namespace))
    return LostCluster(cluster=cluster, namespaces=tuple(found), lower_bound=not lost.whole)


def _receivers(name: str, lost: ReplicationEnd, others: Sequence[ReplicationEnd]) -> list[ReplicationEnd]:
    """Other clusters that serve a namespace and get what is published here; first the one that lacks least.

    One that serves a namespace of the same name on its own has other messages.
    """
    clusters = lost.policies.get(name)
    sent = {each.name: lost.sent.get((name, each.pulsar_name)) for each in others}
    linked = [
        each
        for each in others
        if (sent[each.name] is not None or (clusters is not None and each.pulsar_name in clusters[0]))
        and (name in each.policies)
    ]
    return sorted(linked, key=lambda each: _behind(sent[each.name]))


def _behind(sent: Sent | None) -> tuple[bool, int, int]:
    return (True, 0, 0) if sent is None else (False, sent.entries, -sent.topics)


def _subscriptions(
    members: Mapping[str, Snapshot], cluster: str, receivers: Mapping[str, Sequence[ReplicationEnd]]
) -> dict[str, list[bool | None]]:
    """By namespace, for each subscription whether its position is at another member too; None: not told."""
    there: dict[str, tuple[set[str], set[tuple[str, str]]]] = {}
    for name in sorted({each.name for ends in receivers.values() for each in ends}):
        shared = [namespace for namespace, ends in receivers.items() if any(each.name == name for each in ends)]
        topics = {row.topic for row in members[name].select(_LOADED, _Topic, names=shared)}
        rows = members[name].select(_SUBSCRIPTIONS, _Subscription)
        there[name] = topics, {(row.topic, row.subscription) for row in rows}
    found: dict[str, list[bool | None]] = {}
    for row in members[cluster].select(_SUBSCRIPTIONS, _Subscription):
        ends = receivers.get(row.namespace, [])
        # A position that goes along makes the subscription at the other cluster: where a loaded topic has none, none
        # came.
        absent = [
            row.topic in there[each.name][0] and (row.topic, row.subscription) not in there[each.name][1]
            for each in ends
        ]
        kept = False if not ends or row.replicated is False or all(absent) else row.replicated
        found.setdefault(row.namespace, []).append(kept)
    return found


def _missing(
    held: _Held,
    receivers: Sequence[ReplicationEnd],
    lost: ReplicationEnd,
    sending: Mapping[tuple[str, str], int],
    kept: Sequence[bool | None],
) -> MissingNamespace:
    link = held.namespace, receivers[0].pulsar_name if receivers else ""
    sent = lost.sent.get(link)
    return MissingNamespace(
        namespace=held.namespace,
        topics=held.topics,
        served_by=tuple(each.name for each in receivers),
        entries=sent.entries if sent else None,
        messages=sent.messages if sent else None,
        delay_seconds=sent.delay_seconds if sent else None,
        unsent_topics=max(held.topics - sending.get(link, 0), 0),
        stored_bytes=held.stored_bytes,
        subscriptions=len(kept),
        subscriptions_lost=sum(each is False for each in kept),
        subscriptions_unknown=sum(each is None for each in kept),
    )
