"""The brokers' own load manager: the figures that its shedding uses, and whether it would move a bundle away again.

Read in apache/pulsar (4.0, 4.2) and tried on real brokers (docs/pulsar-behaviour.md, Load managers). A shedding
strategy compares one figure of each broker, its *usage*: the highest of its resources' usages in percent, each times
its weight. Pulsar's strategies never shed the bundles of brokers' heartbeats. The extensible manager never sheds those
of ``pulsar/system``; the modular one sheds them last, as it begins with the bundle of most throughput.

A moved bundle's share of its source's throughput is also taken as its share of the source's usage, as strategies do.
They compare averages over some minutes: so they act later than these rules, but with the same result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.model.broker_defaults import EXTENSIBLE, HISTORY, LIMITS, RESOURCES, THROUGHPUT, WEIGHTS
from pulsar_steward.model.bundles import TC_NAMESPACE
from pulsar_steward.model.units import MIB, throughput_in_words

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

PULSARS_OWN = "org.apache.pulsar."

_MARGIN_PERCENT = 5.0
"""Percent that `ThresholdShedder` sheds in addition to the excess."""

_KEPT_OF_EXCHANGE = 0.75
"""Maximum share of its throughput that `TransferShedder` leaves a broker that exchanges a bundle for smaller ones."""

MANAGER_UNKNOWN = Unknown("whether the brokers' own shedding is on is not known (loadBalancerSheddingEnabled)")
USAGES_UNKNOWN = Unknown("the usage that the brokers' own shedding compares is not known of every broker")
THROUGHPUT_UNKNOWN = Unknown("the bundle's throughput is not known, by which the brokers' own shedding goes")


class LoadManager(msgspec.Struct, frozen=True, kw_only=True):
    """The load manager, from the brokers' configuration.

    Attributes:
        name: Its class, without the package.
        strategy: Class of its shedding strategy; empty: shedding is off.
        excluded: Namespaces, besides Pulsar's own, with bundles that it never sheds.
        transfers: True if it chooses the new broker of a shed bundle, and so may exchange bundles of two brokers.
        weights: Weights of resources, by series.
        limits: The strategy's thresholds, by setting.
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
    def sheds(self) -> bool:
        """True if its shedding is on."""
        return bool(self.strategy)

    def sheds_from(self, namespace: str) -> bool:
        """True if it may unload bundles of a namespace; a strategy that is not Pulsar's may unload any."""
        own = namespace == TC_NAMESPACE or namespace in self.excluded
        return self.sheds and not (own and self.strategy.startswith(PULSARS_OWN))


class BrokerUsage(msgspec.Struct, frozen=True, kw_only=True):
    """Usage of one broker, as shedding compares it.

    Attributes:
        broker: ``host:webport``.
        percent: Usage of its most used resource, times the resource's weight.
        bytes: Throughput in and out, in bytes per second.
    """

    broker: str
    percent: float
    bytes: float


class BundleMove(msgspec.Struct, frozen=True, kw_only=True):
    """A move in terms of shedding: brokers, and the bundle's throughput in and out, in bytes per second."""

    source: str
    target: str
    bytes: float


