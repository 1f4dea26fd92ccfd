"""Read access to the live cluster right before and right after a change. Cannot write."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from pulsar_steward.admin import paths
from pulsar_steward.admin.closing import Closing
from pulsar_steward.admin.isolation import isolation_policies
from pulsar_steward.admin.members import BEHIND_FRONT_DOOR
from pulsar_steward.admin.metrics import Exposition, endpoint
from pulsar_steward.admin.own_settings import defaults_in
from pulsar_steward.admin.owner import OwnerReader
from pulsar_steward.admin.reader import Reader
from pulsar_steward.admin.statistics import clients_by_bundle, topics_in
from pulsar_steward.errors import AdminError, NotFound, Refused
from pulsar_steward.facts.load_manager import MANAGER_UNKNOWN, load_manager_of, usage_of
from pulsar_steward.model.bundles import (
    LOAD_BALANCER_TOPICS,
    TC_TOPIC,
    BundleRange,
    position_of,
    range_holding,
    ranges_of,
)
from pulsar_steward.model.cluster import identity_of
from pulsar_steward.model.load_manager import SERIES, is_extensible
from pulsar_steward.model.subscription import SubscriptionState
from pulsar_steward.model.topics import is_own_topic

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from pulsar_steward.admin.body import Body
    from pulsar_steward.admin.isolation import IsolationPolicy
    from pulsar_steward.admin.metrics import Sample
    from pulsar_steward.admin.owner import TopicDetail
    from pulsar_steward.admin.settings import AdminSettings
    from pulsar_steward.admin.statistics import TopicStatistics
    from pulsar_steward.admin.stored import StoredTopic
    from pulsar_steward.facts.load_manager import BrokerUsage, LoadManager
    from pulsar_steward.facts.unknown import Unknown
    from pulsar_steward.model.cluster import ClusterIdentity
    from pulsar_steward.model.setting import Setting, SettingName
    from pulsar_steward.model.step import ChangeSetting, DeleteSubscription

T = TypeVar("T")

STATISTICS_SECONDS = 60
"""Time for which a broker's statistics are kept: it refreshes them no more often itself."""

MAX_CONCURRENT_BROKERS = 16
MAX_METRICS_BYTES = 1 << 30

UNOWNED = "nobody owns the topic's bundle, and asking would load it"


