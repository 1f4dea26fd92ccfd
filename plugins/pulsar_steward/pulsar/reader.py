"""Read access to a cluster that changes nothing: no call here loads a bundle or creates a topic or a policy.

This was measured on a real cluster for every call (docs/reading.md). Lookups, topic ``stats`` and
``/admin/v3/transactions/coordinators`` are not used here: they make a broker load a bundle that had no owner.
"""

from __future__ import annotations

import time
from contextlib import suppress
from email.utils import parsedate_to_datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from pulsar_steward.errors import AdminError, ConfigurationError, InvalidName, NotFound, Precondition
from pulsar_steward.model.cluster import identity_of
from pulsar_steward.pulsar import paths, statistics
from pulsar_steward.pulsar.body import Closing
from pulsar_steward.pulsar.figures import Boundary, Broker, Count, Position
from pulsar_steward.pulsar.own_settings import NamespaceDocument, StoredTopic
from pulsar_steward.pulsar.transport import Transport

if TYPE_CHECKING:
    from collections.abc import Collection, Generator

    from pulsar_steward.model.setting import Setting, SettingName
    from pulsar_steward.pulsar.body import Body
    from pulsar_steward.pulsar.settings import AdminSettings


class Bundles(msgspec.Struct, frozen=True):
    """Bundles of a namespace: their boundaries, at least two."""

    boundaries: Annotated[list[Boundary], msgspec.Meta(min_length=2)]

    def __post_init__(self) -> None:
        ends = (self.boundaries[0], self.boundaries[-1])
        if ends != ("0x00000000", "0xffffffff") or not all(lower < upper for lower, upper in pairwise(self.boundaries)):
            raise ValueError("the boundaries do not rise from 0x00000000 to 0xffffffff")


class _TopicPositions(msgspec.Struct, rename="camel"):
    topic_hash_positions: dict[str, Position]


class _Partitioned(msgspec.Struct):
    partitions: Count


class ClusterAddress(msgspec.Struct, frozen=True):
    """Addresses of a cluster as the configuration store has them, or that Pulsar's own migration sends clients to."""

    admin: str | None = msgspec.field(name="serviceUrl", default=None)
    service: str | None = msgspec.field(name="brokerServiceUrl", default=None)


class ClusterMigration(msgspec.Struct, frozen=True, rename="camel"):
    """Pulsar's own migration of a whole cluster (PIP-188): whether it was begun, and where clients are sent."""

    migrated: bool = False
    migrated_cluster_url: ClusterAddress | None = None


class _Tenant(msgspec.Struct, frozen=True, rename="camel"):
    allowed_clusters: frozenset[str] = frozenset()


class _Bookie(msgspec.Struct, frozen=True, rename="camel"):
    bookie_id: str


class _Bookies(msgspec.Struct, frozen=True):
    bookies: list[_Bookie]


class _BookieAffinity(msgspec.Struct, frozen=True):
    """Groups of bookies of a namespace, separated by commas; the second ones help out where the first have too few."""

    primary: str | None = msgspec.field(name="bookkeeperAffinityGroupPrimary", default=None)
    secondary: str | None = msgspec.field(name="bookkeeperAffinityGroupSecondary", default=None)


def groups_in(primary: str | None, secondary: str | None) -> tuple[str, ...]:
    """Groups of bookies, each once, from two lists with commas; empty without a first group, as in brokers."""
    named = f"{primary},{secondary or ''}".split(",") if primary else []
    return tuple(each for each in dict.fromkeys(named) if each)