def load_manager_of(settings: Mapping[str, str]) -> LoadManager | Unknown:
    """The load manager of a broker with these settings; `Unknown` if they do not tell whether it sheds."""
    shedding = settings.get("loadBalancerSheddingEnabled")
    if shedding not in {"true", "false"}:
        return MANAGER_UNKNOWN
    name = settings.get("loadManagerClassName", "").rpartition(".")[2]
    if shedding == "false" or settings.get("loadBalancerEnabled", "true") == "false":
        return LoadManager(name=name)
    try:
        weights = {series: float(settings.get(key, WEIGHTS[key])) for series, key in RESOURCES.items()}
        limits = {key: float(settings.get(key, usual)) for key, usual in LIMITS.items()}
    except ValueError as error:
        return Unknown(f"by which thresholds the brokers' own shedding goes is not known: {error}")
    excluded = settings.get("loadBalancerSheddingExcludedNamespaces", "").strip("[] ") if name == EXTENSIBLE else ""
    return LoadManager(
        name=name,
        strategy=_strategy(name, settings.get("loadBalancerLoadSheddingStrategy", "")),
        excluded=frozenset(each.strip() for each in excluded.split(",") if each.strip()),
        transfers=settings.get("loadBalancerTransferEnabled", "true") == "true",
        weights=weights,
        limits=limits,
    )


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
    throughput: dict[str, float] = {}
    for series, feature, value in samples:
        if series in RESOURCES:
            resources[series] = max(value, 0.0)
        elif series in THROUGHPUT:
            throughput[series] = throughput.get(series, 0.0) + value
        elif series == HISTORY and feature == "max_ema":
            history = 100 * value
    if len(throughput) < len(THROUGHPUT):
        return None
    flow = sum(throughput.values())
    if manager.name == EXTENSIBLE:
        return None if history is None else BrokerUsage(broker=broker, percent=history, bytes=flow)
    if len(resources) < len(RESOURCES):
        return None
    weights = _weights(manager)
    percent = max(resources[series] * weights[series] for series in RESOURCES)
    return BrokerUsage(broker=broker, percent=percent, bytes=flow)


def _weights(manager: LoadManager) -> Mapping[str, float]:
    """Weights of resources; `OverloadShedder` ignores them and uses every resource except the heap."""
    if manager.strategy.endswith(".OverloadShedder"):
        return {series: 0.0 if series == "pulsar_lb_memory_usage" else 1.0 for series in RESOURCES}
    return manager.weights


def after_move(usages: Collection[BrokerUsage], move: BundleMove) -> tuple[BrokerUsage, ...]:
    """Usages after a bundle's move."""
    source = next((each for each in usages if each.broker == move.source), None)
    share = min(1.0, move.bytes / source.bytes) if source is not None and source.bytes > 0 else 0.0
    carried = source.percent * share if source is not None else 0.0

    def moved(each: BrokerUsage) -> BrokerUsage:
        sign = {move.source: -1, move.target: 1}.get(each.broker, 0)
        return BrokerUsage(
            broker=each.broker, percent=each.percent + sign * carried, bytes=max(0.0, each.bytes + sign * move.bytes)
        )

    return tuple(moved(each) for each in usages)


def why_shed(manager: LoadManager, usages: Collection[BrokerUsage], target: str) -> str | Unknown | None:
    """Reason why a strategy would shed bundles from a broker, with its figures; None: it would not.

    Args:
        manager: The load manager, with shedding on.
        usages: Usages of all brokers after the move.
        target: The broker with the bundle after the move.
    """
    there = next((each for each in usages if each.broker == target), None)
    if there is None:
        return USAGES_UNKNOWN
    mean = sum(each.percent for each in usages) / len(usages)
    match manager.strategy_name if manager.strategy.startswith(PULSARS_OWN) else "":
        case "ThresholdShedder":
            return _by_threshold(manager, there, mean)
        case "OverloadShedder":
            return _by_overload(manager, there)
        case "TransferShedder":
            return _by_deviation(manager, usages, there, mean)
    return Unknown(f"by which rule the brokers' own shedding ({manager.strategy}) goes is not known")


def _by_threshold(manager: LoadManager, there: BrokerUsage, mean: float) -> str | None:
    key = "loadBalancerBrokerThresholdShedderPercentage"
    threshold, least = manager.limits[key], manager.limits["loadBalancerBundleUnloadMinThroughputThreshold"] * MIB
    over = there.percent - mean - threshold
    if over < 0 or there.bytes * (over + _MARGIN_PERCENT) / 100 < least:
        return None
    return (
        f"ThresholdShedder takes from a broker whose usage is {threshold:,.1f} points or more above the mean ({key}),"
        f" and {there.broker} would be at {there.percent:,.1f} %, the mean {mean:,.1f} %"
    )


