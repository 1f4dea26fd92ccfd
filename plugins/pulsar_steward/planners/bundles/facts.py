"""Facts for the planners of business bundles: crowded and hot bundles, brokers' loads, and the risks of moves."""

from __future__ import annotations

import re

import msgspec

from pulsar_steward.facts.risks import Surroundings, TopicFigures
from pulsar_steward.model.bundles import HEARTBEAT, TC_NAMESPACE
from pulsar_steward.model.units import counted, throughput_in_words

_HEARTBEAT = re.compile(HEARTBEAT)


def is_business(namespace: str) -> bool:
    """True for a namespace that is neither the coordinators' nor a broker's heartbeat."""
    return namespace != TC_NAMESPACE and not _HEARTBEAT.match(namespace)


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """The load of a topic, a bundle or a broker.

    Attributes:
        topics: Loaded topics.
        bytes: Bytes in and out, a second.
        messages: Messages in and out, a second.
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
        """Topics, throughput and clients as text."""
        throughput = throughput_in_words(self.bytes)
        return f"{counted(self.topics, 'topic')}, {throughput} and {counted(self.clients, 'client')}"


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


class BundleTrouble(msgspec.Struct, frozen=True, kw_only=True):
    """Summary of the findings about too large bundles of one namespace.

    Attributes:
        by_topics: True if its topics crowd in some bundles.
        hot: Its hot bundles, as ranges.
    """

    by_topics: bool
    hot: frozenset[str]


class SplitCandidate(msgspec.Struct, frozen=True, kw_only=True):
    """A bundle that may have to be split.

    Attributes:
        bundle: Its range.
        owner: ``host:webport``; None: nobody, or not known.
        load: Its load.
        positions: Hash positions of all its topics, loaded or not, rising, as its owner told; None: not asked.
        topics: Its loaded topics, by position.
    """

    bundle: str
    owner: str | None
    load: Load
    positions: tuple[int, ...] | None = None
    topics: tuple[TopicFact, ...] = ()


class NamespaceToSplit(msgspec.Struct, frozen=True, kw_only=True):
    """A namespace with bundles that may have to be split.

    Attributes:
        namespace: ``tenant/namespace``.
        bundles: Number of its bundles.
        topics: Loaded topics in all of them.
        rest_topics: Loaded topics of the fullest bundle that is no suspect.
        suspects: The bundles that may have to be split, the fullest first.
    """

    namespace: str
    bundles: int
    topics: int
    rest_topics: int = 0
    suspects: tuple[SplitCandidate, ...] = ()


class Busy(msgspec.Struct, frozen=True, kw_only=True):
    """Sums over bundles that `hot-bundle` compares with.

    Attributes:
        bytes: Throughput of the owned bundles that have any, without the busiest tenth of these.
        with_bytes: Number of these bundles.
        clients: Clients of the owned bundles that have any, without the busiest tenth of these.
        with_clients: Number of these bundles.
        all_bytes: Throughput of all owned bundles.
        all_clients: Clients of all owned bundles.
        brokers: Number of brokers that own a bundle.
    """

    bytes: int = 0
    with_bytes: int = 0
    clients: int = 0
    with_clients: int = 0
    all_bytes: int = 0
    all_clients: int = 0
    brokers: int = 0


class BrokerLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits on one bundle beyond which its broker would split it by itself; 0: no limit, or not known."""

    clients: int = 0
    messages: int = 0
    bytes: int = 0


class PlacedBundle(msgspec.Struct, frozen=True, kw_only=True):
    """A bundle on its owner, with its load over the snapshots that were looked at.

    Attributes:
        namespace: ``tenant/namespace``.
        bundle: Its range.
        owner: ``host:webport``.
        mean: Its load on average.
        peak: The most of each quantity.
        now: Its load in the latest snapshot.
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


class OwnedBundlesLoad(msgspec.Struct, frozen=True, kw_only=True):
    """Load of a broker's bundles, those that moved lately at their present owner; heartbeats are left out."""

    broker: str
    mean: Load
    peak: Load
    now: Load


class LoadFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The load over several snapshots.

    Attributes:
        snapshots: Number of whole snapshots that it is taken from, the latest included.
        brokers: Those that answered and are not draining, by id; empty where there are too few snapshots.
        stays: The heaviest bundles that had one owner all the time, of brokers that carry more than the mean of
            anything.
        moved: Business bundles that had another owner, or did not exist, in one of the snapshots.
        allowed: Brokers that isolation policies leave to a namespace of `stays`, where they do not leave all of them.
    """

    snapshots: int
    brokers: tuple[OwnedBundlesLoad, ...] = ()
    stays: tuple[PlacedBundle, ...] = ()
    moved: int = 0
    allowed: dict[str, tuple[str, ...]] = {}


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Resources of a broker in use, in percent; None: it does not report that."""

    cpu: float | None = None
    direct_memory: float | None = None


class DrainFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The load of brokers that are to be emptied, and of those that are to take it over.

    Attributes:
        brokers: All brokers that were read, draining ones as well, by id.
        resources: What each of them uses of its own.
        leaving: Bundles of the draining ones with a loaded topic or a coordinator, heartbeats aside, by name
            (``tenant/namespace/range``).
        idle: Number of their bundles without any, by broker; those of no such bundle are absent.
        allowed: Brokers that isolation policies leave to a namespace of `leaving`, where they do not leave all of them.
    """

    brokers: tuple[OwnedBundlesLoad, ...] = ()
    resources: dict[str, Usage] = {}
    leaving: dict[str, PlacedBundle] = {}
    idle: dict[str, int] = {}
    allowed: dict[str, tuple[str, ...]] = {}


class RiskFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Risks of changing bundles.

    Attributes:
        figures: Topics with a risk, by bundle (``tenant/namespace/range``); a bundle without any is absent.
        around: The settings in force around them, by namespace.
    """

    figures: dict[str, tuple[TopicFigures, ...]] = {}
    around: dict[str, Surroundings] = {}


class BundleFacts(msgspec.Struct, frozen=True, kw_only=True):
    """All facts for the planners of business bundles.

    Attributes:
        crowds: Namespaces that a finding about too large bundles names, by name.
        busy: The load that hot bundles are compared with.
        limits: Brokers' own limits on a bundle, by broker.
        load: The load over time; None: no finding asks for it.
        drain: What drains; None: no finding asks for it.
        risks: Risks of changing the bundles in `crowds`, `load` and `drain`.
        splits_keep_clients: True if clients are known to stay connected while their bundle is split.
    """

    crowds: tuple[NamespaceToSplit, ...] = ()
    busy: Busy = Busy()
    limits: dict[str, BrokerLimits] = {}
    load: LoadFacts | None = None
    drain: DrainFacts | None = None
    risks: RiskFigures = RiskFigures()
    splits_keep_clients: bool = False

    def allowed(self, namespace: str) -> tuple[str, ...] | None:
        """Brokers that isolation policies leave to a namespace; None: every broker, or the namespace is not known."""
        told = [each.allowed for each in (self.drain, self.load) if each is not None]
        return next((allowed[namespace] for allowed in told if namespace in allowed), None)

    def placed(self, namespace: str, bundle: str) -> PlacedBundle | None:
        """A bundle that may move; None: it is not known."""
        if self.drain and (found := self.drain.leaving.get(f"{namespace}/{bundle}")):
            return found
        stays = self.load.stays if self.load else ()
        return next((stay for stay in stays if (stay.namespace, stay.bundle) == (namespace, bundle)), None)