class Reader(Closing):
    """Reads one cluster; has no method that writes, and a transport that refuses to.

    Every method raises `pulsar_steward.errors.AdminError` if the cluster cannot be read.
    """

    def __init__(self, settings: AdminSettings, *, broker: str | None = None) -> None:
        self._settings = settings
        methods: frozenset[Literal["GET"]] = frozenset({"GET"})
        self._transport = Transport.of(settings, methods, broker) if broker else Transport(settings, methods)
        self._list_of_brokers = paths.BROKERS

    def close(self) -> None:
        """Closes the connections."""
        self._transport.close()

    def at(self, broker: str) -> Reader:
        """Reader of one broker only (``host:webport``), for its reports about itself."""
        return Reader(self._settings, broker=broker)

    def url_of(self, broker: str) -> str:
        """URL of a broker by its id (``host:webport``), if the cluster's secret may be sent there.

        Raises:
            ConfigurationError: If a token or password would be sent there unencrypted.
        """
        url = self._transport.base_of(broker)
        self._settings.token_for(url)
        return url

    def brokers(self) -> tuple[str, ...]:
        """Ids (``host:webport``) of the brokers that the cluster lists, sorted.

        A broker that was killed stays listed until its metadata session ends (30 s by default).
        """
        try:
            return tuple(sorted(self._transport.read(self._list_of_brokers, list[Broker])))
        except NotFound:
            if self._list_of_brokers != paths.BROKERS or not self._names_cluster():
                raise
            return self.brokers()

    def _names_cluster(self) -> bool:
        """Adds the cluster's name to the path of the list of brokers (before Pulsar 2.11); False: no name is known."""
        with suppress(AdminError, ConfigurationError, InvalidName):
            name = identity_of(self.runtime_configuration()).name
            self._list_of_brokers = f"{paths.BROKERS}/{paths.segment(name)}"
        return self._list_of_brokers != paths.BROKERS

    def leader(self) -> str | None:
        """Id of the broker that leads the load manager, or None while there is none."""
        try:
            document = self._transport.read(f"{paths.BROKERS}/leaderBroker", dict[str, Any])
        except NotFound:
            return None
        broker = document.get("brokerId")
        if broker:
            return str(broker)
        return str(document.get("serviceUrl", "")).partition("://")[2] or None

    def version(self) -> str:
        """Pulsar version of the responding broker."""
        return _version_in(self._transport.get(f"{paths.BROKERS}/version").body)

    def runtime_configuration(self) -> dict[str, str]:
        """Runtime configuration of the responding broker; every value is a string."""
        return self._transport.read(f"{paths.BROKERS}/configuration/runtime", dict[str, str])

    def bookies(self) -> tuple[str, ...]:
        """Ids of all bookies that the cluster ever had and did not remove, sorted, including those that are down."""
        document = self._transport.read(paths.BOOKIES, _Bookies)
        return tuple(sorted(each.bookie_id for each in document.bookies))

    def bookie_groups(self, namespace: str) -> tuple[str, ...]:
        """Groups of bookies that a namespace's own policy keeps its ledgers to, second ones last; empty: it has none.

        Brokers before 3.0 answer 404 where there is no group, and later ones an empty body (apache/pulsar,
        `NamespacesBase`).
        """
        try:
            answer = self._transport.get(paths.namespace(namespace, "persistence", "bookieAffinity"))
        except NotFound:
            return ()
        told = _BookieAffinity()
        if answer.body and bytes(answer.body) != b"null":
            told = answer.decoded(_BookieAffinity)
        return groups_in(told.primary, told.secondary)

    def bookies_in(self, groups: Collection[str]) -> frozenset[str]:
        """Ids of the bookies in any of these groups, those that help out where the first groups have too few included.

        See `IsolatedBookieEnsemblePlacementPolicy` in apache/pulsar.
        """
        racks = self._transport.read(paths.BOOKIE_GROUPS, dict[str, dict[str, Any]])
        return frozenset(bookie for group in groups for bookie in racks.get(group, {}))

    def clock_skew_milliseconds(self) -> int | None:
        """Milliseconds that the responding broker's clock is ahead of this machine's, to 1 s; None: unknown."""
        return self.version_and_clock()[1]

    def version_and_clock(self) -> tuple[str, int | None]:
        """Version of the responding broker and `clock_skew_milliseconds`, from one response."""
        asked_at = time.time()
        response = self._transport.get_here(f"{paths.BROKERS}/version")
        middle = (asked_at + time.time()) / 2
        version = _version_in(response.body)
        try:
            shown = parsedate_to_datetime(response.date or "").timestamp()
        except (ValueError, OverflowError):
            return version, None
        # The header has whole seconds: 0.5 s are lost on average.
        return version, round((shown + 0.5 - middle) * 1000)

    def metrics(self) -> Generator[bytes]:
        """Prometheus text of the responding broker, in pieces; close the generator if it is not read to the end."""
        return self._transport.pieces("/metrics/")

    def tenants(self) -> tuple[str, ...]:
        """Names of all tenants, sorted."""
        return tuple(sorted(self._transport.read(paths.TENANTS, list[str])))

    def allowed_clusters(self, tenant: str) -> frozenset[str] | None:
        """Clusters that may serve a tenant's namespaces; None: there is no such tenant."""
        try:
            return self._transport.read(f"{paths.TENANTS}/{paths.segment(tenant)}", _Tenant).allowed_clusters
        except NotFound:
            return None

    def clusters(self) -> tuple[str, ...]:
        """Names of all clusters that the configuration store has."""
        return tuple(self._transport.read(paths.CLUSTERS, list[str]))

    def address_of(self, cluster: str) -> ClusterAddress:
        """Addresses of a cluster that the configuration store has."""
        return self._transport.read(f"{paths.CLUSTERS}/{paths.segment(cluster)}", ClusterAddress)

    def migration_of(self, cluster: str, *, own_path: bool) -> ClusterMigration:
        """State of Pulsar's own migration of a cluster; it has a path of its own since 3.2."""
        path = f"{paths.CLUSTERS}/{paths.segment(cluster)}"
        try:
            return self._transport.read(f"{path}/migrate" if own_path else path, ClusterMigration)
        except NotFound:  # nobody ever set anything
            return ClusterMigration()

    def namespaces(self, tenant: str) -> tuple[str, ...]:
        """Names (``tenant/namespace``) of a tenant's namespaces, sorted."""
        return tuple(sorted(self._transport.read(paths.tenant_namespaces(tenant), list[str])))

    def namespace_policies(self, namespace: str) -> bytes:
        """All policies of a namespace, as one JSON document; ``bundles.boundaries`` contains its bundles."""
        return bytes(self._transport.get(paths.namespace(namespace)).body)

    def own_settings(self, namespace: str) -> dict[SettingName, Setting]:
        """Settings of a namespace that Steward may change, by name, without unset ones."""
        return self._transport.read(paths.namespace(namespace), NamespaceDocument).settings

    def own_compaction_bytes(self, namespace: str) -> int | None:
        """Compaction threshold that a namespace sets itself; None: not set."""
        return self._transport.read(paths.namespace(namespace), NamespaceDocument).compaction_threshold

    def own_most_topics(self, namespace: str) -> int | None:
        """Most topics that a namespace's own policies permit; None: not set; 0: no limit."""
        return self._transport.read(paths.namespace(namespace), NamespaceDocument).max_topics_per_namespace

    def clusters_of(self, namespace: str) -> frozenset[str]:
        """Names of the clusters that serve a namespace, or may, by its policies."""
        return self._transport.read(paths.namespace(namespace), NamespaceDocument).clusters

    def remotes_of(self, namespace: str) -> frozenset[str] | None:
        """Clusters that a namespace's policies replicate to, this one included; None: they do not tell."""
        told = self._transport.read(paths.namespace(namespace), NamespaceDocument).replication_clusters
        return None if told is None else frozenset(told)

    def anti_affinity_group(self, namespace: str) -> str | None:
        """Name of a namespace's anti-affinity group; None: it has no group."""
        answer = self._transport.get(paths.namespace(namespace, "antiAffinity"))
        return bytes(answer.body).decode(errors="replace") or None

    def scalable_topics(self, namespace: str) -> tuple[str, ...] | None:
        """Names of a namespace's scalable topics (``topic://...``), sorted; None: brokers before 5.0 know no such."""
        try:
            return tuple(sorted(self._transport.read(paths.scalable(namespace), list[str])))
        except NotFound:
            return None

    def boundaries(self, namespace: str) -> tuple[str, ...]:
        """Boundaries of a namespace's bundles, hexadecimal, in ascending order."""
        return tuple(self._transport.read(paths.namespace(namespace, "bundles"), Bundles).boundaries)

    def owned_bundles(self, pulsar_cluster: str, broker: str) -> tuple[str, ...]:
        """Bundles (``tenant/ns/range``) that a broker owns, sorted."""
        path = f"{paths.BROKERS}/{paths.segment(pulsar_cluster)}/{paths.segment(broker)}/ownedNamespaces"
        return tuple(sorted(self._transport.read(path, dict[str, Any])))

    def topic_positions(self, namespace: str, bundle: str) -> dict[str, int] | None:
        """Hash positions of the topics in a bundle by full name; None: the bundle has no owner.

        They include the partitions of transaction coordinators, which are in no list of topics.
        """
        path = paths.namespace(namespace, paths.segment(bundle), "topicHashPositions")
        try:
            return self._transport.read(path, _TopicPositions).topic_hash_positions
        except Precondition as error:
            if "ownership" in error.reason:
                return None
            raise

    def partitions(self, topic: str) -> int:
        """Number of a topic's partitions; 0 if it is not partitioned or does not exist."""
        try:
            return self._transport.read(f"{paths.topic(topic)}/partitions", _Partitioned).partitions
        except NotFound:
            return 0

    def topics(self, namespace: str) -> tuple[str, ...]:
        """Full names of a namespace's persistent topics, loaded or not, sorted; partitions for a partitioned topic."""
        return tuple(sorted(self._transport.read(paths.topics(namespace), list[str])))

    def partitioned(self, namespace: str) -> tuple[str, ...]:
        """Full names of a namespace's partitioned topics, without their partitions."""
        return tuple(sorted(self._transport.read(f"{paths.topics(namespace)}/partitioned", list[str])))

    def stored_topic(self, topic: str) -> StoredTopic:
        """Ledgers and cursors of a topic, or of one partition, from the metadata store."""
        return self._transport.read(f"{paths.topic(topic)}/internal-info", StoredTopic)

    def topic_statistics(self) -> Body:
        """Topics loaded on the responding broker: namespace → bundle → domain → topic, JSON, up to 1 min old."""
        return self._transport.get(statistics.PATH).body

    def load_report(self) -> dict[str, Any]:
        """Resources and throughput of the responding broker."""
        return self._transport.read("/admin/v2/broker-stats/load-report", dict[str, Any])

    def isolation_policies(self, pulsar_cluster: str) -> dict[str, Any]:
        """Namespace isolation policies by name; empty if there are none."""
        try:
            answer = self._transport.get(paths.isolation(pulsar_cluster))
        except NotFound:
            return {}
        return answer.decoded(dict[str, Any]) if answer.body else {}


def _version_in(body: Body) -> str:
    return bytes(body).decode(errors="replace").strip().strip('"')
