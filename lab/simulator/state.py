"""State of a made-up cluster: brokers, namespaces, topics, ownership, affinities.

Every rule here was measured on Pulsar 4.0.7, with ModularLoadManagerImpl unless it says otherwise. Only the server's
event loop may call it.
"""

import time
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lab.simulator import isolation, quotas, ranges
from lab.simulator.model import HEARTBEAT_RANGE, LOAD_BALANCER_TOPICS, TC_TOPIC, Broker, Health, Namespace, Topic
from lab.simulator.spec import ClusterSpec
from lab.simulator.steady import SteadyDocuments

if TYPE_CHECKING:
    from lab.simulator.isolation import Policies
    from lab.simulator.topics_index import TopicIndex


class Ownership:
    """Bundles (``tenant/ns/0x.._0x..``) and the ids of their owners."""

    def __init__(self) -> None:
        self._owner: dict[str, str] = {}
        self._owned: dict[str, set[str]] = {}
        self._in_namespace: Counter[tuple[str, str]] = Counter()

    def owner(self, bundle: str) -> str | None:
        """Owner of a bundle; None: nobody."""
        return self._owner.get(bundle)

    def owned_by(self, broker_id: str) -> tuple[str, ...]:
        """The bundles of a broker, sorted."""
        return tuple(sorted(self._owned.get(broker_id, ())))

    def load_of(self, broker_id: str, namespace: str) -> tuple[int, int]:
        """Number of bundles that a broker owns: of a namespace, and in all."""
        return self._in_namespace[broker_id, namespace], len(self._owned.get(broker_id, ()))

    def give(self, bundle: str, broker_id: str) -> None:
        """Makes the broker the owner, whoever was it before."""
        self.release(bundle)
        self._owner[bundle] = broker_id
        self._owned.setdefault(broker_id, set()).add(bundle)
        self._in_namespace[broker_id, _namespace(bundle)] += 1

    def release(self, bundle: str) -> str | None:
        """Nobody owns the bundle any more; returns who did."""
        broker_id = self._owner.pop(bundle, None)
        if broker_id is not None:
            self._owned[broker_id].discard(bundle)
            self._in_namespace[broker_id, _namespace(bundle)] -= 1
        return broker_id

    def release_all(self, broker_id: str) -> None:
        """The broker owns nothing any more."""
        for bundle in self.owned_by(broker_id):
            self.release(bundle)


def _namespace(bundle: str) -> str:
    return bundle.rpartition("/")[0]


MINUTE_S = 60


