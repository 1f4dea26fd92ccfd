"""Rules of the brokers' own load shedding: what would be taken from a broker, and whether a move would be undone.

Read in apache/pulsar (2.10.4 to 5.0.1). `ThresholdShedder`, `TransferShedder`, `UniformLoadShedder` and, but for who
receives, `AvgShedder` were watched on real brokers (docs/pulsar-behaviour.md, Load managers). Pulsar's strategies
never shed the bundles of brokers' heartbeats. The extensible manager never sheds those of ``pulsar/system``; the
modular one sheds them last, as it begins with the bundle of most traffic.

Brokers do not report the averages and counters that strategies keep. So these rules go by the figures of one moment:
a strategy acts later, but with the same result while the figures last.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Literal

import msgspec

from pulsar_steward.facts.load_manager import USAGES_UNKNOWN
from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.model.broker_defaults import APART, LEAST_BYTES, LEAST_MESSAGES, UNLOADED_SHARE
from pulsar_steward.model.units import MIB, throughput_in_words

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from pulsar_steward.facts.load_manager import BrokerUsage, BundleMove, LoadManager, Traffic

_MARGIN_PERCENT = 5.0
"""Percent that `ThresholdShedder` and `OverloadShedder` shed in addition to the excess."""

_KEPT_OF_EXCHANGE = 0.75
"""Maximum share of its throughput that `TransferShedder` leaves a broker that exchanges a bundle for smaller ones."""

_ALIKE_POINTS = 1.0
"""`AvgShedder` takes usages that differ by less for equal, and ranks them in any order."""

_SLACK = 1000.0
"""Traffic by which a bundle may exceed what `UniformLoadShedder` has left to take."""

_NOTHING = 1e-6
"""Traffic up to which `UniformLoadShedder` takes a broker for idle, and reckons with 1."""

Unit = Literal["bytes", "messages"]


class Takes(Enum):
    """Which bundles of a broker a strategy takes."""

    ANY = "any"
    """In no order that is known."""
    LARGEST = "largest"
    """Those of most traffic, until it is enough."""
    FITTING = "fitting"
    """Those of most traffic first, if each fits into the traffic that is left to take."""


class Shed(msgspec.Struct, frozen=True, kw_only=True):
    """What a strategy would take from one broker.

    Attributes:
        source: The broker.
        why: The reason, with its figures.
        target: The broker that is to have it; None: the placement strategy chooses.
        likely: False: the two are paired only if the strategy ranks brokers of nearly the same usage so.
        takes: Which of its bundles.
        unit: By which traffic bundles are compared.
        amount: Traffic to take, per second.
        slack: Traffic by which a fitting bundle may exceed what is left.
        idle: True if bundles without traffic are taken too.
        most_bundles: Number of bundles at most; None: any.
        rounds: Rounds of shedding, at most, until it acts; at least 1. None: not known.
    """

    source: str
    why: str
    target: str | None = None
    likely: bool = True
    takes: Takes = Takes.ANY
    unit: Unit = "bytes"
    amount: float = 0.0
    slack: float = 0.0
    idle: bool = True
    most_bundles: int | None = None
    rounds: int | None = None

    def may_take(self, traffic: Traffic) -> bool:
        """True if it might take a bundle with this traffic, whatever else the broker has."""
        return self.takes is not Takes.FITTING or self._fits(getattr(traffic, self.unit), self.amount)

    def bundles(self, owned: Mapping[str, Traffic]) -> tuple[str, ...]:
        """The bundles that it takes next, in this order; none where it takes any, in no order that is known.

        Args:
            owned: Traffic of the broker's bundles by name, without heartbeats.
        """
        if self.takes is Takes.ANY:
            return ()
        taken: list[str] = []
        left = self.amount
        traffic = {name: float(getattr(each, self.unit)) for name, each in owned.items()}
        for name in sorted(traffic, key=lambda each: (-traffic[each], each)):
            enough = bool(taken) and left <= 0 and self.takes is Takes.LARGEST
            if enough or len(taken) == self.most_bundles:
                break
            if self.takes is Takes.LARGEST or self._fits(traffic[name], left):
                taken.append(name)
                left -= traffic[name]
        return tuple(taken)

    def _fits(self, traffic: float, left: float) -> bool:
        return traffic <= left + self.slack and (self.idle or traffic > 0)


def sheds(manager: LoadManager, usages: Collection[BrokerUsage]) -> tuple[Shed, ...] | Unknown:
    """What the strategy would take next, by the figures of this moment.

    Args:
        manager: The load manager, with shedding on.
        usages: Usages of all brokers.
    """
    found: list[Shed] = []
    for each in sorted(usages, key=lambda usage: usage.broker):
        taken = _sheds_from(manager, usages, each)
        if isinstance(taken, Unknown):
            return taken
        found += (shed for shed in taken if shed.likely)
    return tuple(found)


def sheds_from(manager: LoadManager, usages: Collection[BrokerUsage], broker: str) -> tuple[Shed, ...] | Unknown:
    """What the strategy would or might take from a broker: one `Shed` for each broker that may be its partner.

    Args:
        manager: The load manager, with shedding on.
        usages: Usages of all brokers.
        broker: The broker.
    """
    there = next((each for each in usages if each.broker == broker), None)
    return USAGES_UNKNOWN if there is None else _sheds_from(manager, usages, there)


def _sheds_from(
    manager: LoadManager, usages: Collection[BrokerUsage], there: BrokerUsage
) -> tuple[Shed, ...] | Unknown:
    mean = sum(each.percent for each in usages) / len(usages)
    match manager.rule:
        case "ThresholdShedder":
            return tuple(_by_threshold(manager, there, mean))
        case "OverloadShedder":
            return tuple(_by_overload(manager, there))
        case "TransferShedder":
            return tuple(_by_deviation(manager, usages, there, mean))
        case "AvgShedder":
            return tuple(_by_pairs(manager, usages, there))
        case "UniformLoadShedder":
            return tuple(_by_difference(manager, usages, there))
    return Unknown(f"by which rule the brokers' own shedding ({manager.strategy}) goes is not known")


def _by_threshold(manager: LoadManager, there: BrokerUsage, mean: float) -> Iterator[Shed]:
    key = "loadBalancerBrokerThresholdShedderPercentage"
    threshold, least = manager.limits[key], manager.limits["loadBalancerBundleUnloadMinThroughputThreshold"] * MIB
    over = there.percent - mean - threshold
    amount = there.bytes * (over + _MARGIN_PERCENT) / 100
    if over >= 0 and amount >= least:
        why = (
            f"ThresholdShedder takes from a broker whose usage is {threshold:,.1f} points or more above the mean"
            f" ({key}), and {there.broker} would be at {there.percent:,.1f} %, the mean {mean:,.1f} %"
        )
        yield Shed(source=there.broker, why=why, takes=Takes.LARGEST, amount=amount)


def _by_overload(manager: LoadManager, there: BrokerUsage) -> Iterator[Shed]:
    key = "loadBalancerBrokerOverloadedThresholdPercentage"
    over = there.percent - manager.limits[key]
    if over >= 0:
        why = (
            f"OverloadShedder takes from a broker whose usage is {manager.limits[key]:,.1f} % or more ({key}), and"
            f" {there.broker} would be at {there.percent:,.1f} %"
        )
        amount = there.bytes * (over + _MARGIN_PERCENT) / 100
        yield Shed(source=there.broker, why=why, takes=Takes.LARGEST, amount=amount)


def _by_deviation(
    manager: LoadManager, usages: Collection[BrokerUsage], there: BrokerUsage, mean: float
) -> Iterator[Shed]:
    """From any broker above the mean, while the strategy transfers at all."""
    acts = _why_transferred(manager, usages, mean)
    if acts is not None and there.percent > mean:
        why = (
            f"TransferShedder takes from brokers above the mean, as {acts}, and {there.broker} would be at"
            f" {there.percent:,.1f} %, the mean {mean:,.1f} %"
        )
        yield Shed(source=there.broker, why=why)


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


def _by_pairs(manager: LoadManager, usages: Collection[BrokerUsage], there: BrokerUsage) -> Iterator[Shed]:
    """`AvgShedder`: the fullest broker is paired with the emptiest, the second fullest with the second emptiest, etc.

    A pair that is far enough apart is counted in each round of shedding. Once a count is reached, the fuller one gives
    a part of what their traffic differs by: of messages, or of bytes where messages differ by too little.
    """
    low, high = manager.limits[APART], manager.limits["loadBalancerAvgShedderHighThreshold"]
    many, few = (manager.limits[f"loadBalancerAvgShedderHitCount{name}Threshold"] for name in ("Low", "High"))
    minutes = manager.limits["loadBalancerSheddingIntervalMinutes"]
    for partner, likely in _partners(usages, there):
        apart = there.percent - partner.percent
        part = _part(manager, there, partner) if apart >= low else None
        if part is None:
            continue
        unit, amount = part
        rounds = max(1, int(min(many, few) if apart >= high else many))
        after = "1 round" if rounds == 1 else f"1 to {rounds:,} rounds"
        pair = "" if likely else ", which may be its partner,"
        why = (
            f"AvgShedder takes from the fuller of two brokers that are {low:,.1f} points or more apart ({APART}), and"
            f" {there.broker} would be at {there.percent:,.1f} %, {partner.broker}{pair} at {partner.percent:,.1f} %;"
            f" bundles of up to {_words(unit, amount)} go there after {after} ({minutes:,.0f} min each)"
        )
        yield Shed(
            source=there.broker,
            why=why,
            target=partner.broker,
            likely=likely,
            takes=Takes.FITTING,
            unit=unit,
            amount=amount,
            idle=False,
            rounds=rounds,
        )


def _part(manager: LoadManager, fuller: BrokerUsage, emptier: BrokerUsage) -> tuple[Unit, float] | None:
    """Traffic that `AvgShedder` moves between two brokers, and its unit; None: too little."""
    share = manager.limits[UNLOADED_SHARE]
    messages, flow = (fuller.messages - emptier.messages) * share, (fuller.bytes - emptier.bytes) * share
    if messages > manager.limits[LEAST_MESSAGES]:
        return "messages", messages
    return ("bytes", flow) if flow > manager.limits[LEAST_BYTES] else None


def _partners(usages: Collection[BrokerUsage], there: BrokerUsage) -> Iterator[tuple[BrokerUsage, bool]]:
    """Brokers that a broker may be paired with as the fuller one; True: by the exact order of usages.

    Brokers whose usages follow each other within a point may be ranked in any order.
    """
    ranked = sorted(usages, key=lambda each: (each.percent, each.broker))
    alike = _alike(ranked)
    last = len(ranked) - 1
    own = ranked.index(there)
    possible = dict.fromkeys(
        place
        for rank in (own, *alike[own])
        for place in (last - rank, *alike[last - rank])
        if place != own and last - rank < rank
    )
    for place in possible:
        yield ranked[place], place == last - own


def _alike(ranked: Sequence[BrokerUsage]) -> list[range]:
    """For each place, the places of the brokers that may as well have it."""
    alike: list[range] = []
    start = 0
    for place in range(1, len(ranked) + 1):
        if place == len(ranked) or ranked[place].percent - ranked[place - 1].percent >= _ALIKE_POINTS:
            alike += [range(start, place)] * (place - start)
            start = place
    return alike


def _by_difference(manager: LoadManager, usages: Collection[BrokerUsage], there: BrokerUsage) -> Iterator[Shed]:
    """`UniformLoadShedder`: from the broker of most traffic, if that of least has far less; messages come first."""
    found = _too_different(manager, usages)
    if found is None:
        return
    unit, most, least, condition = found
    amount = float(int((most - least) * manager.limits[UNLOADED_SHARE]))
    minimum = manager.limits[LEAST_MESSAGES if unit == "messages" else LEAST_BYTES]
    if amount < minimum or getattr(there, unit) < most:
        return
    cap = int(manager.limits["maxUnloadBundleNumPerShedding"])
    why = (
        f"UniformLoadShedder takes from the broker of most traffic {condition}, and {there.broker} would have"
        f" {_words(unit, most)}, the least {_words(unit, least)}; bundles of up to {_words(unit, amount + _SLACK)} go"
        " wherever the placement strategy has them"
    )
    yield Shed(
        source=there.broker,
        why=why,
        takes=Takes.FITTING,
        unit=unit,
        amount=amount,
        slack=_SLACK,
        most_bundles=None if cap < 0 else cap,
    )


def _too_different(manager: LoadManager, usages: Collection[BrokerUsage]) -> tuple[Unit, float, float, str] | None:
    """Unit, most and least traffic of a broker, and the condition that is met; None: none is."""
    by_messages = "loadBalancerMsgRateDifferenceShedderThreshold"
    by_bytes = "loadBalancerMsgThroughputMultiplierDifferenceShedderThreshold"
    more, times = manager.limits[by_messages], manager.limits[by_bytes]
    rates, flows = [each.messages for each in usages], [each.bytes for each in usages]
    least_rate, least_flow = (1.0 if min(each) <= _NOTHING else min(each) for each in (rates, flows))
    if more > 0 and (max(rates) - least_rate) * 100 > more * least_rate:
        return "messages", max(rates), least_rate, f"if that is {more:,.0f} % above the least ({by_messages})"
    if times > 0 and max(flows) > times * least_flow:
        return "bytes", max(flows), least_flow, f"if that is {times:,.1f} times the least ({by_bytes})"
    return None


def _words(unit: Unit, traffic: float) -> str:
    return throughput_in_words(traffic) if unit == "bytes" else f"{traffic:,.0f} messages/s"


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
    if manager.rule != "TransferShedder" or not manager.transfers:
        return None
    if _why_transferred(manager, usages, sum(each.percent for each in usages) / len(usages)) is None:
        return None
    ranked = sorted(usages, key=lambda each: each.percent)
    for emptier, fuller in zip(ranked, reversed(ranked), strict=True):
        if emptier.broker == move.target and emptier.percent < fuller.percent:
            smaller = move.bytes < _KEPT_OF_EXCHANGE * fuller.bytes
            return fuller.broker if smaller and emptier.bytes < fuller.bytes / 2 else None
    return None