class LiveReader(Closing):
    """Reads one cluster while a batch is carried out. Every method raises `AdminError` when it cannot be read."""

    def __init__(self, settings: AdminSettings) -> None:
        self._settings = settings
        self._reader = Reader(settings)
        self._pulsar_cluster: str | None = None
        self._load_manager: LoadManager | Unknown = MANAGER_UNKNOWN
        self._hands_over = False
        self._defaults: dict[SettingName, Setting] | None = None
        self._last_owners: dict[str, str] = {}
        self._readers: dict[str, Reader] = {}
        self._statistics: dict[str, tuple[float, Body]] = {}
        self._clients: dict[str, tuple[float, Mapping[str, int]]] = {}
        self._configurations: dict[str, dict[str, str]] = {}

    def close(self) -> None:
        """Closes the connections to all brokers."""
        for reader in (self._reader, *self._readers.values()):
            reader.close()

    @property
    def pulsar_cluster(self) -> str:
        """The cluster's own name, as it was first read."""
        return self.identity().name if self._pulsar_cluster is None else self._pulsar_cluster

    def identity(self) -> ClusterIdentity:
        """Identity of the cluster that answers now, read anew each time: an address may lead elsewhere meanwhile."""
        told = self._reader.runtime_configuration()
        identity, self._load_manager = identity_of(told), load_manager_of(told)
        self._hands_over = is_extensible(told)
        self._defaults = defaults_in(told)
        self._pulsar_cluster = self._pulsar_cluster or identity.name
        return identity

    def load_manager(self) -> LoadManager | Unknown:
        """Load manager of the broker that told its cluster's identity last."""
        return self._load_manager

    @property
    def hands_over(self) -> bool:
        """True if nobody owns a bundle while it goes from one broker to another (`ExtensibleLoadManagerImpl`)."""
        return self._hands_over

    def usage(self, broker: str, manager: LoadManager) -> BrokerUsage | None:
        """Usage of a broker, as the load manager's shedding compares it; None: it does not tell."""
        told = self.samples(broker, dict.fromkeys(SERIES))
        return usage_of(broker, [(each.series, each.labels.get("feature", ""), each.value) for each in told], manager)

    def require_single_brokers(self) -> None:
        """Requires that each broker can be asked by itself, as every proof of a change needs.

        Raises:
            Refused: Behind a front door.
        """
        if self._settings.front_door:
            raise Refused(f"nothing is changed, as nothing could be proved: {BEHIND_FRONT_DOOR}")

    def brokers(self) -> tuple[str, ...]:
        """Brokers that the cluster lists; one that was killed a moment ago is still among them."""
        return self._reader.brokers()

    def owned_by(self, broker: str) -> tuple[str, ...]:
        """Bundles (``tenant/ns/range``) that one broker reports to own."""
        return self._at(broker).owned_bundles(self.pulsar_cluster, broker)

    def owned_by_each(self, brokers: Collection[str]) -> dict[str, tuple[str, ...] | AdminError]:
        """Bundles of several brokers, asked at once; of one that cannot be read, the error."""
        with ThreadPoolExecutor(max_workers=MAX_CONCURRENT_BROKERS) as pool:
            return dict(zip(brokers, pool.map(self._owned_or_error, brokers), strict=True))

    def _owned_or_error(self, broker: str) -> tuple[str, ...] | AdminError:
        try:
            return self.owned_by(broker)
        except AdminError as error:
            return error

    def owner(
        self,
        namespace: str,
        bundle: str,
        *,
        likely: str = "",
        listed: Collection[str] | None = None,
        owned_by: Callable[[str], Collection[str]] | None = None,
    ) -> str | None:
        """Owner of a bundle; None: nobody. The likely broker is asked first, and all others where it does not own it.

        Args:
            namespace: ``tenant/namespace``.
            bundle: The range.
            likely: The broker to ask first; empty: the one that owned it when it was asked last.
            listed: The cluster's brokers, where the caller knows them already.
            owned_by: Bundles of a broker, where they were read already.

        Raises:
            AdminError: If nobody says so and a broker that may own it cannot be read.
        """
        key = f"{namespace}/{bundle}"
        failure: AdminError | None = None
        first, ask = likely or self._last_owners.get(key), owned_by or self.owned_by
        for broker in sorted(self.brokers() if listed is None else listed, key=lambda name: (name != first, name)):
            try:
                if key in ask(broker):
                    self._last_owners[key] = broker
                    return broker
            except AdminError as error:
                failure = error
        if failure is not None:
            raise failure
        return None

    def bundles(self, namespace: str) -> tuple[str, ...] | None:
        """A namespace's bundles in order; None where there is no such namespace."""
        try:
            return tuple(str(bundle) for bundle in ranges_of(self._reader.boundaries(namespace)))
        except NotFound:
            return None

    def own_setting(self, change: ChangeSetting) -> Setting | None:
        """The present value of what a change sets, at the same level; None where it is not set there.

        Raises:
            AdminError: If it cannot be read, or nobody owns the topic's bundle: asking would load it.
        """
        if change.topic is None:
            return self._reader.own_settings(change.namespace).get(change.name)
        # Topic policies are answered by the owner of a partitioned topic's first partition (docs/pulsar-behaviour.md).
        first = f"{change.topic}-partition-0" if self._reader.partitions(change.topic) else change.topic
        bundle = range_holding(ranges_of(self._reader.boundaries(change.namespace)), position_of(first))
        owner = self.owner(change.namespace, str(bundle))
        if owner is None:
            raise AdminError("GET", paths.topic(change.topic), "no broker", UNOWNED)
        with OwnerReader(self._settings, owner) as topics:
            return topics.own_setting(change.topic, change.name)

    def inherited(self, change: ChangeSetting) -> Setting | None:
        """The value of a topic's namespace, or brokers' default; None where neither says anything."""
        if change.topic is not None:
            return self.settings_of(change.namespace).get(change.name)
        if self._defaults is None:
            self.identity()
        return (self._defaults or {}).get(change.name)

    def subscription(self, change: DeleteSubscription) -> SubscriptionState | None:
        """The present state of a subscription, as its topic's owner tells it; None where there is none of its name.

        Raises:
            AdminError: If the owner cannot be read, or nobody owns the topic's bundle: asking would load it.
        """
        bundle = range_holding(ranges_of(self._reader.boundaries(change.namespace)), position_of(change.topic))
        owner = self.owner(change.namespace, str(bundle))
        if owner is None:
            raise AdminError("GET", paths.topic(change.topic), "no broker", UNOWNED)
        try:
            with OwnerReader(self._settings, owner) as topics:
                told, cursors = topics.statistics(change.topic), topics.internals(change.topic).cursors
        except NotFound:
            return None
        found = told.subscriptions.get(change.subscription)
        if found is None:
            return None
        cursor = cursors.get(change.subscription)
        moved = (found.last_consumed_timestamp, found.last_acked_timestamp, found.last_mark_delete_advanced_timestamp)
        return SubscriptionState(
            consumers=len(found.consumers),
            entries=found.msg_backlog,
            topic_bytes=told.backlog_size,
            moved_milliseconds=max(each or 0 for each in moved),
            position=cursor.mark_delete_position if cursor else "",
            replicated=found.is_replicated,
            others=len(told.subscriptions) - 1,
        )

    def topic_in(self, namespace: str, bundle: str) -> str | None:
        """The name of a topic in an owned bundle that can be looked up; None where it holds none, or nobody owns it.

        Topics of Pulsar's own (``__change_events``) come last: brokers read these by themselves. Those of the load
        balancer are none of them: a lookup of one loads no bundle.
        """
        positions = self._reader.topic_positions(namespace, bundle) or ()
        named = (name for name in positions if LOAD_BALANCER_TOPICS not in name)
        names = [name for name in named if _can_be_looked_up(name, namespace, bundle)]
        return min(names, key=lambda name: (is_own_topic(name), name), default=None)

    def positions(self, namespace: str, bundle: str) -> tuple[int, ...]:
        """The hash positions of the topics in an owned bundle, rising; empty where nobody owns it."""
        return tuple(sorted((self._reader.topic_positions(namespace, bundle) or {}).values()))

    def coordinators(self) -> int:
        """Number of transaction coordinators; 0 where transactions were never set up."""
        return self._reader.partitions(TC_TOPIC)

    def clients(self, broker: str, namespace: str, bundle: str) -> int:
        """Producers and consumers connected through a bundle, by its owner's statistics (up to a minute old).

        Right after a split these still know the whole only: each half then counts for all of it, rather than for none.
        """
        known = self._clients_of(broker)
        exact = known.get(f"{namespace}/{bundle}")
        if exact is not None:
            return exact
        wanted = BundleRange.parse(bundle)
        names = ((name.rpartition("/"), count) for name, count in known.items())
        same = ((BundleRange.parse(parts[2]), count) for parts, count in names if parts[0] == namespace)
        return sum(count for other, count in same if other.overlaps(wanted))

    def topic_names(self, namespace: str) -> tuple[str, ...]:
        """Full names of a namespace's persistent topics, loaded or not."""
        return self._reader.topics(namespace)

    def stored_topic(self, topic: str) -> StoredTopic:
        """Ledgers and cursors of a topic as the metadata store has them; nothing is loaded for it."""
        return self._reader.stored_topic(topic)

    def topics(self, broker: str, namespace: str, bundle: str) -> dict[str, TopicStatistics]:
        """The loaded topics of a bundle by full name, by its owner's statistics (up to a minute old)."""
        return topics_in(self.statistics(broker), namespace, BundleRange.parse(bundle), broker)

    def statistics(self, broker: str) -> Body:
        """A broker's statistics of its topics, as it sent them within the last minute."""
        read_at, document = self._statistics.get(broker, (float("-inf"), b""))
        if time.monotonic() - read_at > STATISTICS_SECONDS:
            document = self._at(broker).topic_statistics()
            self._statistics = {broker: (time.monotonic(), document)}  # of one broker only: it may be 100 MB
            self._clients.pop(broker, None)
        return document

    def _clients_of(self, broker: str) -> Mapping[str, int]:
        read_at, known = self._clients.get(broker, (float("-inf"), {}))
        if time.monotonic() - read_at > STATISTICS_SECONDS:
            known = clients_by_bundle(self.statistics(broker), broker)
            self._clients[broker] = time.monotonic(), known
        return known

    def settings_of(self, namespace: str) -> dict[SettingName, Setting]:
        """Settings in force in a namespace: its own, else the brokers' defaults."""
        return {**defaults_in(self._reader.runtime_configuration()), **self._reader.own_settings(namespace)}

    def configuration(self, broker: str) -> dict[str, str]:
        """Runtime configuration of a broker; every value is a string."""
        if broker not in self._configurations:
            self._configurations[broker] = self._at(broker).runtime_configuration()
        return self._configurations[broker]

    def clock_milliseconds(self, broker: str) -> int | None:
        """Milliseconds that a broker's clock is ahead of this machine's, to a second; None: not known."""
        return self._at(broker).clock_skew_milliseconds()

    def versions_and_clocks(self, brokers: Collection[str]) -> dict[str, tuple[str, int | None]]:
        """Pulsar versions of brokers, each with `clock_milliseconds`; all are asked at once, each by one call."""
        with ThreadPoolExecutor(max_workers=MAX_CONCURRENT_BROKERS) as pool:
            told = pool.map(lambda broker: self._at(broker).version_and_clock(), brokers)
            return dict(zip(brokers, told, strict=True))

    def samples(self, broker: str, resting: Mapping[str, float | None]) -> list[Sample]:
        """Samples of a broker's metrics: of each series the first, and all that do not rest."""
        with closing(self._at(broker).metrics()) as pieces:
            return list(Exposition(pieces, MAX_METRICS_BYTES).samples(resting))

    def bookie_samples(self, url: str, series: str) -> list[Sample]:
        """All samples of one series of a bookie's metrics, which are asked for without any token."""
        parts = urlsplit(url)
        with endpoint(self._settings, f"{parts.scheme}://{parts.netloc}") as transport:
            pieces = closing(transport.pieces(parts.path or "/metrics"))
            with pieces as text:
                return list(Exposition(text, MAX_METRICS_BYTES).samples({series: None}))

    def isolation_policies(self) -> tuple[IsolationPolicy, ...]:
        """The cluster's namespace isolation policies."""
        return isolation_policies(self._reader.isolation_policies(self.pulsar_cluster))

    def anti_affinity_group(self, namespace: str) -> str | None:
        """The anti-affinity group that a namespace is in; None: it is in none."""
        return self._reader.anti_affinity_group(namespace)

    def other_clusters(self, namespace: str) -> tuple[str, ...]:
        """Clusters besides this one that serve a namespace, sorted."""
        return tuple(sorted(self._reader.clusters_of(namespace) - {self.pulsar_cluster}))

    def details(self, broker: str, topic: str) -> TopicDetail:
        """A topic's own statistics, read from a broker that owns it: asking another one would load it."""
        with OwnerReader(self._settings, broker) as owner:
            return owner.statistics(topic)

    def details_of(self, broker: str, topics: Iterable[str]) -> dict[str, TopicDetail]:
        """The same of several topics; one that was deleted in the meantime is left out."""
        return self._of_each(broker, topics, OwnerReader.statistics)

    def oldest_published(self, broker: str, topics: Iterable[str]) -> dict[str, int | None]:
        """Publish time of the oldest message in each topic's backlog, in milliseconds since the epoch; None: not known.

        0: the backlog is empty. Read from a broker that owns the topics, as another one would load them; a topic that
        was deleted in the meantime is left out.
        """
        return self._of_each(broker, topics, OwnerReader.oldest_published_milliseconds)

    def _of_each(self, broker: str, topics: Iterable[str], read: Callable[[OwnerReader, str], T]) -> dict[str, T]:
        found: dict[str, T] = {}
        with OwnerReader(self._settings, broker) as owner:
            for topic in topics:
                with suppress(NotFound):
                    found[topic] = read(owner, topic)
        return found

    def coordinator_states(self, broker: str, numbers: Collection[int]) -> dict[int, str]:
        """States of transaction coordinators that somebody uses, read from a broker that owns them."""
        with OwnerReader(self._settings, broker) as owner:
            states = {number: owner.coordinator_state(number) for number in numbers}
        return {number: state for number, state in states.items() if state is not None}

    def _at(self, broker: str) -> Reader:
        if broker not in self._readers:
            self._readers[broker] = self._reader.at(broker)
        return self._readers[broker]


def _can_be_looked_up(topic: str, namespace: str, bundle: str) -> bool:
    """True if a lookup of the topic can be sent, and loads this bundle: names are chosen by tenants."""
    inside = topic.partition("://")[2].startswith(f"{namespace}/")
    return inside and paths.can_hold(topic) and position_of(topic) in BundleRange.parse(bundle)
