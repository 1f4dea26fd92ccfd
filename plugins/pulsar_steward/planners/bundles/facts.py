"""Facts for the planners of business bundles: crowded and hot bundles, brokers' loads, and the risks of moves."""

from __future__ import annotations

import msgspec

from pulsar_steward.facts.risks import Surroundings, TopicFigures
from pulsar_steward.facts.room import Usage
from pulsar_steward.model.bundles import TC_NAMESPACE, is_heartbeat
from pulsar_steward.model.units import counted, throughput_in_words


def is_business(namespace: str) -> bool:
    """True unless a namespace is the coordinators' own or a broker's heartbeat namespace."""
    return namespace != TC_NAMESPACE and not is_heartbeat(namespace)


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """The load of a topic, bundle or broker: loaded topics, bytes and messages in and out per second, clients."""

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
    """A loaded topic of a bundle that may be split; rates are in and out, per second."""

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
    """One namespace's findings: whether some of its bundles have too many topics, and its hot bundles, as ranges."""

    by_topics: bool
    hot: frozenset[str]


class SplitCandidate(msgspec.Struct, frozen=True, kw_only=True):
    """A bundle that may have to be split.

    Attributes:
        bundle: Its range.
        owner: ``host:webport``; None: no owner, or not known.
        load: Its load.
        positions: Hash positions of all its topics, loaded or not, rising, as its owner reported; None: not read.
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
        rest_topics: Loaded topics of the fullest bundle that need not be split.
        suspects: The bundles that may have to be split, the fullest first.
    """

    namespace: str
    bundles: int
    topics: int
    rest_topics: int = 0
    suspects: tuple[SplitCandidate, ...] = ()


class Busy(msgspec.Struct, frozen=True, kw_only=True):
    """Sums over bundles, for the comparisons of `hot-bundle`.

    Attributes:
        bytes: Throughput of the owned bundles with any, without the busiest tenth.
        with_bytes: Number of these bundles.
        clients: Clients of the owned bundles with any, without the busiest tenth.
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
    """Limits of one bundle beyond which its broker would split it automatically; 0: no limit, or not known."""

    clients: int = 0
    messages: int = 0
    bytes: int = 0


class PlacedBundle(msgspec.Struct, frozen=True, kw_only=True):
    """A bundle on its owner, with its load over several snapshots.

    Attributes:
        namespace: ``tenant/namespace``.
        bundle: Its range.
        owner: ``host:webport``.
        mean: Its mean load.
        peak: The maximum of each quantity.
        now: Its load in the latest snapshot.
        whole: Range of the bundle of which earlier steps of the same batch make it; None: it is a bundle already.
    """

    namespace: str
    bundle: str
    owner: str
    mean: Load
    peak: Load
    now: Load
    whole: str | None = None

    @property
    def name(self) -> str:
        """``tenant/namespace/range``."""
        return f"{self.namespace}/{self.bundle}"


class OwnedBundlesLoad(msgspec.Struct, frozen=True, kw_only=True):
    """Load of a broker's bundles, recently moved ones at their present owner; heartbeats are left out."""

    broker: str
    mean: Load
    peak: Load
    now: Load


class LoadFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The load over several snapshots.

    Attributes:
        snapshots: Number of whole snapshots used, the latest included.
        brokers: Brokers that responded and are not draining, by id; empty if there are too few snapshots.
        stays: The heaviest bundles that had the same owner in all snapshots, on brokers above the mean in any quantity.
        moved: Business bundles that had another owner, or did not exist, in one of the snapshots.
        allowed: Brokers allowed by isolation policies for a namespace of `stays`; namespaces that may use all brokers
            are absent.
    """

    snapshots: int
    brokers: tuple[OwnedBundlesLoad, ...] = ()
    stays: tuple[PlacedBundle, ...] = ()
    moved: int = 0
    allowed: dict[str, tuple[str, ...]] = {}


class LeavingFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Bundles that have to leave their brokers, drained or outside of a group, and the load of all brokers.

    Attributes:
        brokers: All brokers that were read, draining ones included, by id.
        resources: Their used resources.
        leaving: These bundles, with a loaded topic or a coordinator, heartbeats left out, by name
            (``tenant/namespace/range``).
        idle: Number of those without topics and coordinators, by broker; brokers without any such bundle are absent.
        allowed: Brokers allowed by isolation policies for a namespace of `leaving`; namespaces that may use all brokers
            are absent.
    """

    brokers: tuple[OwnedBundlesLoad, ...] = ()
    resources: dict[str, Usage] = {}
    leaving: dict[str, PlacedBundle] = {}
    idle: dict[str, int] = {}
    allowed: dict[str, tuple[str, ...]] = {}


class RiskFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Topics with a risk, by bundle (``tenant/namespace/range``), and the settings around them, by namespace."""

    figures: dict[str, tuple[TopicFigures, ...]] = {}
    around: dict[str, Surroundings] = {}


class BundleFacts(msgspec.Struct, frozen=True, kw_only=True):
    """All facts for the planners of business bundles.

    Attributes:
        crowds: Namespaces with a finding about too large bundles, by name.
        busy: The load that hot bundles are compared with.
        limits: Brokers' own limits for a bundle, by broker.
        load: The load over time; None: no finding needs it.
        drain: Facts of draining brokers; None: no finding needs them.
        groups: The bundles of the namespaces of wanted groups, wherever they are; None: no finding needs them.
        risks: Risks of changing the bundles in `crowds`, `load`, `drain` and `groups`.
        splits_keep_clients: True if clients are known to stay connected while their bundle is split.
    """

    crowds: tuple[NamespaceToSplit, ...] = ()
    busy: Busy = Busy()
    limits: dict[str, BrokerLimits] = {}
    load: LoadFacts | None = None
    drain: LeavingFacts | None = None
    groups: LeavingFacts | None = None
    risks: RiskFigures = RiskFigures()
    splits_keep_clients: bool = False

    def allowed(self, namespace: str) -> tuple[str, ...] | None:
        """Brokers allowed by isolation policies for a namespace; None: every broker, or the namespace is not known."""
        told = [each.allowed for each in (self.drain, self.groups, self.load) if each is not None]
        return next((allowed[namespace] for allowed in told if namespace in allowed), None)

    def placed(self, namespace: str, bundle: str) -> PlacedBundle | None:
        """A bundle that may move; None: it is not known."""
        for facts in (self.drain, self.groups):
            if facts and (found := facts.leaving.get(f"{namespace}/{bundle}")):
                return found
        stays = self.load.stays if self.load else ()
        return next((stay for stay in stays if (stay.namespace, stay.bundle) == (namespace, bundle)), None)
