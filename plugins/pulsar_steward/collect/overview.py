"""What is asked once, before any broker is asked for itself: who is there, what they run, and all namespaces."""

from __future__ import annotations

import logging
import re
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import msgspec

from pulsar_steward.admin.isolation import IsolationPolicy, isolation_policies
from pulsar_steward.admin.paths import BROKERS
from pulsar_steward.collect.rows import UNFIT
from pulsar_steward.errors import AdminError, BrokenAnswer, ConfigurationError, NotFound
from pulsar_steward.model.bundles import TC_TOPIC

if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsar_steward.admin.reader import Reader

log = logging.getLogger(__name__)

T = TypeVar("T")

LAST_MAJOR_BY_BUNDLE = 4
"""The last major version whose transaction coordinators are placed by bundles alone (PIP-473)."""


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster at a glance.

    Attributes:
        pulsar_cluster: The cluster's own name.
        version: Pulsar version of the broker that answered.
        load_manager: Class name of the load manager.
        brokers: Brokers that are listed, ``host:webport``, sorted.
        leader: The broker that leads the load manager, or None.
        coordinators: Transaction coordinators; 0 where transactions are off.
        policies: Namespace isolation policies.
        namespaces: ``tenant/name``, sorted.
        unread: What could not be read, as a snapshot names it: ``tenant/*`` for a tenant's namespaces, ``*/*`` for all
            of them, or one of the other things above in words.
    """

    pulsar_cluster: str
    version: str
    load_manager: str
    brokers: tuple[str, ...]
    leader: str | None
    coordinators: int
    policies: tuple[IsolationPolicy, ...]
    namespaces: tuple[str, ...]
    unread: tuple[str, ...]

    @property
    def tcs_by_bundle(self) -> bool:
        """Whether bundles place the transaction coordinators; False where the version does not say."""
        major = re.match(r"\d+", self.version)
        return major is not None and int(major.group()) <= LAST_MAJOR_BY_BUNDLE


def look_over(reader: Reader) -> Overview:
    """Asks for the overview. What is not told, or makes no sense, is named as unread.

    Raises:
        AdminError: If the cluster cannot be read at all: it says neither its name nor its brokers.
    """
    configuration = reader.runtime_configuration()
    pulsar_cluster, brokers = configuration.get("clusterName"), reader.brokers()
    if not pulsar_cluster:
        raise BrokenAnswer("GET", f"{BROKERS}/configuration/runtime", "any broker", "it tells no clusterName")
    asked = _Asked()
    return Overview(
        pulsar_cluster=pulsar_cluster,
        version=asked.told("version", lambda: _version(reader), ""),
        load_manager=configuration.get("loadManagerClassName", ""),
        brokers=brokers,
        leader=asked.told("leader", reader.leader, None),
        coordinators=asked.told("transaction coordinators", lambda: _coordinators(reader, configuration), 0),
        policies=asked.told(
            "isolation policies", lambda: isolation_policies(reader.isolation_policies(pulsar_cluster)), ()
        ),
        namespaces=_namespaces(reader, asked),
        unread=tuple(dict.fromkeys(asked.unread)),
    )


class _Asked:
    """Remembers what nobody told."""

    def __init__(self) -> None:
        self.unread: list[str] = []

    def told(self, name: str, ask: Callable[[], T], otherwise: T) -> T:
        """What is told, or what stands in its place."""
        try:
            return ask()
        except (AdminError, ConfigurationError, *UNFIT) as error:
            log.warning("%s: not read, so the snapshot is partial: %s", name, error)
            self.unread.append(name)
            return otherwise


def _version(reader: Reader) -> str:
    version = reader.version()
    if not re.fullmatch(r"[!-~]{1,100}", version):
        raise ValueError(f"{version[:20]!r} is no version")
    return version


def _coordinators(reader: Reader, configuration: dict[str, str]) -> int:
    if configuration.get("transactionCoordinatorEnabled") != "true":
        return 0
    return reader.partitions(TC_TOPIC)


def _namespaces(reader: Reader, asked: _Asked) -> tuple[str, ...]:
    nothing: tuple[str, ...] = ()
    tenants = asked.told("*/*", reader.tenants, nothing)
    found = [asked.told(f"{tenant}/*", partial(_of_tenant, reader, tenant), nothing) for tenant in tenants]
    return tuple(sorted(name for names in found for name in names))


def _of_tenant(reader: Reader, tenant: str) -> tuple[str, ...]:
    try:
        return reader.namespaces(tenant)
    except NotFound:
        if tenant in reader.tenants():
            raise  # it is listed all the same, so that nobody may take it for deleted
        return ()
