"""Identity of a Pulsar cluster, as reported by its brokers: a connection can be changed to another cluster."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


METADATA_STORE = ("metadataStoreUrl", "zookeeperServers")
"""Settings with the addresses of the metadata store, the first that is set."""

CONFIGURATION_STORE = ("configurationMetadataStoreUrl", "configurationStoreServers", "globalZookeeperServers")
"""Settings with those of the configuration store; brokers with none of them use their metadata store."""

CLUSTER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""Pattern for a cluster's name in Steward's connections; the name becomes part of paths, so it must be harmless."""


def admin_connection(cluster: str) -> str:
    """Name of the Airflow connection that reads a cluster, and changes it unless there is a `change_connection`."""
    return f"pulsar_admin_{cluster}"


def change_connection(cluster: str) -> str:
    """Name of the Airflow connection that changes a cluster; it need not exist."""
    return f"pulsar_change_{cluster}"


def require_cluster_name(name: str, *, named_by: str | None = None) -> str:
    """Returns the name of a cluster in Steward's connections, if it is valid.

    Args:
        name: The given name.
        named_by: The option that sets another name, for the error.

    Raises:
        ConfigurationError: If it is not valid.
    """
    if not CLUSTER_NAME.fullmatch(name):
        how = f" (give one by {named_by})" if named_by else ""
        raise ConfigurationError(f"cluster name {name!r}: use letters, digits, '.', '_' and '-' only{how}")
    return name


def named_clusters(text: str) -> tuple[str, ...]:
    """Names of clusters in Steward's connections, divided by commas, each once.

    Raises:
        ConfigurationError: If there is none, or one is not valid.
    """
    names = dict.fromkeys(each for part in text.split(",") if (each := part.strip()))
    if not names:
        raise ConfigurationError("no cluster is named: give the name of a connection pulsar_admin_<cluster>")
    return tuple(map(require_cluster_name, names))


_STORES = frozenset({"zk", "oxia", "etcd", "rocksdb", "memory"})
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]{0,20}", re.ASCII)


class ClusterIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """Identity of a Pulsar cluster.

    Attributes:
        name: Its own name (``clusterName``), which is not always the one in Steward's connections.
        metadata_id: First 16 hexadecimal digits of SHA-256 over the addresses of its metadata store, as two clusters
            may have the same name; None if brokers do not report them.
    """

    name: str
    metadata_id: str | None

    def is_same(self, other: ClusterIdentity) -> bool:
        """True if both are the same cluster; an unknown metadata store matches any."""
        known = self.metadata_id is not None and other.metadata_id is not None
        return self.name == other.name and (not known or self.metadata_id == other.metadata_id)

    def __str__(self) -> str:
        return f"{self.name} (metadata {self.metadata_id})" if self.metadata_id else self.name


class NamedCluster(msgspec.Struct, frozen=True):
    """A cluster by its name in Steward's connections; one cluster may have several names.

    Attributes:
        name: The name.
        identity: The Pulsar cluster behind the connection; None: not known.
        brokers: Brokers that the cluster listed; empty: not known. No two clusters list the same brokers.
    """

    name: str
    identity: ClusterIdentity | None = None
    brokers: frozenset[str] = frozenset()

    def is_same(self, other: NamedCluster) -> bool:
        """True if both lead to the same cluster.

        The addresses of one metadata store can be written in several ways. If they differ, a broker in both lists still
        proves that it is the same cluster.
        """
        if self.identity is None or other.identity is None:
            return False
        return self.identity.is_same(other.identity) or (
            self.identity.name == other.identity.name and not self.brokers.isdisjoint(other.brokers)
        )


def identity_of(configuration: Mapping[str, str]) -> ClusterIdentity:
    """Identity of the cluster, from the configuration of a broker (``/admin/v2/brokers/configuration/runtime``).

    Raises:
        ConfigurationError: If the configuration has no cluster name.
    """
    name = configuration.get("clusterName")
    if not name:
        raise ConfigurationError("the broker's configuration has no clusterName: is this a broker's admin URL?")
    return ClusterIdentity(name=name, metadata_id=_store_id(_first_of(configuration, METADATA_STORE)))


def metadata_store_of(configuration: Mapping[str, str]) -> str | None:
    """Kind of the metadata store: the scheme of its address, ``zk`` without one; None: not reported, or not readable.

    Nothing else of the address is given.
    """
    address = _first_of(configuration, METADATA_STORE)
    if not address:
        return None
    scheme, colon, rest = address.partition(":")
    if not colon or (scheme not in _STORES and rest[:1].isdigit()):  # a host, and its port
        return "zk"
    return scheme if _SCHEME.fullmatch(scheme) else None


def configuration_store_id(configuration: Mapping[str, str]) -> str | None:
    """Id of the configuration store, which clusters may share, as `ClusterIdentity.metadata_id`; None: not told."""
    return _store_id(_first_of(configuration, CONFIGURATION_STORE + METADATA_STORE).rstrip("/"))


def _first_of(configuration: Mapping[str, str], keys: Iterable[str]) -> str:
    return next((configuration[key] for key in keys if configuration.get(key)), "")


def _store_id(address: str) -> str | None:
    """Id of a store; ignores the order of its servers, which may differ between brokers of one cluster."""
    if not address:
        return None
    servers, slash, root = address.removeprefix("zk:").partition("/")
    parts = sorted(part.strip().lower() for part in servers.split(","))
    return hashlib.sha256(f"{','.join(parts)}{slash}{root}".encode()).hexdigest()[:16]
