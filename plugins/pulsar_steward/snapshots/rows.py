"""Typed rows of a snapshot's smaller tables, read without Spark; `model.tables` describes each column."""

from __future__ import annotations

from datetime import datetime

import msgspec

from pulsar_steward.errors import ConfigurationError
from pulsar_steward.model.cluster import ClusterIdentity
from pulsar_steward.model.system import System


class SnapshotMeta(msgspec.Struct, frozen=True, kw_only=True):
    """Metadata of a snapshot, with the names of unread brokers and namespaces.

    `read_from` and `read_until` are when the reading of brokers began and ended, UTC; `served_elsewhere` are namespaces
    that are listed, but that only other clusters serve; clusters with one `configuration_store_id` share that store;
    `metadata_store` is the kind of the metadata store (``zk``).
    All are None in snapshots of 0.2.0.
    """

    snapshot_id: str
    cluster: str
    pulsar_cluster: str
    metadata_id: str | None = None
    metadata_store: str | None = None
    taken_at: datetime
    pulsar_version: str
    load_manager: str
    unread_brokers: tuple[str, ...]
    unread_namespaces: tuple[str, ...]
    coordinators: int
    isolation_json: str | None = None
    read_from: datetime | None = None
    read_until: datetime | None = None
    bookies: int | None = None
    served_elsewhere: tuple[str, ...] | None = None
    configuration_store_id: str | None = None
    system: System = System.PULSAR
    servers: str | None = None

    def require_pulsar(self) -> None:
        """Checks that the snapshot is of a Pulsar cluster: nothing else is ever planned for, or changed.

        Raises:
            ConfigurationError: If it is of another system.
        """
        if self.system is not System.PULSAR:
            raise ConfigurationError(
                f"{self.snapshot_id} is a snapshot of a {self.system.called} cluster, which Steward only looks at:"
                " nothing is planned for it, and nothing in it is changed. `steward checkup` tells what to do by hand"
            )

    @property
    def identity(self) -> ClusterIdentity:
        """Identity of the Pulsar cluster."""
        return ClusterIdentity(name=self.pulsar_cluster, metadata_id=self.metadata_id)

    @property
    def unread(self) -> tuple[str, ...]:
        """All that could not be read; not empty means partial."""
        return (*self.unread_brokers, *self.unread_namespaces)


class BrokerRow(msgspec.Struct, frozen=True, kw_only=True):
    """A broker that the cluster lists; figures are None if the broker was not read or does not report them."""

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
    clock_skew_milliseconds: int | None = None
    read_milliseconds: int


class ConfigurationRow(msgspec.Struct, frozen=True):
    """A setting in force on a broker; its value is None if the broker does not report it."""

    broker: str
    key: str
    value: str | None


class BundleRow(msgspec.Struct, frozen=True, kw_only=True):
    """A bundle; counts are None if an unread broker may own it."""

    namespace: str
    bundle: str
    owner: str | None
    owner_known: bool
    topics: int | None
    producers: int | None
    consumers: int | None
    positions: tuple[int, ...] | None


class CoordinatorRow(msgspec.Struct, frozen=True, kw_only=True):
    """A transaction coordinator with its place, if known."""

    coordinator: int
    position: int
    bundle: str | None
    broker: str | None
    broker_known: bool


class NamespaceRow(msgspec.Struct, frozen=True, kw_only=True):
    """A namespace; `allowed_brokers` is None if isolation policies allow every broker.

    `policies_json` is None if its policies could not be read.
    """

    namespace: str
    allowed_brokers: tuple[str, ...] | None
    policies_json: str | None


class FailoverRow(msgspec.Struct, frozen=True, kw_only=True):
    """Estimated time for which a broker's topics would be unavailable without it; the columns of `failovers`.

    Attributes:
        broker: ``host:webport``.
        others: Brokers that would take over; 0: only the broker itself, after its restart.
        delayed_messages: Minimum number of delayed messages that would be read again.
        session_seconds: Until its metadata session ends; not needed if the broker ends orderly.
        assigning_seconds: Until its bundles have a new owner.
        loading_seconds: Until its topics are loaded.
        reading_seconds: Until the delayed messages are read.
        ended_seconds: The whole time if the broker ends orderly, with the backoff of clients.
        lost_seconds: The whole time if the broker is lost.
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


class TrendRow(msgspec.Struct, frozen=True, kw_only=True):
    """A figure at a time; `model.measures.MEASURES` describes each measure."""

    measure: str
    subject: str
    taken_at: datetime
    value: float
