"""What the planners of business bundles know: of crowded and hot bundles, of brokers' loads, and of what moves risk."""

from __future__ import annotations

import re

import msgspec

from pulsar_steward.facts.risks import Surroundings, TopicFigures
from pulsar_steward.model.bundles import TC_NAMESPACE
from pulsar_steward.model.units import counted

HEARTBEAT = r"^pulsar/([^/]+/)?[^/]+:\d+$"
"""Namespaces in which brokers watch themselves: ``pulsar/host:port`` and ``pulsar/<cluster>/host:port``."""

_HEARTBEAT = re.compile(HEARTBEAT)

MEGABYTE = 1_000_000


def is_business(namespace: str) -> bool:
    """Whether a namespace is neither the coordinators' nor a broker's heartbeat."""
    return namespace != TC_NAMESPACE and not _HEARTBEAT.match(namespace)


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """What a topic, a bundle or a broker carries.

    Attributes:
        topics: Loaded topics.
        bytes: In and out, a second.
        messages: In and out, a second.
        producers: Connected producers.
        consumers: Connected consumers.
    """

    topics: int = 0
    bytes: int = 0
    messages: int = 0
    producers: int = 0
    consumers: int = 0

    @property
    def clients(self) -> int:
        """Producers and consumers."""
        return self.producers + self.consumers

    @property
    def words(self) -> str:
        """Topics, throughput and clients for a person."""
        return (
            f"{counted(self.topics, 'topic')}, {self.bytes / MEGABYTE:,.1f} MB/s and {counted(self.clients, 'client')}"
        )


class TopicFact(msgspec.Struct, frozen=True, gc=False):
    """A loaded topic of a bundle that may be split; rates are in and out, a second."""

    position: int
    topic: str
    bytes: int = 0
    messages: int = 0
    producers: int = 0
    consumers: int = 0

    @property
    def clients(self) -> int:
        """Producers and consumers."""
        return self.producers + self.consumers


class SplitCandidate(msgspec.Struct, frozen=True, kw_only=True):
    """A bundle that may have to be split.

    Attributes:
        bundle: Its range.
        owner: ``host:webport``; None: nobody, or not known.
        load: What it carries.
        positions: Hash positions of all its topics, loaded or not, rising, as its owner told; None: not asked.
        topics: Its loaded topics, by position.
    """

    bundle: str
    owner: str | None
    load: Load
    positions: tuple[int, ...] | None = None
    topics: tuple[TopicFact, ...] = ()


class CrowdedNamespace(msgspec.Struct, frozen=True, kw_only=True):
    """A namespace with bundles that may have to be split.

    Attributes:
        namespace: ``tenant/namespace``.
        bundles: How many it is divided into.
        topics: Loaded topics in all of them.
        rest_topics: In the fullest bundle that is no suspect.
        suspects: The fullest first.
    """

    namespace: str
    bundles: int
    topics: int
    rest_topics: int = 0
    suspects: tuple[SplitCandidate, ...] = ()


class Busy(msgspec.Struct, frozen=True, kw_only=True):
    """What `hot-bundle` compares with: sums over owned bundles that carry anything, without the busiest tenth of these.

    And how many these are, beside the sums over all owned bundles, and how many brokers own them.
    """

    bytes: int = 0
    with_bytes: int = 0
    clients: int = 0
    with_clients: int = 0
    all_bytes: int = 0
    all_clients: int = 0
    brokers: int = 0


class BrokerLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What a broker would split by itself, at most in one bundle; 0: no limit, or not known."""

    clients: int = 0
    messages: int = 0
    bytes: int = 0


class PlacedBundle(msgspec.Struct, frozen=True, kw_only=True):
    """A bundle that had the same owner in all the snapshots that were looked at.

    Attributes:
        namespace: ``tenant/namespace``.
        bundle: Its range.
        owner: ``host:webport``.
        mean: What it carried, on average.
        peak: The most of each that it carried.
        now: What it carries in the latest snapshot.
    """

    namespace: str
    bundle: str
    owner: str
    mean: Load
    peak: Load
    now: Load

    @property
    def name(self) -> str:
        """``tenant/namespace/range``."""
        return f"{self.namespace}/{self.bundle}"


class BrokerLoad(msgspec.Struct, frozen=True, kw_only=True):
    """What a broker's bundles carry, those that moved lately at their present owner; heartbeats are left out."""

    broker: str
    mean: Load
    peak: Load
    now: Load


class LoadFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The load as several snapshots show it.

    Attributes:
        snapshots: How many whole snapshots were looked at, the latest included.
        brokers: Those that answered and are not draining, by id; empty where there are too few snapshots.
        stays: The heaviest bundles that may move, of brokers that carry more than the mean of anything.
        moved: Business bundles that had another owner, or did not exist, in one of the snapshots.
        allowed: Brokers that isolation policies leave to a namespace of `stays`, where they do not leave all of them.
    """

    snapshots: int
    brokers: tuple[BrokerLoad, ...] = ()
    stays: tuple[PlacedBundle, ...] = ()
    moved: int = 0
    allowed: dict[str, tuple[str, ...]] = {}


class RiskFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What a change of bundles would set off.

    Attributes:
        figures: Topics with a risk, by bundle (``tenant/namespace/range``); one without any is absent.
        around: What is in force, by namespace.
    """

    figures: dict[str, tuple[TopicFigures, ...]] = {}
    around: dict[str, Surroundings] = {}


class BundleFacts(msgspec.Struct, frozen=True, kw_only=True):
    """All that the planners of business bundles are given.

    Attributes:
        crowds: Namespaces that a finding about too large bundles names, by name.
        busy: What hot bundles are compared with.
        limits: Brokers' own limits on a bundle, by broker.
        load: The load over time; None: no finding asks for it.
        risks: Of the bundles named in `crowds` and `load`.
        splits_keep_clients: Whether clients are known to stay connected while their bundle is split.
    """

    crowds: tuple[CrowdedNamespace, ...] = ()
    busy: Busy = Busy()
    limits: dict[str, BrokerLimits] = {}
    load: LoadFacts | None = None
    risks: RiskFigures = RiskFigures()
    splits_keep_clients: bool = False
