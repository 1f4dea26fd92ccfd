"""Overview of a cluster, read once before its brokers are: brokers, versions, and all namespaces."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import msgspec

from pulsar_steward.collect.arrow import ELSEWHERE, UNREAD
from pulsar_steward.collect.rows import UNFIT, Rows
from pulsar_steward.decoding import decode
from pulsar_steward.errors import AdminError, BrokenAnswer, ConfigurationError, NotFound
from pulsar_steward.model.bundles import TC_TOPIC
from pulsar_steward.model.canonical import canonical_json
from pulsar_steward.model.cluster import ClusterIdentity, configuration_store_id, identity_of, metadata_store_of
from pulsar_steward.model.isolation import AllowedBrokers, IsolationPolicy, isolation_policies
from pulsar_steward.model.pulsar_versions import VERSION
from pulsar_steward.model.tables import NAMESPACES
from pulsar_steward.pulsar.own_settings import NamespaceDocument
from pulsar_steward.pulsar.paths import BROKERS
from pulsar_steward.pulsar.reader import Bundles, Reader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pulsar_steward.collect.arrow import TableBatch
    from pulsar_steward.pulsar.settings import AdminSettings

log = logging.getLogger(__name__)

T = TypeVar("T")

ISOLATION = "isolation policies"
"""What is unread where the namespace isolation policies are."""


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """Overview of a cluster.

    Attributes:
        identity: The cluster by its own name, and by its metadata store.
        metadata_store: Kind of the metadata store; None: not reported.
        configuration_store_id: Id of the configuration store; None: not told.
        version: Pulsar version of the responding broker.
        load_manager: Class name of the load manager.
        brokers: Listed brokers, ``host:webport``, sorted.
        leader: The broker that leads the load manager, or None.
        coordinators: Number of transaction coordinators; 0 if transactions are off.
        bookies: Number of bookies of the cluster, up or down; None: not reported.
        policies: Namespace isolation policies, by name.
        namespaces: ``tenant/name``, sorted.
        unread: Items that could not be read, as in a snapshot: ``tenant/*`` for a tenant's namespaces, ``*/*`` for all
            namespaces, or the name of one of the other items above.
    """

    identity: ClusterIdentity
    metadata_store: str | None
    configuration_store_id: str | None
    version: str
    load_manager: str
    brokers: tuple[str, ...]
    leader: str | None
    coordinators: int
    bookies: int | None
    policies: dict[str, IsolationPolicy]
    namespaces: tuple[str, ...]
    unread: tuple[str, ...]

    @property
    def pulsar_cluster(self) -> str:
        """The cluster's own name."""
        return self.identity.name


def isolation_json(overview: Overview) -> str | None:
    """The isolation policies by name, as the snapshot keeps them; None: they could not be read."""
    return None if ISOLATION in overview.unread else canonical_json(overview.policies).decode()


def look_over(reader: Reader) -> Overview:
    """Reads the overview. Items that are missing or make no sense are listed as unread.

    Raises:
        AdminError: If the cluster cannot be read at all: neither its name nor its brokers.
    """
    configuration = reader.runtime_configuration()
    brokers = reader.brokers()
    try:
        identity = identity_of(configuration)
    except ConfigurationError as error:
        raise BrokenAnswer(
            "GET", f"{BROKERS}/configuration/runtime", "any broker", "it tells no clusterName"
        ) from error
    asked = _Requests()
    return Overview(
        identity=identity,
        metadata_store=metadata_store_of(configuration),
        configuration_store_id=configuration_store_id(configuration),
        version=asked.told("version", lambda: _version(reader), ""),
        load_manager=configuration.get("loadManagerClassName", ""),
        brokers=brokers,
        leader=asked.told("leader", reader.leader, None),
        coordinators=asked.told("transaction coordinators", lambda: reader.partitions(TC_TOPIC), 0)
        if configuration.get("transactionCoordinatorEnabled") == "true"
        else 0,
        bookies=_bookies(reader),
        policies=asked.told(ISOLATION, lambda: isolation_policies(reader.isolation_policies(identity.name)), {}),
        namespaces=_namespaces(reader, asked),
        unread=tuple(dict.fromkeys(asked.unread)),
    )


