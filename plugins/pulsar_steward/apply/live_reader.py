"""Read access to the live cluster right before and right after a change. Cannot write."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from pulsar_steward.apply.kept import KeptFacts
from pulsar_steward.errors import AdminError, BrokenAnswer, ConfigurationError, NotFound, Refused
from pulsar_steward.facts.isolation import LOAD_SERIES, LoadOfBroker, load_of
from pulsar_steward.facts.load_manager import MANAGER_UNKNOWN, load_manager_of, usage_of
from pulsar_steward.facts.partitions import MOST_OF_NAMESPACE, MOST_OF_TOPIC
from pulsar_steward.model.broker_defaults import COMPACTION_BYTES, SERIES, broker_defaults, is_extensible
from pulsar_steward.model.bundles import (
    LOAD_BALANCER_TOPICS,
    TC_TOPIC,
    BundleRange,
    position_of,
    range_holding,
    ranges_of,
)
from pulsar_steward.model.cluster import identity_of
from pulsar_steward.model.isolation import isolation_policies
from pulsar_steward.model.measures import LOADED_TOPICS, PRODUCERS
from pulsar_steward.model.subscription import HolderKind, SubscriptionState, holding, kind_of_cursor
from pulsar_steward.model.topics import is_own_topic
from pulsar_steward.pulsar import paths
from pulsar_steward.pulsar.body import Closing
from pulsar_steward.pulsar.members import BEHIND_FRONT_DOOR
from pulsar_steward.pulsar.metrics import Exposition, endpoint
from pulsar_steward.pulsar.own_settings import defaults_in
from pulsar_steward.pulsar.owner import InternalDetail, OwnerReader, cursors_in
from pulsar_steward.pulsar.reader import Reader
from pulsar_steward.pulsar.statistics import clients_by_bundle, topics_in

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from pulsar_steward.facts.load_manager import BrokerUsage, LoadManager
    from pulsar_steward.facts.unknown import Unknown
    from pulsar_steward.model.cluster import ClusterIdentity
    from pulsar_steward.model.isolation import IsolationPolicy
    from pulsar_steward.model.setting import Setting, SettingName
    from pulsar_steward.model.step import ChangeSetting, DeleteSubscription
    from pulsar_steward.pulsar.body import Body
    from pulsar_steward.pulsar.metrics import Sample
    from pulsar_steward.pulsar.own_settings import StoredTopic
    from pulsar_steward.pulsar.owner import TopicDetail
    from pulsar_steward.pulsar.settings import AdminSettings
    from pulsar_steward.pulsar.statistics import TopicStatistics

T = TypeVar("T")

STATISTICS_SECONDS = 60
"""Time after which a broker renews its statistics, if it does not report another one."""

MAX_CONCURRENT_BROKERS = 16
MAX_METRICS_BYTES = 1 << 30

UNOWNED = "nobody owns the topic's bundle, and asking would load it"


class LiveReader(Closing):
    """Reads one cluster while a batch is carried out. Every method raises `AdminError` if it cannot read."""

    def __init__(self, settings: AdminSettings) -> None:
        self._settings = settings
        self._reader = Reader(settings)
        self._pulsar_cluster: str | None = None
        self._load_manager: LoadManager | Unknown = MANAGER_UNKNOWN
        self._hands_over = False
        self._defaults: dict[SettingName, Setting] | None = None
        self._last_owners: dict[str, str] = {}
        self._readers: dict[str, Reader] = {}
        self._kept = KeptFacts()
        self._last_clients: dict[str, int] = {}
        self._configurations: dict[str, dict[str, str]] = {}

    def close(self) -> None:
        """Closes the connections to all brokers."""
        for reader in (self._reader, *self._readers.values()):
            reader.close()

    @property
    def pulsar_cluster(self) -> str:
        """The cluster's own name, from the first read."""
        return self.identity().name if self._pulsar_cluster is None else self._pulsar_cluster

    def identity(self) -> ClusterIdentity:
        """Identity of the cluster that responds, read anew each time: an address may lead to another one meanwhile."""
        told = self._reader.runtime_configuration()
        identity, self._load_manager = identity_of(told), load_manager_of(told)
        self._hands_over = is_extensible(told)
        self._defaults = defaults_in(told)
        self._pulsar_cluster = self._pulsar_cluster or identity.name
        return identity

    def load_manager(self) -> LoadManager | Unknown:
        """Load manager of the broker that last reported its cluster's identity."""
        return self._load_manager

    @property
    def hands_over(self) -> bool:
        """True if a bundle has no owner while it goes from one broker to another (`ExtensibleLoadManagerImpl`)."""
        return self._hands_over

    def usage(self, broker: str, manager: LoadManager) -> BrokerUsage | None:
        """Usage of a broker, as the load manager's shedding compares it; None: not reported."""
        told = self.samples(broker, dict.fromkeys(SERIES))
        return usage_of(broker, [(each.series, each.labels.get("feature", ""), each.value) for each in told], manager)

    def require_single_brokers(self) -> None:
        """Requires that each broker can be reached separately, as the proof of a change needs it.

        Raises:
            Refused: If the brokers are behind a front door.
        """
        if self._settings.front_door:
            raise Refused(f"nothing is changed, as nothing could be proved: {BEHIND_FRONT_DOOR}")

    def brokers(self) -> tuple[str, ...]:
        """Brokers that the cluster lists; a broker that was just killed is still listed."""
        return self._reader.brokers()

    def owned_by(self, broker: str) -> tuple[str, ...]:
        """Bundles (``tenant/ns/range``) that one broker reports to own."""
        return self._at(broker).owned_bundles(self.pulsar_cluster, broker)

    def owned_by_each(self, brokers: Collection[str]) -> dict[str, tuple[str, ...] | AdminError]:
        """Bundles of several brokers, read in parallel; the error for a broker that cannot be read."""
        return self._of_each(brokers, self._owned_or_error)

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
        """Owner of a bundle; None: no broker. The likely owner is read first, then all other brokers.

        Args:
            namespace: ``tenant/namespace``.
            bundle: The range.
            likely: The broker to read first; empty: the owner at the last read.
            listed: The cluster's brokers, if the caller knows them already.
            owned_by: Returns bundles of a broker, if they were read already.

        Raises:
            AdminError: If no broker reports to own it, and a broker that may own it cannot be read.
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
        """A namespace's bundles in order; None: there is no such namespace."""
        try:
            return tuple(str(bundle) for bundle in ranges_of(self._reader.boundaries(namespace)))
        except NotFound:
            return None

    def own_setting(self, change: ChangeSetting) -> Setting | None:
        """The present value of a change's setting, at the same level; None: it is not set there.

        Raises:
            AdminError: If it cannot be read, or the topic's bundle has no owner: reading would load it.
        """
        if change.topic is None:
            return self._reader.own_settings(change.namespace).get(change.name)
        with self._owner_of_policies(change.namespace, change.topic) as owner:
            return owner.own_setting(change.topic, change.name)

    def compaction_bytes(self, namespace: str, topics: Iterable[str | None]) -> tuple[int, ...]:
        """Compaction thresholds: a topic's own, or else its namespace's, or the brokers' default; 0: none.

        Args:
            namespace: ``tenant/namespace``.
            topics: Topics of it, by names without a partition; None: a topic that sets none.

        Raises:
            AdminError: As of `own_setting`, or if brokers tell no default.
        """
        own = [None if topic is None else self._own_compaction_bytes(namespace, topic) for topic in topics]
        usual = 0
        if None in own:
            told = self._reader.own_compaction_bytes(namespace)
            if told is None:
                told = broker_defaults(self._reader.runtime_configuration()).compaction_bytes
            if told is None:
                words = f"from which size on topics are compacted is not known ({COMPACTION_BYTES})"
                raise AdminError("GET", paths.namespace(namespace), "a broker", words)
            usual = told
        return tuple(usual if each is None else each for each in own)

    def _own_compaction_bytes(self, namespace: str, topic: str) -> int | None:
        with self._owner_of_policies(namespace, topic) as owner:
            return owner.own_compaction_bytes(topic)

    def _owner_of_policies(self, namespace: str, topic: str) -> OwnerReader:
        """Reads a topic's policies, which the owner of its first partition reports (docs/pulsar-behaviour.md)."""
        first = f"{topic}-partition-0" if self._reader.partitions(topic) else topic
        bundle = range_holding(ranges_of(self._reader.boundaries(namespace)), position_of(first))
        owner = self.owner(namespace, str(bundle))
        if owner is None:
            raise AdminError("GET", paths.topic(topic), "no broker", UNOWNED)
        return OwnerReader(self._settings, owner)

    def inherited(self, change: ChangeSetting) -> Setting | None:
        """The value of a topic's namespace, or the brokers' default; None: neither is set."""
        if change.topic is not None:
            return self.settings_of(change.namespace).get(change.name)
        if self._defaults is None:
            self.identity()
        return (self._defaults or {}).get(change.name)

    def subscription(self, change: DeleteSubscription) -> SubscriptionState | None:
        """The present state of a subscription, from its topic's owner; None: there is no subscription of this name.

        Raises:
            AdminError: If the owner cannot be read, or the topic's bundle has no owner: reading would load it.
        """
        bundle = range_holding(ranges_of(self._reader.boundaries(change.namespace)), position_of(change.topic))
        owner = self.owner(change.namespace, str(bundle))
        if owner is None:
            raise AdminError("GET", paths.topic(change.topic), "no broker", UNOWNED)
        try:
            with OwnerReader(self._settings, owner) as topics:
                told = topics.statistics(change.topic)
                cursors = cursors_in(topics.internals(change.topic), topics.stored(change.topic))
        except NotFound:
            return None
        found = told.subscriptions.get(change.subscription)
        if found is None:
            return None
        beside = told.subscriptions.keys() - {change.subscription}
        moved = (found.last_consumed_timestamp, found.last_acked_timestamp, found.last_mark_delete_advanced_timestamp)
        return SubscriptionState(
            consumers=len(found.consumers),
            entries=found.msg_backlog,
            topic_bytes=told.backlog_size,
            moved_milliseconds=max(each or 0 for each in moved),
            cursor=cursors.get(change.subscription),
            replicated=found.is_replicated,
            others=holding(name for name in beside if told.subscriptions[name].is_durable),
        )

    def topic_in(self, namespace: str, bundle: str) -> str | None:
        """The name of a topic in an owned bundle that can be looked up; None: no such topic, or no owner.

        Pulsar's own topics (``__change_events``) come last, as brokers read them themselves. Topics of the load
        balancer are never returned: a lookup of such a topic loads no bundle.
        """
        positions = self._reader.topic_positions(namespace, bundle) or ()
        named = (name for name in positions if LOAD_BALANCER_TOPICS not in name)
        names = [name for name in named if _can_be_looked_up(name, namespace, bundle)]
        return min(names, key=lambda name: (is_own_topic(name), name), default=None)

    def topics_in(self, namespace: str, bundle: str) -> frozenset[str]:
        """Full names of the topics in an owned bundle, loaded or not; empty if it has no owner.

        Brokers before 2.11 do not list the topics of a bundle: only persistent topics are known there.
        """
        try:
            return frozenset(self._reader.topic_positions(namespace, bundle) or ())
        except NotFound:
            whole = BundleRange.parse(bundle)
            return frozenset(name for name in self.topic_names(namespace) if position_of(name) in whole)

    def positions(self, namespace: str, bundle: str) -> tuple[int, ...]:
        """The hash positions of the topics in an owned bundle, in ascending order; empty if it has no owner."""
        return tuple(sorted((self._reader.topic_positions(namespace, bundle) or {}).values()))

    def coordinators(self) -> int:
        """Number of transaction coordinators; 0 if transactions were never set up."""
        return self._reader.partitions(TC_TOPIC)

    def clients(self, broker: str, namespace: str, bundle: str) -> int:
        """Producers and consumers connected through a bundle, from its owner's statistics (up to 1 min old).

        Right after a split, the statistics have only the whole bundle: the clients of the part's topics are counted
        there. Right after a move, the new owner's statistics do not have the bundle yet: the former owner's number is
        used.
        """
        name = f"{namespace}/{bundle}"
        known = self._kept.keep("clients", broker, lambda: clients_by_bundle(self.statistics(broker), broker))
        if name in known:
            self._last_clients[name] = known[name]
        elif topics := self.topics(broker, namespace, bundle):
            self._last_clients[name] = sum(topic.clients for topic in topics.values())
        return self._last_clients.get(name, 0)

    def called(self) -> None:
        """Drops kept statistics after a call: they are from before it."""
        self._kept.called()

    def topic_names(self, namespace: str) -> tuple[str, ...]:
        """Full names of a namespace's persistent topics, loaded or not."""
        return self._reader.topics(namespace)

    def stored_topic(self, topic: str) -> StoredTopic:
        """Ledgers and cursors of a topic, from the metadata store; the read loads no topic."""
        return self._reader.stored_topic(topic)

    def partitions(self, topic: str) -> int:
        """Number of a topic's partitions; 0: it has none, or does not exist."""
        return self._reader.partitions(topic)

    def stored_subscriptions(self, topic: str) -> frozenset[str] | None:
        """Durable subscriptions of applications on a topic, from the metadata store; None: there is no topic."""
        try:
            cursors = self.stored_topic(topic).cursors
        except NotFound:
            return None
        return frozenset(each for each in cursors if kind_of_cursor(each) is HolderKind.SUBSCRIPTION)

    def most_topics(self, namespace: str) -> int:
        """Most topics of a namespace by its policies, or else by brokers' settings; 0: no limit."""
        own = self._reader.own_most_topics(namespace)
        return int(self._reader.runtime_configuration().get(MOST_OF_NAMESPACE, "0")) if own is None else own

    def most_partitions(self) -> int:
        """Most partitions of a topic by brokers' settings; 0: no limit."""
        return int(self._reader.runtime_configuration().get(MOST_OF_TOPIC, "0"))

    def topics(self, broker: str, namespace: str, bundle: str) -> dict[str, TopicStatistics]:
        """The loaded topics of a bundle by full name, from its owner's statistics (up to 1 min old)."""
        return topics_in(self.statistics(broker), namespace, BundleRange.parse(bundle), broker)

    def statistics(self, broker: str) -> Body:
        """A broker's statistics of its topics, received within the last minute and after the last call."""

        def read() -> Body:
            self._kept.drop("statistics")  # of one broker only: it may be 100 MB
            self._kept.drop("clients", broker)
            return self._at(broker).topic_statistics()

        return self._kept.keep("statistics", broker, read)

    def statistics_seconds(self, broker: str) -> int:
        """Time within which a broker renews its statistics of all topics (`statsUpdateFrequencyInSecs`)."""
        told = self.configuration(broker).get("statsUpdateFrequencyInSecs", "")
        return int(told) if told.isdecimal() else STATISTICS_SECONDS

    def settings_of(self, namespace: str) -> dict[SettingName, Setting]:
        """Settings in force in a namespace: its own values, or else the brokers' defaults."""
        return {**defaults_in(self._reader.runtime_configuration()), **self._reader.own_settings(namespace)}

    def configuration(self, broker: str) -> dict[str, str]:
        """Runtime configuration of a broker; every value is a string."""
        if broker not in self._configurations:
            self._configurations[broker] = self._at(broker).runtime_configuration()
        return self._configurations[broker]

    def clock_milliseconds(self, broker: str) -> int | None:
        """Milliseconds that a broker's clock is ahead of this machine's, accurate to 1 s; None: not known."""
        return self._at(broker).clock_skew_milliseconds()

    def versions_and_clocks(self, brokers: Collection[str]) -> dict[str, tuple[str, int | None]]:
        """Pulsar versions of brokers, each with `clock_milliseconds`; read in parallel, with one call per broker."""
        return self._of_each(brokers, lambda broker: self._at(broker).version_and_clock())

    def configurations(self, brokers: Collection[str]) -> tuple[dict[str, str], ...]:
        """Runtime configuration of each of these brokers, read anew and in parallel."""
        return tuple(self._of_each(brokers, lambda broker: self._at(broker).runtime_configuration()).values())

    def samples(self, broker: str, resting: Mapping[str, float | None]) -> list[Sample]:
        """Samples of a broker's metrics: the first of each series, and all that are not at their resting value."""
        with closing(self._at(broker).metrics()) as pieces:
            return list(Exposition(pieces, MAX_METRICS_BYTES).samples(resting))

    def loaded_now(self, broker: str, namespace: str) -> tuple[frozenset[str], int]:
        """Topics of a namespace that a broker has loaded now: their names and their number, from its metrics.

        Metrics are current, while statistics of all topics are up to 1 min old. There are no names if the broker's
        metrics have no single topics.

        Raises:
            AdminError: If its metrics cannot be read, or do not contain the number of loaded topics.
        """
        names: set[str] = set()
        count, told = 0, False
        with closing(self._at(broker).metrics()) as pieces:
            exposition = Exposition(pieces, MAX_METRICS_BYTES)
            for sample in exposition.samples({PRODUCERS: None, LOADED_TOPICS: None}):
                told |= sample.series == LOADED_TOPICS
                if sample.labels.get("namespace") != namespace:
                    continue
                if sample.series == LOADED_TOPICS:
                    count += int(sample.value)
                elif sample.topic is not None:
                    names.add(sample.topic)
        if not told or exposition.cut:
            words = f"it does not say how many topics are loaded ({LOADED_TOPICS})"
            raise BrokenAnswer("GET", "/metrics", broker, words)
        return frozenset(names), count

    def bookies(self) -> frozenset[str]:
        """Ids of the bookies that belong to the cluster, including those that are down."""
        return frozenset(self._reader.bookies())

    def bookie_groups(self, namespace: str) -> tuple[str, ...]:
        """Groups of bookies that a namespace's own policy keeps its ledgers to; empty: it has none."""
        return self._reader.bookie_groups(namespace)

    def bookies_in(self, groups: Collection[str]) -> frozenset[str]:
        """Ids of the bookies in any of these groups."""
        return self._reader.bookies_in(groups)

    def bookie_samples(self, url: str, series: str) -> list[Sample]:
        """All samples of one series of a bookie's metrics, read without a token."""
        parts = urlsplit(url)
        with endpoint(self._settings, f"{parts.scheme}://{parts.netloc}") as transport:
            pieces = closing(transport.pieces(parts.path or "/metrics"))
            with pieces as text:
                return list(Exposition(text, MAX_METRICS_BYTES).samples({series: None}))

    def isolation_policies(self) -> dict[str, IsolationPolicy]:
        """The cluster's namespace isolation policies, by name; of another shape than is known: not an answer."""
        document = self._reader.isolation_policies(self.pulsar_cluster)
        try:
            return isolation_policies(document)
        except ConfigurationError as error:
            raise BrokenAnswer("GET", paths.isolation(self.pulsar_cluster), "any broker", str(error)) from error

    def namespaces(self) -> tuple[str, ...]:
        """All namespaces (``tenant/namespace``) of the configuration store, sorted."""
        found: list[str] = []
        for tenant in self._reader.tenants():
            with suppress(NotFound):  # it was deleted after it was listed
                found += self._reader.namespaces(tenant)
        return tuple(sorted(found))

    def loads(self, brokers: Collection[str]) -> dict[str, LoadOfBroker]:
        """Loaded topics and throughput by namespace, and resources, of brokers, from their metrics, in parallel."""
        return self._of_each(brokers, self._load)

    def _load(self, broker: str) -> LoadOfBroker:
        with closing(self._at(broker).metrics()) as pieces:
            exposition = Exposition(pieces, MAX_METRICS_BYTES)
            samples = exposition.samples(LOAD_SERIES)
            load = load_of((each.series, each.labels.get("namespace", ""), each.value) for each in samples)
            return LoadOfBroker() if exposition.cut else load

    def anti_affinity_group(self, namespace: str) -> str | None:
        """The anti-affinity group of a namespace; None: it has no group."""
        return self._reader.anti_affinity_group(namespace)

    def scalable_topics(self, namespace: str) -> tuple[str, ...] | None:
        """Scalable topics of a namespace, sorted; None: the broker has no such call."""
        return self._reader.scalable_topics(namespace)

    def other_clusters(self, namespace: str) -> tuple[str, ...]:
        """Clusters besides this one that serve a namespace, sorted."""
        return tuple(sorted(self._reader.clusters_of(namespace) - {self.pulsar_cluster}))

    def remotes_of(self, namespace: str) -> frozenset[str] | None:
        """Clusters that a namespace's policies replicate to, this one included; None: they do not tell."""
        return self._reader.remotes_of(namespace)

    def details(self, broker: str, topic: str) -> TopicDetail:
        """A topic's own statistics, read from a broker that owns it: a read from another broker would load it there."""
        with OwnerReader(self._settings, broker) as owner:
            return owner.statistics(topic)

    def details_of(self, broker: str, topics: Iterable[str], *, ages: bool = False) -> dict[str, TopicDetail]:
        """Statistics of several topics, as `details`; a topic that was deleted in the meantime is left out.

        Args:
            broker: Their owner.
            topics: Their full names.
            ages: True to also read the ages of subscriptions' backlogs.
        """
        found: dict[str, TopicDetail] = {}
        with OwnerReader(self._settings, broker) as owner:
            for topic in topics:
                with suppress(NotFound):
                    found[topic] = owner.statistics(topic, ages=ages)
        return found

    def internals(self, broker: str, topic: str) -> InternalDetail:
        """Ledgers and cursors of a topic, read from its owner; empty if the topic was deleted in the meantime."""
        with OwnerReader(self._settings, broker) as owner:
            try:
                return owner.internals(topic)
            except NotFound:
                return InternalDetail(ledgers=[], current_ledger_entries=0, current_ledger_size=0, cursors={})

    def coordinator_states(self, broker: str, numbers: Collection[int]) -> dict[int, str]:
        """States of transaction coordinators that are in use, read from their owner."""
        with OwnerReader(self._settings, broker) as owner:
            states = {number: owner.coordinator_state(number) for number in numbers}
        return {number: state for number, state in states.items() if state is not None}

    def _of_each(self, brokers: Collection[str], read: Callable[[str], T]) -> dict[str, T]:
        """What is read of each of these brokers, in parallel."""
        with ThreadPoolExecutor(max_workers=MAX_CONCURRENT_BROKERS) as pool:
            return dict(zip(brokers, pool.map(read, brokers), strict=True))

    def _at(self, broker: str) -> Reader:
        if broker not in self._readers:
            self._readers[broker] = self._reader.at(broker)
        return self._readers[broker]


def _can_be_looked_up(topic: str, namespace: str, bundle: str) -> bool:
    """True if a lookup of the topic can be sent, and loads this bundle; to be checked, as tenants choose the names."""
    inside = topic.partition("://")[2].startswith(f"{namespace}/")
    return inside and paths.can_hold(topic) and position_of(topic) in BundleRange.parse(bundle)
