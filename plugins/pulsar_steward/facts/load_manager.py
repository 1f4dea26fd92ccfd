"""The brokers' own load manager: its settings, and the figures that its shedding compares.

A shedding strategy compares one figure of each broker, its *usage*: the highest of its resources' usages in percent,
each times its weight; or its traffic. `pulsar_steward.facts.shedding` has the strategies' rules.

A moved bundle's share of its source's throughput is also taken as its share of the source's usage, as strategies do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.model.broker_defaults import (
    BANDWIDTH_BEFORE_4,
    EXTENSIBLE,
    HISTORY,
    LIMITS,
    RATES,
    RESOURCES,
    SHEDDER,
    THROUGHPUT,
    WEIGHTS,
    lasting_default,
)
from pulsar_steward.model.bundles import TC_NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from pulsar_steward.model.step import UnloadBundle

PULSARS_OWN = "org.apache.pulsar."

FULL_PERCENT = 98.0
"""Usage of a resource from which on it counts as used up."""

MANAGER_UNKNOWN = Unknown("whether the brokers' own shedding is on is not known (loadBalancerSheddingEnabled)")
USAGES_UNKNOWN = Unknown("the usage that the brokers' own shedding compares is not known of every broker")
TRAFFIC_UNKNOWN = Unknown("the bundle's throughput is not known, by which the brokers' own shedding goes")


class LoadManager(msgspec.Struct, frozen=True, kw_only=True):
    """The load manager, from the brokers' configuration.

    Attributes:
        name: Its class, without the package.
        strategy: Class of its shedding strategy; empty: shedding is off.
        excluded: Namespaces, besides Pulsar's own, with bundles that it never sheds.
        transfers: True if it chooses the new broker of a shed bundle, and so may exchange bundles of two brokers.
        weights: Weights of resources, by series.
        limits: The settings that the strategy goes by; empty: it is not one of Pulsar's.
    """

    name: str
    strategy: str = ""
    excluded: frozenset[str] = frozenset()
    transfers: bool = True
    weights: dict[str, float] = {}
    limits: dict[str, float] = {}

    @property
    def strategy_name(self) -> str:
        """Class of its shedding strategy, without the package."""
        return self.strategy.rpartition(".")[2]

    @property
    def rule(self) -> str:
        """Class of its strategy, if that is one of Pulsar's; else empty."""
        return self.strategy_name if self.strategy.startswith(PULSARS_OWN) else ""

    @property
    def sheds(self) -> bool:
        """True if its shedding is on."""
        return bool(self.strategy)

    def sheds_from(self, namespace: str) -> bool:
        """True if it may unload bundles of a namespace; a strategy that is not Pulsar's may unload any."""
        spared = namespace in self.excluded or (namespace == TC_NAMESPACE and self.name == EXTENSIBLE)
        return self.sheds and not (spared and self.rule)

    @property
    def leaves_idle(self) -> bool:
        """True if bundles without traffic, as those of coordinators, come last or not at all."""
        return self.rule not in {"", "UniformLoadShedder"}


