"""Groups of brokers: isolation policies with the namespaces, brokers and loads that they divide."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from itertools import chain
from math import inf, isfinite
from typing import TYPE_CHECKING, TypeVar

import msgspec

from pulsar_steward.facts.room import RESOURCES, Burden, Usage
from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.model.broker_defaults import CPU, DIRECT_MEMORY
from pulsar_steward.model.bundles import is_heartbeat
from pulsar_steward.model.isolation import AllowedBrokers, IsolationPolicy, Reach
from pulsar_steward.model.measures import LOADED_TOPICS, TOPIC_THROUGHPUT, TOPICS_OF_BROKER

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pulsar_steward.model.step import SetIsolation, UnloadBundle

Number = TypeVar("Number", int, float)

ISOLATION_UNKNOWN = Unknown("the cluster's isolation policies, and the load of its brokers, are not known")


class LoadOfBroker(msgspec.Struct, frozen=True, kw_only=True):
    """Load of a broker, without brokers' heartbeats.

    Attributes:
        topics: Loaded topics by namespace; None: not reported.
        bytes: Throughput in and out by namespace, in bytes per second; None: not reported.
        used: Its used resources.
    """

    topics: dict[str, int] | None = None
    bytes: dict[str, float] | None = None
    used: Usage = Usage()

    @property
    def flows(self) -> bool:
        """True if it reported any throughput."""
        return self.bytes is not None and sum(self.bytes.values()) > 0

    def share(self, topics: int, throughput: float) -> float:
        """Share of its load, and so of its resources, as in brokers' load shedding: by throughput, if there is any."""
        whole, part = (sum((self.bytes or {}).values()), throughput) if self.flows else (self._topics, topics)
        return min(1.0, part / whole) if whole else 0.0

    def plus(self, namespace: str, topics: int, throughput: float, used: Usage) -> LoadOfBroker:
        """Its load with more of a namespace, or less of it; what it did not report is not known then either."""
        return LoadOfBroker(
            topics=_plus(self.topics, namespace, topics),
            bytes=_plus(self.bytes, namespace, throughput),
            used=self.used.plus(used),
        )

    @property
    def _topics(self) -> int:
        return sum((self.topics or {}).values())


LOAD_SERIES = {
    **dict.fromkeys((TOPICS_OF_BROKER, LOADED_TOPICS, CPU, DIRECT_MEMORY)),
    **dict.fromkeys(TOPIC_THROUGHPUT, 0.0),
}
"""Metrics from which a broker's load is read, with the value that most topics have, if there is one."""


def load_of(samples: Iterable[tuple[str, str, float]]) -> LoadOfBroker:
    """A broker's load, from its own metrics; a figure that it does not export, or that is no number, is not reported.

    Args:
        samples: Series of `LOAD_SERIES`, the label ``namespace`` (empty: none), and the value.
    """
    told: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for series, namespace, value in samples:
        sums = told[series]
        if not is_heartbeat(namespace):
            sums[namespace] = sums.get(namespace, 0.0) + value
    known = {series: sums for series, sums in told.items() if all(map(isfinite, sums.values()))}
    topics, flows = known.get(LOADED_TOPICS), [known.get(series) for series in TOPIC_THROUGHPUT]
    if known.get(TOPICS_OF_BROKER, {}).get("") == 0:
        topics = {}
    throughput = defaultdict[str, float](float)
    for namespace, rate in chain.from_iterable(flow.items() for flow in flows if flow is not None):
        throughput[namespace] += rate
    return LoadOfBroker(
        topics=None if topics is None else {name: int(number) for name, number in topics.items()},
        bytes=None if None in flows else dict(throughput),
        used=Usage(cpu=known.get(CPU, {}).get(""), direct_memory=known.get(DIRECT_MEMORY, {}).get("")),
    )


def _plus(amounts: dict[str, Number] | None, namespace: str, more: Number) -> dict[str, Number] | None:
    return None if amounts is None else {**amounts, namespace: max(amounts.get(namespace, 0) + more, 0)}


