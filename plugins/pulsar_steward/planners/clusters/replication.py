"""Replication between clusters, seen from both ends: what one cluster sends, and what the other one has of it.

Functions of a snapshot raise `SnapshotError` if a table cannot be read.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.checks.backlog.replication_stopped import BACKLOGS
from pulsar_steward.decoding import decode
from pulsar_steward.model.units import counted, seconds_in_words
from pulsar_steward.pulsar.own_settings import NamespaceDocument
from pulsar_steward.snapshots.rows import NamespaceRow

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from pulsar_steward.snapshots.read import Snapshot

# Brokers count entries, each of which may be a batch. A delay of 0 says nothing of a topic that sends nothing: brokers
# look at what is on its way alone. The age of the oldest message is told of topics that were looked into.
_SENT = """
with sizes as (
    select topic, max(messages_per_entry) as messages from subscriptions where messages_per_entry > 0 group by topic),
ages as (
    select topic, slowest_subscription, max(oldest_backlog_age_seconds) as seconds from drilled
    where oldest_backlog_age_seconds >= 0 group by all),
told as (
    select coalesce(r.namespace, namespace_of(r.topic)) as namespace, remote, connected, r.backlog_entries as entries,
        r.message_rate_out, inbound, inbound_rate, sizes.messages, coalesce(ages.seconds, case
            when delay_seconds > 0 or r.backlog_entries = 0 or r.message_rate_out > 0 then delay_seconds end) as delay
    from replicators r left join sizes using (topic)
        left join ages on ages.topic = r.topic and slowest_subscription = 'pulsar.repl.' || remote
    where of_users(r.topic))
select namespace, remote, count(*) as topics, count(*) filter (entries > 0) as waiting,
    count(*) filter (entries > 0 and connected = false) as cut, sum(entries)::bigint as entries,
    case when count(*) filter (entries > 0 and messages is null) = 0
        then coalesce(sum(entries * messages) filter (entries > 0), 0)::bigint end as messages,
    case when count(message_rate_out) = count(*) then sum(message_rate_out) end as rate_out,
    case when count(*) filter (entries > 0 and delay is null) = 0 then max(delay) end as delay_seconds,
    case when count(inbound) = count(*) then count(*) filter (inbound) end as inbound,
    case when count(inbound) = count(*) then coalesce(sum(inbound_rate), 0) end as rate_in
from told group by namespace, remote order by namespace, remote
"""

_NAMESPACES = "select namespace, policies_json, allowed_brokers from namespaces"


class Sent(msgspec.Struct, frozen=True, kw_only=True):
    """Loaded topics of a namespace that a cluster replicates to another one, as their owners tell it; None: not told.

    Attributes:
        namespace: ``tenant/namespace``.
        remote: The other cluster, by Pulsar's name.
        topics: Topics with a replicator to it.
        waiting: Those for which something waits.
        cut: Those of `waiting` that are not connected to the other cluster.
        entries: Entries that wait; a batch of messages is one entry.
        messages: The same in messages, at the batches that consumers got lately.
        rate_out: Messages per second to the other cluster.
        delay_seconds: Longest time that something has been waiting.
        inbound: Topics to which the other cluster is connected in turn.
        rate_in: Messages per second from there.
    """

    namespace: str
    remote: str
    topics: int
    waiting: int
    cut: int
    entries: int
    messages: int | None
    rate_out: float | None
    delay_seconds: int | None
    inbound: int | None
    rate_in: float | None


class ReplicationEnd(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster, as one end of replication.

    Attributes:
        name: Its name in Steward.
        pulsar_name: Its own name, which other clusters send to.
        whole: False if a part could not be read: its figures are lower bounds, and nothing is known to be absent.
        policies: Its namespaces: the clusters that they replicate to, and those that may serve them besides; None: the
            policies could not be read, or name none.
        elsewhere: Namespaces that it knows, and that only other clusters serve.
        sent: By namespace and the other cluster's own name.
    """

    name: str
    pulsar_name: str
    whole: bool
    policies: dict[str, tuple[frozenset[str], frozenset[str]] | None]
    elsewhere: frozenset[str]
    sent: dict[tuple[str, str], Sent]


class LinkedNamespace(msgspec.Struct, frozen=True, kw_only=True):
    """A namespace that one cluster sends to another one; None: not told.

    Attributes:
        namespace: ``tenant/namespace``.
        sent: Figures of the sender; None: no loaded topic has a replicator to the receiver.
        received_topics: Topics at the receiver to which the sender is connected; told only where it replicates back.
        received_rate: Messages per second that arrive there, likewise.
        exists: Whether the receiver has the namespace.
        mutual: Whether the receiver's policies name the sender.
    """

    namespace: str
    sent: Sent | None
    received_topics: int | None = None
    received_rate: float | None = None
    exists: bool | None = None
    mutual: bool | None = None

    @property
    def one_sided(self) -> str:
        """How the receiver's settings differ, in words; empty: they do not, or are not told."""
        if self.exists is False:
            return "has no such namespace"
        return "does not name it in turn" if self.mutual is False else ""