def _by_overload(manager: LoadManager, there: BrokerUsage) -> str | None:
    key = "loadBalancerBrokerOverloadedThresholdPercentage"
    if there.percent < manager.limits[key]:
        return None
    return (
        f"OverloadShedder takes from a broker whose usage is {manager.limits[key]:,.1f} % or more ({key}), and"
        f" {there.broker} would be at {there.percent:,.1f} %"
    )


def _by_deviation(manager: LoadManager, usages: Collection[BrokerUsage], there: BrokerUsage, mean: float) -> str | None:
    """Reason for a broker above the mean, while the strategy transfers at all; else None."""
    why = _why_transferred(manager, usages, mean)
    if why is None or there.percent <= mean:
        return None
    return (
        f"TransferShedder takes from brokers above the mean, as {why}, and {there.broker} would be at"
        f" {there.percent:,.1f} %, the mean {mean:,.1f} %"
    )


def _why_transferred(manager: LoadManager, usages: Collection[BrokerUsage], mean: float) -> str | None:
    """Reason why `TransferShedder` acts: uneven usages, an overloaded or a nearly idle broker; None: it does not."""
    key = "loadBalancerBrokerLoadTargetStd"
    target, overloaded = 100 * manager.limits[key], manager.limits["loadBalancerBrokerOverloadedThresholdPercentage"]
    deviation = (sum((each.percent - mean) ** 2 for each in usages) / len(usages)) ** 0.5
    least, most = min(usages, key=lambda each: each.percent), max(usages, key=lambda each: each.percent)
    little = min(0.5, max(0.0, manager.limits[key] / 2))
    if deviation > target:
        return f"usages would deviate by {deviation:,.1f} points, more than {target:,.1f} ({key})"
    if most.percent > overloaded and most.percent > mean + target:
        return f"{most.broker} would be at {most.percent:,.1f} %, more than {overloaded:,.1f} %"
    if least.percent < mean * little or least.bytes < most.bytes * little:
        return (
            f"{least.broker} would have {least.percent:,.1f} % and {throughput_in_words(int(least.bytes))}, hardly"
            f" anything beside {most.broker} with {throughput_in_words(int(most.bytes))}"
        )
    return None


def may_exchange(manager: LoadManager, usages: Collection[BrokerUsage], move: BundleMove) -> str | None:
    """The broker that might get the bundle in exchange for a larger one; None: no broker would.

    `TransferShedder` pairs the fullest broker with the emptiest, the second fullest with the second emptiest, etc. A
    bundle of the fuller broker may have too much throughput to even out the two. Then the strategy looks for smaller
    bundles of the emptier broker to give in return. Afterwards the fuller broker has less than three quarters of its
    throughput, and no less than the other one (apache/pulsar, `TransferShedder.findBundlesForUnloading`). The sizes of
    the fuller broker's bundles are not read: the result tells if a bundle of any size could be exchanged.

    Args:
        manager: The load manager, with shedding on.
        usages: Usages of all brokers after the move.
        move: The move.
    """
    own = manager.strategy.startswith(PULSARS_OWN)
    if not own or manager.strategy_name != "TransferShedder" or not manager.transfers:
        return None
    if _why_transferred(manager, usages, sum(each.percent for each in usages) / len(usages)) is None:
        return None
    ranked = sorted(usages, key=lambda each: each.percent)
    for emptier, fuller in zip(ranked, reversed(ranked), strict=True):
        if emptier.broker == move.target and emptier.percent < fuller.percent:
            smaller = move.bytes < _KEPT_OF_EXCHANGE * fuller.bytes
            return fuller.broker if smaller and emptier.bytes < fuller.bytes / 2 else None
    return None


class AntiAffinityGroup(msgspec.Struct, frozen=True, kw_only=True):
    """The anti-affinity group of a namespace: brokers place its namespaces apart.

    Attributes:
        group: Its name.
        others: Number of the group's other namespaces with a bundle on each active broker, by broker.
    """

    group: str
    others: dict[str, int]
