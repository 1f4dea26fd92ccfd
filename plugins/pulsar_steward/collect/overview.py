"""What is asked once, before any broker is asked for itself: who is there, what they run, and all namespaces."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.admin.isolation import IsolationPolicy, isolation_policies
from pulsar_steward.errors import AdminError, NotFound
from pulsar_steward.model.bundles import TC_TOPIC
from pulsar_steward.model.cluster import ClusterIdentity, identity_of

if TYPE_CHECKING:
    from pulsar_steward.admin.reader import Reader

LAST_MAJOR_BY_BUNDLE = 4
"""The last major version whose transaction coordinators are placed by bundles alone (PIP-473)."""


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster at a glance.

    Attributes:
        identity: The cluster by its own name, and by its metadata store.
        version: Pulsar version of the broker that answered.
        load_manager: Class name of the load manager.
        brokers: Brokers that are listed, ``host:webport``, sorted.
        leader: The broker that leads the load manager, or None.
        coordinators: Transaction coordinators; 0 where transactions are off.
        policies: Namespace isolation policies.
        namespaces: ``tenant/name``, sorted.
        unread: Tenants whose namespaces could not be listed, as ``tenant/*``.
    """

    identity: ClusterIdentity
    version: str
    load_manager: str
    brokers: tuple[str, ...]
    leader: str | None
    coordinators: int
    policies: tuple[IsolationPolicy, ...]
    namespaces: tuple[str, ...]
    unread: tuple[str, ...]

    @property
    def pulsar_cluster(self) -> str:
        """The cluster's own name."""
        return self.identity.name

    @property
    def tcs_by_bundle(self) -> bool:
        """Whether bundles place the transaction coordinators; False where the version does not say."""
        major = re.match(r"\d+", self.version)
        return major is not None and int(major.group()) <= LAST_MAJOR_BY_BUNDLE


def look_over(reader: Reader) -> Overview:
    """Asks for the overview.

    Raises:
        AdminError: If the cluster cannot be read at all.
    """
    configuration = reader.runtime_configuration()
    identity = identity_of(configuration)
    namespaces, unread = _namespaces(reader)
    return Overview(
        identity=identity,
        version=reader.version(),
        load_manager=configuration.get("loadManagerClassName", ""),
        brokers=reader.brokers(),
        leader=reader.leader(),
        coordinators=_coordinators(reader, configuration),
        policies=isolation_policies(reader.isolation_policies(identity.name)),
        namespaces=namespaces,
        unread=unread,
    )


def _coordinators(reader: Reader, configuration: dict[str, str]) -> int:
    if configuration.get("transactionCoordinatorEnabled") != "true":
        return 0
    return reader.partitions(TC_TOPIC)


def _namespaces(reader: Reader) -> tuple[tuple[str, ...], tuple[str, ...]]:
    namespaces: list[str] = []
    unread: list[str] = []
    for tenant in reader.tenants():
        try:
            namespaces += reader.namespaces(tenant)
        except NotFound:
            continue  # deleted since it was listed
        except AdminError:
            unread.append(f"{tenant}/*")
    return tuple(sorted(namespaces)), tuple(unread)