class Traffic(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes and messages per second, in and out."""

    bytes: float
    messages: float


NO_TRAFFIC = Traffic(bytes=0.0, messages=0.0)


class BrokerUsage(Traffic, frozen=True, kw_only=True):
    """Usage of one broker, as shedding compares it.

    Attributes:
        broker: ``host:webport``.
        percent: Usage of its most used resource, times the resource's weight.
        full: True if a resource that counts is used up: what waits for it is in no figure.
        below: Points by which the usage may be less, after a move.
        above: Points by which it may be more.
    """

    broker: str
    percent: float
    full: bool = False
    below: float = 0.0
    above: float = 0.0


class BundleMove(Traffic, frozen=True, kw_only=True):
    """A move in terms of shedding: brokers, and the bundle's traffic."""

    source: str
    target: str


def move_of(change: UnloadBundle, traffic: Traffic) -> BundleMove:
    """A move of a bundle with this traffic."""
    return BundleMove(source=change.source, target=change.target, bytes=traffic.bytes, messages=traffic.messages)


def load_manager_of(settings: Mapping[str, str]) -> LoadManager | Unknown:
    """The load manager of a broker with these settings; `Unknown` if they do not tell whether it sheds."""
    shedding = settings.get("loadBalancerSheddingEnabled")
    if shedding not in {"true", "false"}:
        return MANAGER_UNKNOWN
    name = settings.get("loadManagerClassName", "").rpartition(".")[2]
    if shedding == "false" or settings.get("loadBalancerEnabled", "true") == "false":
        return LoadManager(name=name)
    strategy = _strategy(name, settings.get(SHEDDER, ""))
    try:
        weights = {series: _weight(settings, key) for series, key in RESOURCES.items()}
        limits = {key: _limit(settings, key) for key in LIMITS.get(strategy.rpartition(".")[2], ())}
    except ValueError as error:
        return Unknown(f"by which thresholds the brokers' own shedding goes is not known: {error}")
    excluded = settings.get("loadBalancerSheddingExcludedNamespaces", "").strip("[] ") if name == EXTENSIBLE else ""
    return LoadManager(
        name=name,
        strategy=strategy,
        excluded=frozenset(each.strip() for each in excluded.split(",") if each.strip()),
        transfers=settings.get("loadBalancerTransferEnabled", "true") == "true",
        weights=weights,
        limits=limits,
    )


def _weight(settings: Mapping[str, str], key: str) -> float:
    """A resource's weight; where a setting has two names, the first value that is not the default, as brokers do."""
    told = [float(settings[name]) for name in (key, BANDWIDTH_BEFORE_4.get(key, key)) if name in settings]
    return next((value for value in told if value != WEIGHTS[key]), WEIGHTS[key])


_SWITCHES = {"false": "0", "true": "1"}


def _limit(settings: Mapping[str, str], key: str) -> float:
    value = settings.get(key, lasting_default(key))
    if value is None:
        message = f"{key} is not told"
        raise ValueError(message)
    return float(_SWITCHES.get(value, value))


def _strategy(manager: str, configured: str) -> str:
    """The running strategy: the extensible manager replaces strategies of the modular manager by its own."""
    if manager == EXTENSIBLE and configured.startswith(f"{PULSARS_OWN}broker.loadbalance.impl."):
        return f"{PULSARS_OWN}broker.loadbalance.extensions.scheduler.TransferShedder"
    return configured or "a strategy that is not told"


def one_load_manager(told: Iterable[Mapping[str, str]]) -> LoadManager | Unknown:
    """The load manager of several brokers; `Unknown` if they differ, as any of them may lead and decide.

    Args:
        told: Settings of each broker.
    """
    found = [load_manager_of(settings) for settings in told]
    if not found:
        return MANAGER_UNKNOWN
    first, *others = found
    for each in (first, *others):
        if isinstance(each, Unknown):
            return each
    if any(other != first for other in others):
        return Unknown("brokers' load managers are set differently, and whichever leads decides about shedding")
    return first


def usage_of(broker: str, samples: Iterable[tuple[str, str, float]], manager: LoadManager) -> BrokerUsage | None:
    """A broker's usage, from its own metrics; None: a needed series is missing.

    Args:
        broker: ``host:webport``.
        samples: Series of `SERIES`, the label ``feature`` (empty: none), and the value.
        manager: The brokers' load manager.
    """
    resources: dict[str, float] = {}
    history: float | None = None
    traffic: dict[str, float] = {}
    for series, feature, value in samples:
        if series in RESOURCES:
            resources[series] = max(value, 0.0)
        elif series in THROUGHPUT or series in RATES:
            traffic[series] = traffic.get(series, 0.0) + value
        elif series == HISTORY and feature == "max_ema":
            history = 100 * value
    percent, weights = history, _weights(manager)
    if manager.name != EXTENSIBLE:
        used = [resources[series] * weights[series] for series in RESOURCES if series in resources]
        percent = max(used) if len(used) == len(RESOURCES) else None
    if percent is None or len(traffic) < len((*THROUGHPUT, *RATES)):
        return None
    flow, rate = (sum(traffic[series] for series in names) for names in (THROUGHPUT, RATES))
    full = any(weights[series] > 0 and used >= FULL_PERCENT for series, used in resources.items())
    return BrokerUsage(broker=broker, percent=percent, bytes=flow, messages=rate, full=full)


def _weights(manager: LoadManager) -> Mapping[str, float]:
    """Weights of resources. `OverloadShedder` ignores them; it and `AvgShedder` use every resource except the heap."""
    heap = {"pulsar_lb_memory_usage": 0.0}
    if manager.rule == "OverloadShedder":
        return dict.fromkeys(RESOURCES, 1.0) | heap
    return manager.weights | heap if manager.rule == "AvgShedder" else manager.weights


def after_move(usages: Collection[BrokerUsage], move: BundleMove) -> tuple[BrokerUsage, ...]:
    """Usages after a bundle's move.

    By bytes and by messages a bundle may have different shares of its source's traffic: it is taken to carry the larger
    one, and perhaps less. Of a full source it carries perhaps more, and fills its target as well. A target that would
    be over 100 % shows perhaps no more than that. A bundle with traffic of a source without a usage perhaps fills it.
    """
    source = next((each for each in usages if each.broker == move.source), None)
    untold = 100.0 if source is None and (move.bytes or move.messages) else 0.0
    source = source or BrokerUsage(broker=move.source, percent=0.0, bytes=0.0, messages=0.0)
    pairs = ((move.bytes, source.bytes), (move.messages, source.messages))
    shares = [min(1.0, carried / whole) for carried, whole in pairs if whole > 0] or [0.0]
    carried, doubt = source.percent * max(shares), source.percent * (max(shares) - min(shares))
    hidden = source.full and carried > 0

    def moved(each: BrokerUsage) -> BrokerUsage:
        if each.broker not in {move.source, move.target}:
            return each
        sign = 1 if each.broker == move.target else -1
        percent, below, above = each.percent + sign * carried, each.below, each.above
        if sign < 0:
            above += carried if hidden else doubt
        else:
            below += doubt + max(0.0, percent - max(each.percent, 100.0))
            above += untold + (max(0.0, source.percent - percent) if hidden else 0.0)
        return msgspec.structs.replace(
            each,
            percent=percent,
            bytes=max(0.0, each.bytes + sign * move.bytes),
            messages=max(0.0, each.messages + sign * move.messages),
            below=below,
            above=above,
        )

    return tuple(moved(each) for each in usages)


class AntiAffinityGroup(msgspec.Struct, frozen=True, kw_only=True):
    """The anti-affinity group of a namespace: brokers place its namespaces apart.

    Attributes:
        group: Its name.
        others: Number of the group's other namespaces with a bundle on each active broker, by broker.
    """

    group: str
    others: dict[str, int]
