"""Typed rows of a snapshot's smaller tables, read without Spark; `model.tables` describes each column."""

from __future__ import annotations

from datetime import datetime

import msgspec

from pulsar_steward.model.cluster import ClusterIdentity
from pulsar_steward.model.learned import Learned


class SnapshotMeta(msgspec.Struct, frozen=True, kw_only=True):
    """Metadata of a snapshot, and what could not be read."""

    snapshot_id: str
    cluster: str
    pulsar_cluster: str
    metadata_id: str | None = None
    taken_at: datetime
    pulsar_version: str
    load_manager: str
    unread_brokers: tuple[str, ...]
    unread_namespaces: tuple[str, ...]
    coordinators: int
    tcs_by_bundle: bool

    @property
    def identity(self) -> ClusterIdentity:
        """Identity of the Pulsar cluster."""
        return ClusterIdentity(name=self.pulsar_cluster, metadata_id=self.metadata_id)

    @property
    def unread(self) -> tuple[str, ...]:
        """Everything that could not be read; not empty means partial."""
        return (*self.unread_brokers, *self.unread_namespaces)


class BrokerRow(msgspec.Struct, frozen=True, kw_only=True):
    """A broker that the cluster lists; figures are None where it was not read or does not report them."""

    broker: str
    read: bool
    failure: str | None
    leader: bool
    pulsar_version: str | None = None
    bundles: int | None
    topics: int | None
    producers: int | None
    consumers: int | None
    cpu_percent: float | None
    memory_percent: float | None
    direct_memory_percent: float | None
    throughput_in_bytes: float | None
    throughput_out_bytes: float | None
    read_milliseconds: int


class BundleRow(msgspec.Struct, frozen=True, kw_only=True):
    """A bundle; counts are None where an unread broker may own it."""

    namespace: str
    bundle: str
    owner: str | None
    owner_known: bool
    topics: int | None
    producers: int | None
    consumers: int | None
    positions: tuple[int, ...] | None


class CoordinatorRow(msgspec.Struct, frozen=True, kw_only=True):
    """A transaction coordinator with its place, as far as that is known."""

    coordinator: int
    position: int
    bundle: str | None
    broker: str | None
    broker_known: bool


class NamespaceRow(msgspec.Struct, frozen=True, kw_only=True):
    """A namespace; `allowed_brokers` is None where isolation policies allow every broker."""

    namespace: str
    bundles: int
    boundaries: tuple[str, ...]
    allowed_brokers: tuple[str, ...] | None


class FailoverRow(msgspec.Struct, frozen=True, kw_only=True):
    """How long the topics of a broker would be gone without it, an estimate; the columns of `failovers`.

    Attributes:
        broker: ``host:webport``.
        others: Brokers that would take over; 0: only itself, once it is back.
        delayed_messages: Delayed messages that would be read again, at least.
        session_seconds: Until its metadata session ends; nobody waits for that where it ends orderly.
        assigning_seconds: Until its bundles have a new owner.
        loading_seconds: Until its topics are loaded.
        reading_seconds: Until the delayed messages are read.
        ended_seconds: All of it where the broker ends orderly, with the time that clients take to try again.
        lost_seconds: The same where it is lost.
        learned_lost: Broker whose end the rates were learned from, and what was seen; None: the policy's rates hold.
    """

    broker: str
    others: int
    bundles: int
    topics: int
    delayed_messages: int
    session_seconds: float
    assigning_seconds: float
    loading_seconds: float
    reading_seconds: float
    ended_seconds: int
    lost_seconds: int
    learned_lost: str | None = None
    learned_at: datetime | None = None
    learned_topics: int | None = None
    learned_seconds: int | None = None
    learned_brokers: int | None = None

    @property
    def learned(self) -> Learned | None:
        """Rate at which topics were served again; None: not known."""
        at, lost = self.learned_at, self.learned_lost
        topics, seconds, brokers = self.learned_topics, self.learned_seconds, self.learned_brokers
        if at is None or lost is None or topics is None or seconds is None or brokers is None:
            return None
        return Learned(lost=lost, at=at, topics=topics, seconds=seconds, brokers=brokers)


class TrendRow(msgspec.Struct, frozen=True, kw_only=True):
    """A figure at a time; `model.measures.MEASURES` describes each measure."""

    measure: str
    subject: str
    taken_at: datetime
    value: float