class _Requests:
    """Makes requests and records the failed ones."""

    def __init__(self) -> None:
        self.unread: list[str] = []

    def told(self, name: str, ask: Callable[[], T], otherwise: T) -> T:
        """Result of a request, or a substitute if it fails."""
        try:
            return ask()
        except (AdminError, ConfigurationError, *UNFIT) as error:
            log.warning("%s: not read, so the snapshot is partial: %s", name, error)
            self.unread.append(name)
            return otherwise


def _version(reader: Reader) -> str:
    version = reader.version()
    if not VERSION.fullmatch(version):
        raise ValueError(f"{version[:20]!r} is no version")
    return version


def _bookies(reader: Reader) -> int | None:
    """Number of bookies; a snapshot without it still counts as complete, as only one check needs it."""
    try:
        return len(reader.bookies())
    except AdminError as error:
        log.info("bookies: not read: %s", error)
        return None


def _namespaces(reader: Reader, asked: _Requests) -> tuple[str, ...]:
    nothing: tuple[str, ...] = ()
    tenants = asked.told("*/*", reader.tenants, nothing)
    found = [asked.told(f"{tenant}/*", partial(_of_tenant, reader, tenant), nothing) for tenant in tenants]
    return tuple(sorted(name for names in found for name in names))


def _of_tenant(reader: Reader, tenant: str) -> tuple[str, ...]:
    try:
        return reader.namespaces(tenant)
    except NotFound:
        if tenant in reader.tenants():
            raise  # it is still listed, so it was not deleted
        return ()


class PlacementInput(msgspec.Struct, frozen=True):
    """Input for the placement of namespaces: the listed brokers, the isolation policies, and the cluster's own name."""

    brokers: tuple[str, ...]
    policies: dict[str, IsolationPolicy]
    pulsar_cluster: str


class _Policies(NamespaceDocument, frozen=True, kw_only=True):
    """Namespace document, decoded to make sure that the snapshot's readers can decode it too."""

    bundles: Bundles


def read_namespaces(
    settings: AdminSettings, placement: PlacementInput, namespaces: Iterable[str]
) -> Iterator[TableBatch]:
    """Reads each namespace (``tenant/name``), and yields rows of `NAMESPACE_TABLES`.

    A namespace that was deleted after it was listed yields no row. One that only other clusters of the same
    configuration store serve, or that is unreadable, yields a row with its name.
    """
    rows, unread, elsewhere = Rows(NAMESPACES), Rows(UNREAD), Rows(ELSEWHERE)
    allowed_brokers = AllowedBrokers(placement.policies, placement.brokers)
    with Reader(settings) as reader:
        for namespace in namespaces:
            try:
                if (row := _row(reader, placement.pulsar_cluster, allowed_brokers, namespace, elsewhere)) is not None:
                    rows.require_fit(*row)
                    rows.add(*([value] for value in row))
            except AdminError as error:
                unread.add([namespace], [str(error)])
            except UNFIT as error:
                unread.add([namespace], [f"its policies are not what they should be: {type(error).__name__}: {error}"])
            yield from rows.full()
    yield from rows.rest()
    yield from unread.rest()
    yield from elsewhere.rest()


def _row(
    reader: Reader, pulsar_cluster: str, allowed_brokers: AllowedBrokers, namespace: str, elsewhere: Rows
) -> tuple[object, ...] | None:
    """Row of a namespace, or None if it no longer exists, or belongs to other clusters only, and so to `elsewhere`."""
    try:
        document = reader.namespace_policies(namespace)
    except NotFound:
        if namespace in reader.namespaces(namespace.partition("/")[0]):
            raise  # it is still listed, so it was not deleted
        return None
    policies = _policies(document, namespace)
    # Without a name of a cluster it is this one's, and Pulsar's own always are.
    here = pulsar_cluster in policies.clusters or not policies.clusters
    if not here and not namespace.startswith("pulsar/"):
        elsewhere.add([namespace])
        return None
    boundaries = policies.bundles.boundaries
    allowed = allowed_brokers.of(namespace)
    listed = None if allowed is None else sorted(allowed)
    return namespace, len(boundaries) - 1, boundaries, document.decode(), listed


def _policies(document: bytes, namespace: str) -> _Policies:
    try:
        return decode(document, _Policies)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise BrokenAnswer("GET", namespace, "any broker", f"its policies cannot be read: {error}") from error