class Link(msgspec.Struct, frozen=True, kw_only=True):
    """Replication from one cluster to another one; both have their names in Steward."""

    sender: str
    receiver: str
    namespaces: tuple[LinkedNamespace, ...]
    receiver_read: bool

    @property
    def sent(self) -> tuple[Sent, ...]:
        """Figures of the sender, of the namespaces that have some."""
        return tuple(each.sent for each in self.namespaces if each.sent is not None)

    @property
    def is_cut(self) -> bool:
        """True if both ends agree that nothing passes, of all for which something waits.

        The sender has no connection, and the receiver shows none or could not be looked at.
        """
        behind = [each for each in self.namespaces if each.sent and each.sent.waiting]
        agreed = all(
            each.sent and each.sent.cut == each.sent.waiting and not (self.receiver_read and each.received_topics)
            for each in behind
        )
        confirmed = not self.receiver_read or any(each.received_topics == 0 for each in behind)
        return bool(behind) and agreed and confirmed

    @property
    def words(self) -> str:
        """What waits, and whether it is sent, by both ends."""
        sent = self.sent
        waiting, cut = sum(each.waiting for each in sent), sum(each.cut for each in sent)
        delays = [each.delay_seconds for each in sent if each.waiting]
        delay = max((each for each in delays if each is not None), default=None)
        least = "at least " if None in delays else ""
        for_long = "for a time that is not told" if delay is None else f"for {least}{seconds_in_words(delay)}"
        entries = counted(sum(each.entries for each in sent), "entry waits", "entries wait")
        said = [
            f"{entries} to be sent from {self.sender} to {self.receiver}, {for_long}" if waiting else "nothing waits",
            f"{cut:,} of {counted(waiting, 'topic')} not connected" if cut else "",
        ]
        received = [each.received_topics for each in self.namespaces]
        if not self.receiver_read:
            said.append(f"{self.receiver} could not be looked at")
        elif any(each is not None for each in received):
            topics = sum(each or 0 for each in received)
            said.append(f"{self.receiver} sees connections from {self.sender} to {counted(topics, 'topic')}")
        else:
            said.append(f"{self.receiver} does not tell about connections from {self.sender}")
        return "; ".join(filter(None, said))


def replication_end(snapshot: Snapshot) -> ReplicationEnd:
    """A cluster as one end of replication, by its snapshot."""
    meta = snapshot.meta()
    return ReplicationEnd(
        name=meta.cluster,
        pulsar_name=meta.pulsar_cluster,
        whole=not meta.unread,
        policies={row.namespace: _clusters(row) for row in snapshot.select(_NAMESPACES, NamespaceRow)},
        elsewhere=frozenset(meta.served_elsewhere or ()),
        sent={(row.namespace, row.remote): row for row in snapshot.select(_SENT, Sent, views=BACKLOGS)},
    )


def _clusters(row: NamespaceRow) -> tuple[frozenset[str], frozenset[str]] | None:
    document = decode(row.policies_json, NamespaceDocument) if row.policies_json else None
    if document is None or document.replication_clusters is None:
        return None
    return frozenset(document.replication_clusters), frozenset(document.allowed_clusters or ())


def links_between(ends: Sequence[ReplicationEnd], unread: Collection[str] = ()) -> tuple[Link, ...]:
    """Replication between these clusters, by sender and receiver.

    Clusters with the same name in Pulsar cannot be told apart, and are left out as receivers.

    Args:
        ends: The clusters that were looked at.
        unread: Names of clusters that could not be looked at. Their names in Pulsar are taken to be the same.
    """
    named = Counter(each.pulsar_name for each in ends)
    by_name = {each.pulsar_name: each for each in ends if named[each.pulsar_name] == 1}
    found = []
    for sender in sorted(ends, key=lambda each: each.name):
        remotes = {remote for _, remote in sender.sent}
        remotes |= {each for clusters in sender.policies.values() if clusters for each in clusters[0]}
        for remote in sorted(remotes - {sender.pulsar_name}):
            receiver = by_name.get(remote)
            if receiver is not None or (remote in unread and not named[remote]):
                found.append(
                    Link(
                        sender=sender.name,
                        receiver=receiver.name if receiver else remote,
                        namespaces=tuple(_namespaces(sender, remote, receiver)),
                        receiver_read=receiver is not None,
                    )
                )
    return tuple(found)


def _namespaces(sender: ReplicationEnd, remote: str, receiver: ReplicationEnd | None) -> Iterator[LinkedNamespace]:
    by_policy = {name for name, clusters in sender.policies.items() if clusters and remote in clusters[0]}
    for name in sorted(by_policy | {name for name, other in sender.sent if other == remote}):
        sent = sender.sent.get((name, remote))
        if receiver is None:
            yield LinkedNamespace(namespace=name, sent=sent)
            continue
        back, clusters = receiver.sent.get((name, sender.pulsar_name)), receiver.policies.get(name)
        yield LinkedNamespace(
            namespace=name,
            sent=sent,
            received_topics=back.inbound if back else None,
            received_rate=back.rate_in if back else None,
            exists=name in receiver.policies or name in receiver.elsewhere or (None if not receiver.whole else False),
            mutual=None if clusters is None else sender.pulsar_name in clusters[0] | clusters[1],
        )