class Isolation(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A cluster as isolation policies divide it.

    Attributes:
        policies: The policies by name.
        loads: Every broker that responds (``host:webport``) with its load.
        namespaces: All namespaces (``tenant/namespace``), sorted.
        stopping: Brokers that are about to stop, or stopped: they serve nobody, and others come to carry their load.
    """

    policies: dict[str, IsolationPolicy] = {}
    loads: dict[str, LoadOfBroker] = {}
    namespaces: tuple[str, ...] = ()
    stopping: frozenset[str] = frozenset()

    @cached_property
    def running(self) -> frozenset[str]:
        """Brokers that go on to serve."""
        return frozenset(self.loads) - self.stopping

    def after(self, change: SetIsolation) -> Isolation:
        """The cluster once a change is made; nothing is moved by it."""
        return msgspec.structs.replace(self, policies=change.made_in(self.policies))

    def moved(self, move: UnloadBundle, topics: int, throughput: float) -> Isolation:
        """The cluster once a bundle with so many topics, and bytes per second, is moved between two running brokers."""
        source, target = self.loads[move.source], self.loads[move.target]
        share = source.share(topics, throughput)
        loads = {
            move.source: source.plus(move.namespace, -topics, -throughput, source.used.times(-share)),
            move.target: target.plus(move.namespace, topics, throughput, source.used.times(share)),
        }
        return msgspec.structs.replace(self, loads={**self.loads, **loads})

    def without(self, broker: str) -> Isolation:
        """The cluster once a broker is lost, and nothing is loaded anew yet."""
        return msgspec.structs.replace(self, stopping=self.stopping | {broker})

    def claimed(self, *policies: IsolationPolicy | None) -> tuple[str, ...]:
        """Namespaces that one of these policies is about."""
        return tuple(
            name for name in self.namespaces if any(each is not None and each.claims(name) for each in policies)
        )

    def reach(self, change: SetIsolation) -> Reach:
        """Namespaces and running brokers that the former or the new policy matches."""
        policies = [each for each in (change.before, change.after) if each is not None]
        brokers = frozenset[str]().union(*(each.members(self.loads) for each in policies))
        return Reach(namespaces=self.claimed(*policies), brokers=tuple(sorted(brokers)))

    def allowed(self, namespace: str) -> frozenset[str] | None:
        """Running brokers that may own the namespace's bundles; None: every broker."""
        return self._allowed_brokers.of(namespace)

    def left_to(self, namespace: str) -> frozenset[str]:
        """Running brokers that may own the namespace's bundles."""
        allowed = self.allowed(namespace)
        return self.running if allowed is None else allowed

    def losing(self, then: Isolation) -> dict[str, frozenset[str]]:
        """Namespaces that some of their brokers are not left to any more, with these brokers."""
        lost = {name: self.left_to(name) - then.left_to(name) for name in self.namespaces}
        return {name: brokers for name, brokers in lost.items() if brokers}

    def elsewhere(self, name: str) -> tuple[str, str] | None:
        """A namespace of the policy with this name, and another policy that is about it too; None: there is none."""
        claimed = self.claimed(self.policies.get(name))
        others = ((other, each) for other, each in self.policies.items() if other != name)
        return next(((space, other) for other, each in others for space in claimed if each.claims(space)), None)

    def sides(self, namespaces: Iterable[str]) -> tuple[frozenset[str], ...]:
        """Sets of brokers that all bundles of some namespaces have to fit on, if any of these namespaces is among them.

        They are the brokers left to one namespace, and all those of namespaces that share brokers.
        """
        of_each = {self.left_to(name) for name in self.namespaces} - {frozenset()}
        together: list[frozenset[str]] = []
        for brokers in of_each:
            apart = [each for each in together if brokers.isdisjoint(each)]
            together = [*apart, brokers.union(*(each for each in together if each not in apart))]
        concerned = {self.left_to(name) for name in namespaces} - {frozenset()}
        sides = {side for side in of_each.union(together) if any(brokers <= side for brokers in concerned)}
        return tuple(sorted(sides, key=sorted))

    def burden(self, side: frozenset[str]) -> Burden:
        """What brokers come to carry: bundles of namespaces that are left no other broker, and all that is there now.

        What others have there stays until it is unloaded.
        """
        topics, idle, used = 0, 0, dict.fromkeys(RESOURCES, 0.0)
        silent: defaultdict[str, list[str]] = defaultdict(list)
        by_topics: list[str] = []
        for broker in sorted(self.loads):
            load, there = self.loads[broker], broker in side
            if load.topics is None:
                silent["topics"].append(broker)
                continue
            theirs = [held for held in self._held[broker] if there or held.is_kept_to(side)]
            carried = sum(held.topics for held in theirs)
            share = 1.0 if there else load.share(carried, sum(held.bytes for held in theirs))
            topics += carried
            idle += 0 if there or not load.flows else sum(held.idle for held in theirs)
            if share and not there and not load.flows:
                by_topics.append(broker)
            for name in RESOURCES if share else ():
                if (percent := getattr(load.used, name)) is None:
                    silent[name].append(broker)
                else:
                    used[name] += share * percent
        return Burden(
            brokers=len(side),
            topics=topics,
            used=used,
            silent={name: tuple(brokers) for name, brokers in silent.items()},
            by_topics=tuple(by_topics),
            idle=idle,
        )

    def busiest(self, brokers: Iterable[str]) -> str:
        """The broker with most CPU, or else topics, in use now; one that did not report it may have the most."""

        def order(broker: str) -> tuple[float, float, str]:
            load = self.loads[broker]
            cpu, topics = load.used.cpu, load.topics
            return -(inf if cpu is None else cpu), -(inf if topics is None else sum(topics.values())), broker

        return min(brokers, key=order)

    @cached_property
    def _allowed_brokers(self) -> AllowedBrokers:
        return AllowedBrokers(self.policies, self.running)

    @cached_property
    def _held(self) -> dict[str, tuple[_Held, ...]]:
        """What every broker has of namespaces that are left the same brokers."""
        found: dict[str, tuple[_Held, ...]] = {}
        for broker, load in self.loads.items():
            topics: defaultdict[frozenset[str], int] = defaultdict(int)
            throughput: defaultdict[frozenset[str], float] = defaultdict(float)
            idle: defaultdict[frozenset[str], int] = defaultdict(int)
            for namespace, number in (load.topics or {}).items():
                left = self.left_to(namespace)
                topics[left] += number
                flow = (load.bytes or {}).get(namespace, 0.0)
                throughput[left] += flow
                idle[left] += 0 if flow else number
            found[broker] = tuple(
                _Held(brokers=left, topics=number, bytes=throughput[left], idle=idle[left])
                for left, number in topics.items()
            )
        return found


class _Held(msgspec.Struct, frozen=True, kw_only=True):
    """Topics, and bytes per second, of namespaces on a broker, with the brokers that are left to them.

    `idle` are the topics of those namespaces that have no throughput.
    """

    brokers: frozenset[str]
    topics: int
    bytes: float
    idle: int

    def is_kept_to(self, side: frozenset[str]) -> bool:
        """True if they are left no other broker."""
        return bool(self.brokers) and self.brokers <= side
