"""A namespace at one cluster as it is now, for moving it to another one."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping


class ClientGroup(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """Clients of one host and version: connections, each of a producer or a consumer."""

    host: str
    version: str
    producers: int
    consumers: int


class Position(msgspec.Struct, frozen=True, kw_only=True):
    """A durable subscription of a loaded topic.

    Attributes:
        entries: Entries that it has not acknowledged; a batch of messages is one entry.
        messages_per_entry: Messages in an entry, by what consumers got lately; None: not told.
        replicated: Whether its position goes along to other clusters; None: its topic was not asked.
        consumers: Connected consumers.
    """

    entries: int
    consumers: int = 0
    messages_per_entry: int | None = None
    replicated: bool | None = None


ON_ITS_WAY_SECONDS = 5
"""What is sent in this time at the present rate counts as on its way: a link that is caught up is never empty."""

RENEWED_SECONDS = 60
"""Age of brokers' statistics at most: those of two ends may be of different moments."""


class Replicating(msgspec.Struct, frozen=True, kw_only=True):
    """Replication of a loaded topic to another cluster, and whether that one is connected in turn."""

    connected: bool | None
    entries: int
    rate_out: float | None
    delay_seconds: int | None
    inbound: bool

    @property
    def has_arrived(self) -> bool:
        """True if nothing is queued, or no more than is sent in a few seconds."""
        return not self.entries or (bool(self.connected) and self.entries <= (self.rate_out or 0) * ON_ITS_WAY_SECONDS)

    @property
    def entries_between_looks(self) -> float:
        """Entries by which the receiver may lag: they are queued here, or were sent since either end was looked at."""
        return self.entries + (self.rate_out or 0) * RENEWED_SECONDS


class LoadedTopic(msgspec.Struct, frozen=True, kw_only=True):
    """A loaded topic, or partition: subscriptions by name, replication by the other cluster's name in Pulsar."""

    positions: dict[str, Position]
    replication: dict[str, Replicating]


class NamespaceLook(msgspec.Struct, frozen=True, kw_only=True):
    """A namespace at one cluster; topics without Pulsar's own.

    Attributes:
        cluster: The cluster's name in Steward.
        pulsar_name: Its own name.
        url: Its admin address, for calls to copy.
        version: Pulsar version of the broker that responded.
        store: Id of its configuration store; empty: not told.
        keeps_positions: False if its brokers replicate no positions of subscriptions.
        sends_all: True if replication of a topic begins with its first message, and not with the next one.
        migration_seconds: How often its brokers look for Pulsar's own migration; 0: never.
        clusters: Clusters that its configuration store has.
        addresses: Admin and service addresses, by the clusters that have them there.
        tenant_clusters: Clusters that may serve the tenant; None: there is no such tenant.
        policies: The namespace's policies; None: there is no such namespace.
        topics: Number of partitions of all topics, loaded or not; 0: not partitioned.
        loaded: Loaded topics and partitions by full name, as of at most a minute ago.
        clients: Connected clients, those of other clusters' replication not counted; most connections first.
        migrates_to: Where Pulsar's own migration sends clients of the whole cluster, or would; empty: not set.
        migrated: Whether it was begun for the whole cluster.
        unread: Parts that could not be read, with reasons: what they would tell is not known.
        snapshot_at: Time of the snapshot that this is from; None: it is live. A snapshot has loaded topics alone, some
            of `clusters`, and nothing of the tenant or of Pulsar's own migration: what it does not have
            may be there.
    """

    cluster: str
    pulsar_name: str
    url: str
    version: str
    store: str = ""
    keeps_positions: bool = True
    sends_all: bool = False
    migration_seconds: int = 0
    clusters: frozenset[str]
    addresses: dict[str, tuple[str | None, str | None]] = {}
    tenant_clusters: frozenset[str] | None
    policies: dict[str, Any] | None
    topics: dict[str, int] = {}
    loaded: dict[str, LoadedTopic] = {}
    clients: tuple[ClientGroup, ...] = ()
    migrates_to: str = ""
    migrated: bool = False
    unread: tuple[str, ...] = ()
    snapshot_at: datetime | None = None

    @property
    def replicated_to(self) -> frozenset[str]:
        """Clusters that its policies replicate to, this one included; none: they do not tell."""
        return frozenset((self.policies or {}).get("replication_clusters") or ())

    @property
    def serves(self) -> bool:
        """True if the cluster may serve the namespace by its policies; brokers refuse to tell its topics otherwise."""
        named = self.replicated_to | frozenset((self.policies or {}).get("allowed_clusters") or ())
        return self.policies is not None and (not named or self.pulsar_name in named)

    def parts(self) -> frozenset[str]:
        """Full names of all topics and partitions that have to be loaded somewhere to be replicated."""
        numbered = (f"{topic}-partition-{place}" for topic, count in self.topics.items() for place in range(count))
        return frozenset([*numbered, *(topic for topic, count in self.topics.items() if not count)])

    def with_partitions(self, told: Mapping[str, int]) -> NamespaceLook:
        """The same with numbers of partitions that were asked for."""
        return msgspec.structs.replace(self, topics={**self.topics, **told})