class ClusterState:
    """One made-up cluster."""

    def __init__(self, spec: ClusterSpec) -> None:
        self.spec = spec
        self.brokers: dict[str, Broker] = {}
        self.tenants: set[str] = {"public", "pulsar"}
        self.namespaces: dict[str, Namespace] = {}
        self.topics: dict[str, TopicIndex] = {}
        self.partitioned: dict[str, int] = {}
        self.topic_policies: dict[str, dict[str, Any]] = {}
        self.coordinators = spec.coordinators
        self.ownership = Ownership()
        self.affinities: dict[str, str] = {}
        self.anti_affinity_groups: dict[str, str] = {}
        self.bookie_groups: dict[str, str] = {}
        self.isolation_policies: Policies | None = spec.isolation_policies
        self.configuration = dict(spec.configuration)
        self.steady_documents = SteadyDocuments() if spec.steady else None

    @property
    def now_ms(self) -> int:
        """Milliseconds since 1970."""
        return self.spec.now_ms if self.spec.now_ms is not None else time.time_ns() // 1_000_000

    @property
    def just_now(self) -> str:
        """A minute ago, as brokers write times; to the minute, so that documents stay the same for a while."""
        return time.strftime("%Y-%m-%dT%H:%M:00Z", time.gmtime(self.now_ms // 1000 - MINUTE_S))

    # -- brokers

    @property
    def listed(self) -> tuple[Broker, ...]:
        """Brokers whose metadata session lives, killed ones included for as long."""
        return tuple(broker for broker in self.brokers.values() if broker.health is not Health.GONE)

    @property
    def leader(self) -> Broker:
        """The broker that assigns bundles: the longest listed one.

        Raises:
            LookupError: No broker is left.
        """
        if not self.listed:
            raise LookupError("No broker is left: start one with add_broker().")
        return self.listed[0]

    def add_broker(self, host: str, port: int) -> Broker:
        """Registers a broker that listens there; those that the cluster is made with have run for a while."""
        number = len(self.brokers)
        ran_ms = int(self.spec.load_of(number).uptime_s * 1000) if number < self.spec.brokers else 0
        broker = Broker(number=number, host=host, port=port, started_ms=self.now_ms - ran_ms)
        self.brokers[broker.broker_id] = broker
        return broker

    def broker_died(self, broker_id: str) -> None:
        """Its process is gone, its session is not: it stays listed, and its bundles stay its own."""
        self.brokers[broker_id] = replace(self.brokers[broker_id], health=Health.DEAD)

    def broker_returned(self, broker_id: str) -> None:
        """Starts a broker again, as the youngest of all; it owns nothing."""
        if self.brokers[broker_id].health is Health.DEAD:
            self.session_expired(broker_id)
        broker = self.brokers.pop(broker_id)
        self.brokers[broker_id] = replace(broker, health=Health.UP, started_ms=self.now_ms)

    def session_expired(self, broker_id: str) -> None:
        """Nobody owns its bundles any more; where it led, the affinities, which are in its memory only, go too.

        ``extensible`` brokers share its bundles among them at once.
        """
        led = self.leader.broker_id == broker_id
        self.brokers[broker_id] = replace(self.brokers[broker_id], health=Health.GONE)
        orphans = self.owned_by(broker_id)
        self.ownership.release_all(broker_id)
        if led:
            self.affinities.clear()
        if self.spec.is_extensible and any(broker.health is Health.UP for broker in self.listed):
            for bundle in orphans:
                self.load(bundle)

    # -- ownership

    def owner(self, bundle: str) -> Broker | None:
        """Owner of ``tenant/ns/0x.._0x..``; None: nobody."""
        owner = self.ownership.owner(bundle)
        return None if owner is None else self.brokers[owner]

    def owned_by(self, broker_id: str) -> tuple[str, ...]:
        """The bundles of a broker, sorted, heartbeats not included."""
        return self.ownership.owned_by(broker_id)

    def watched_by(self, broker_id: str) -> tuple[str, ...]:
        """The bundles in which a broker watches itself; ``extensible`` ones tell of a third."""
        namespaces = [*self.brokers[broker_id].heartbeat_namespaces]
        if self.spec.is_extensible:
            namespaces.append(f"sla-monitor/{self.spec.cluster}/{broker_id}")
        return tuple(f"{namespace}/{HEARTBEAT_RANGE}" for namespace in namespaces)

    def choose_broker(self, bundle: str) -> Broker:
        """Broker to which the leader gives an unowned bundle: once the one an unload named, else the least laden.

        That may have been an unload in another namespace: before apache/pulsar#25518 the range alone is remembered.
        """
        namespace, _, hash_range = bundle.rpartition("/")
        wanted = self.affinities.pop(hash_range, None)
        if wanted is not None and self.brokers[wanted].health is not Health.GONE:
            return self.brokers[wanted]
        alive = [broker for broker in self.listed if broker.health is Health.UP]
        allowed = isolation.allowed(namespace, alive, self.isolation_policies)
        return min(allowed, key=lambda broker: (self.ownership.load_of(broker.broker_id, namespace), broker.number))

    def load(self, bundle: str) -> Broker:
        """Makes sure that a bundle is owned, as a client's lookup does."""
        owner = self.owner(bundle)
        if owner is None:
            owner = self.choose_broker(bundle)
            self.ownership.give(bundle, owner.broker_id)
        return owner

    def unload(self, bundle: str, destination: str | None = None) -> None:
        """Nobody owns the bundle any more; ``extensible`` brokers hand it over to a destination at once.

        Its topics are closed, and their cursors with them: the metadata store has their positions, no ledger does.
        """
        namespace, _, hash_range = bundle.rpartition("/")
        for topic in self.topics_in(namespace, hash_range):
            if any(each.cursor_ledger >= 0 for each in topic.spec.subscriptions):
                closed = (replace(each, cursor_ledger=-1, cursor_entry=-1) for each in topic.spec.subscriptions)
                closed_spec = replace(topic.spec, subscriptions=tuple(closed))
                self.topics[namespace].put(replace(topic, spec=closed_spec))
        if self.ownership.release(bundle) is not None and destination is not None and self.spec.is_extensible:
            self.ownership.give(bundle, destination)

    # -- namespaces and topics

    def bundle_of(self, topic: str) -> str:
        """``tenant/ns/0x.._0x..`` of a full topic name, by its hash alone."""
        namespace = namespace_of(topic)
        boundaries = self.namespaces[namespace].boundaries
        return f"{namespace}/{ranges.bundle_at(boundaries, ranges.position(topic))}"

    def topics_in(self, namespace: str, bundle: str) -> list[Topic]:
        """Every topic of a bundle, loaded or not; without the TCs, which are no topics with a ledger."""
        return self.topics[namespace].between(*ranges.bounds(bundle))

    def limits(self, topic: str) -> tuple[int, int]:
        """The backlog quota of a topic or of all partitions of one, in bytes and in seconds; -1 where there is none."""
        of_topic = self.topic_policies.get(topic.rpartition("-partition-")[0] or topic, {})
        holders = (self.namespaces[namespace_of(topic)].policies, of_topic)
        defaults = quotas.defaults(self.configuration)
        return quotas.limits(defaults, *(holder.get(quotas.QUOTAS) or {} for holder in holders))

    def positions_in(self, namespace: str, bundle: str) -> dict[str, int]:
        """Positions that ``topicHashPositions`` and split algorithms count: the TCs' and topics', without segments."""
        found = {topic.name: topic.position for topic in self.topics_in(namespace, bundle) if not topic.spec.segment}
        if namespace == "pulsar/system":
            boundaries = self.namespaces[namespace].boundaries
            places = {name: ranges.position(name) for name in tc_topics(self.coordinators)}
            if self.spec.is_extensible:
                places |= {name: ranges.position(name) for name in LOAD_BALANCER_TOPICS}
            found |= {name: place for name, place in places.items() if ranges.bundle_at(boundaries, place) == bundle}
        return found

    def split(self, namespace: str, bundle: str, cuts: list[int], *, unload: bool) -> None:
        """Cuts a bundle; its owner keeps the parts unless they are unloaded."""
        lower, upper = ranges.bounds(bundle)
        inside = [cut for cut in sorted(set(cuts)) if lower < cut < upper]
        if not inside:
            return
        before = self.namespaces[namespace]
        self.namespaces[namespace] = replace(before, boundaries=tuple(sorted({*before.boundaries, *inside})))
        owner = self.ownership.release(f"{namespace}/{bundle}")
        if owner is not None and not unload:
            for part in ranges.bundles_of((lower, *inside, upper)):
                self.ownership.give(f"{namespace}/{part}", owner)

    def set_policy(self, namespace: str, name: str, value: object | None) -> None:
        """Sets one part of a namespace's policies document; None removes it."""
        before = self.namespaces[namespace]
        kept = {key: old for key, old in before.policies.items() if key != name}
        policies = kept if value is None else {**kept, name: value}
        self.namespaces[namespace] = replace(before, policies=policies)


def namespace_of(topic: str) -> str:
    """``tenant/ns`` of ``persistent://tenant/ns/name``."""
    return "/".join(topic.split("://", 1)[1].split("/")[:2])


def tc_topics(coordinators: int) -> tuple[str, ...]:
    """The names by whose hashes the transaction coordinators are placed."""
    return tuple(f"{TC_TOPIC}-partition-{index}" for index in range(coordinators))
