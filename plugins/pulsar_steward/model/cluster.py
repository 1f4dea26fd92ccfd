"""Identity of a Pulsar cluster, as reported by its brokers: a connection can be pointed at another cluster."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping


CLUSTER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""A cluster's name in Steward's connections, which becomes part of paths, and can be nothing else there."""


def admin_connection(cluster: str) -> str:
    """Name of the Airflow connection by which a cluster is looked at, and changed where it has no other one."""
    return f"pulsar_admin_{cluster}"


def change_connection(cluster: str) -> str:
    """Name of the Airflow connection by which a cluster is changed; it need not exist."""
    return f"pulsar_change_{cluster}"


def require_cluster_name(name: str, *, named_by: str | None = None) -> str:
    """The name of a cluster in Steward's connections, if it can be one.

    Args:
        name: What was given.
        named_by: The option that gives another one, said in the error.

    Raises:
        ConfigurationError: If it can be none.
    """
    if not CLUSTER_NAME.fullmatch(name):
        how = f" (give one by {named_by})" if named_by else ""
        raise ConfigurationError(f"cluster name {name!r}: use letters, digits, '.', '_' and '-' only{how}")
    return name


class ClusterIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """Identity of a Pulsar cluster.

    Attributes:
        name: Its own name (``clusterName``), which is not always the one in Steward's connections.
        metadata_id: The first 16 hexadecimal digits of SHA-256 over the addresses of its metadata store, as two
            clusters may well have the same name; None where brokers do not report them.
    """

    name: str
    metadata_id: str | None

    def is_same(self, other: ClusterIdentity) -> bool:
        """True if the two are one cluster; an unknown metadata store matches any."""
        known = self.metadata_id is not None and other.metadata_id is not None
        return self.name == other.name and (not known or self.metadata_id == other.metadata_id)

    def __str__(self) -> str:
        return f"{self.name} (metadata {self.metadata_id})" if self.metadata_id else self.name


def identity_of(configuration: Mapping[str, str]) -> ClusterIdentity:
    """Identity of the cluster of a broker with this configuration (``/admin/v2/brokers/configuration/runtime``).

    Raises:
        ConfigurationError: If it names no cluster.
    """
    name = configuration.get("clusterName")
    if not name:
        raise ConfigurationError("the broker's configuration has no clusterName: is this a broker's admin URL?")
    return ClusterIdentity(name=name, metadata_id=_metadata_id(configuration))


def _metadata_id(configuration: Mapping[str, str]) -> str | None:
    """Id of the metadata store; ignores the order of its servers, which brokers of one cluster may list differently."""
    address = configuration.get("metadataStoreUrl") or configuration.get("zookeeperServers")
    if not address:
        return None
    servers, slash, root = address.removeprefix("zk:").partition("/")
    parts = sorted(part.strip().lower() for part in servers.split(","))
    return hashlib.sha256(f"{','.join(parts)}{slash}{root}".encode()).hexdigest()[:16]
