"""Rules of the brokers' own load shedding: what would be taken from a broker, and whether a move would be undone.

Read in apache/pulsar (2.10.4 to 5.0.1). `ThresholdShedder`, `TransferShedder`, `UniformLoadShedder` and, but for who
receives, `AvgShedder` were watched on real brokers (docs/pulsar-behaviour.md, Load managers). Pulsar's strategies
never shed the bundles of brokers' heartbeats. The extensible manager never sheds those of ``pulsar/system``; the
modular one sheds them last, as it begins with the bundle of most traffic.

Brokers do not report the averages and counters that strategies keep. So these rules go by the figures of one moment:
a strategy acts later, but with the same result while the figures last. Figures move between a look and the call, and a
move's own share of a usage is an estimate: `sheds_from` can also go by the worst that they may be then.
"""

from __future__ import annotations

from enum import Enum
from math import inf
from typing import TYPE_CHECKING, Literal

import msgspec

from pulsar_steward.facts.load_manager import USAGES_UNKNOWN, BrokerUsage
from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.model.broker_defaults import APART, LEAST_BYTES, LEAST_MESSAGES, LOWER_BOUNDARY, UNLOADED_SHARE
from pulsar_steward.model.units import MIB, throughput_in_words

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from pulsar_steward.facts.load_manager import BundleMove, LoadManager, Traffic

POINTS = 2.0
"""Points of usage by which a broker's figure may move between the look and the call."""

PART = 0.1
"""Part of a traffic by which it may."""

_MARGIN_PERCENT = 5.0
"""Percent that `ThresholdShedder` and `OverloadShedder` shed in addition to the excess."""

_LOWER_PART = 0.5
"""Part of the threshold that `ThresholdShedder` sheds where a broker has far too little."""

_KEPT_OF_EXCHANGE = 0.75
"""Maximum share of its throughput that `TransferShedder` leaves a broker that exchanges a bundle for smaller ones."""

_ALIKE_POINTS = 1.0
"""`AvgShedder` takes usages that differ by less for equal, and ranks them in any order."""

_SLACK = 1000.0
"""Traffic by which a bundle may exceed what `UniformLoadShedder` has left to take, before 4.2."""

_NOTHING = 1e-6
"""Traffic up to which `UniformLoadShedder` takes a broker for idle, and reckons with 1."""

_MOST_INTEGER = float(2**31 - 1)
"""Most that `UniformLoadShedder` reckons as the least traffic of a broker, and as what it takes."""

Unit = Literal["bytes", "messages"]
_UNITS: tuple[tuple[Unit, str], ...] = (("messages", LEAST_MESSAGES), ("bytes", LEAST_BYTES))
"""Units in which strategies compare brokers, the first one first, and the setting of the least that is worth a move."""


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


class _Look(msgspec.Struct, frozen=True, kw_only=True):
    """Usages of all brokers, for what a strategy would take from one of them.

    Attributes:
        told: Usages as brokers tell them, the least first.
        usages: The same; at worst the broker has more, and all others have less.
        there: The broker that is looked at, as it is in `usages`.
        room: Points by which usages may move.
        part: Part of their traffic by which figures may move.
    """

    told: tuple[BrokerUsage, ...]
    usages: tuple[BrokerUsage, ...]
    there: BrokerUsage
    room: float = 0.0
    part: float = 0.0

    @property
    def mean(self) -> float:
        return sum(each.percent for each in self.usages) / len(self.usages)


def _look(usages: Collection[BrokerUsage], broker: str, *, at_worst: bool) -> _Look | None:
    told = tuple(sorted(usages, key=lambda each: (each.percent, each.broker)))
    seen = tuple(_at_worst(each, more=each.broker == broker) for each in told) if at_worst else told
    there = next((each for each in seen if each.broker == broker), None)
    if there is None:
        return None
    room = POINTS + max(max(each.above, each.below) for each in told) if at_worst else 0.0
    return _Look(told=told, usages=seen, there=there, room=room, part=PART if at_worst else 0.0)


def _at_worst(usage: BrokerUsage, *, more: bool) -> BrokerUsage:
    percent = usage.percent + (usage.above + POINTS if more else -usage.below - POINTS)
    times = 1 + PART if more else 1 - PART
    return msgspec.structs.replace(
        usage, percent=max(0.0, percent), bytes=usage.bytes * times, messages=usage.messages * times
    )


def sheds(manager: LoadManager, usages: Collection[BrokerUsage]) -> tuple[Shed, ...] | Unknown:
    """What the strategy would take next, by the figures of this moment.

    Args:
        manager: The load manager, with shedding on.
        usages: Usages of all brokers.
    """
    found: list[Shed] = []
    for broker in sorted(each.broker for each in usages):
        if isinstance(taken := sheds_from(manager, usages, broker), Unknown):
            return taken
        found += taken
    return tuple(found)


def sheds_from(
    manager: LoadManager, usages: Collection[BrokerUsage], broker: str, *, at_worst: bool = False
) -> tuple[Shed, ...] | Unknown:
    """What the strategy would take from a broker.

    Args:
        manager: The load manager, with shedding on.
        usages: Usages of all brokers.
        broker: The broker.
        at_worst: True: all that it might take by the worst that figures may be at the call, one `Shed` for each broker
            that may be its partner, and for each unit by which bundles may be compared.
    """
    look, rule = _look(usages, broker, at_worst=at_worst), _RULES.get(manager.rule)
    if rule is None:
        return Unknown(f"by which rule the brokers' own shedding ({manager.strategy}) goes is not known")
    return USAGES_UNKNOWN if look is None else tuple(rule(manager, look))


def _by_threshold(manager: LoadManager, look: _Look) -> Iterator[Shed]:
    """From brokers far above the mean; from the fullest one, if that is set and another is far below the mean."""
    key, there, mean = "loadBalancerBrokerThresholdShedderPercentage", look.there, look.mean
    threshold, least = manager.limits[key], manager.limits["loadBalancerBundleUnloadMinThroughputThreshold"] * MIB
    over, lower = there.percent - mean - threshold, there.bytes * threshold * _LOWER_PART / 100
    emptiest, fullest = look.usages[0], max(each.percent for each in look.usages)
    words = f"({key}), and {there.broker} would be at {there.percent:,.1f} %, the mean {mean:,.1f} %"
    if over >= 0 and (amount := _beyond(there, over)) >= least:
        why = f"ThresholdShedder takes from a broker whose usage is {threshold:,.1f} points or more above the mean"
        yield Shed(source=there.broker, why=f"{why} {words}", takes=Takes.LARGEST, amount=amount)
    elif (
        manager.limits[LOWER_BOUNDARY]
        and emptiest.percent < mean - threshold + 2 * look.room
        and there.percent >= fullest
        and lower >= least
    ):
        why = (
            f"ThresholdShedder takes from the fullest broker while another is more than {threshold:,.1f} points below"
            f" the mean and {LOWER_BOUNDARY} is on"
        )
        words += f", {emptiest.broker} at {emptiest.percent:,.1f} %"
        yield Shed(source=there.broker, why=f"{why} {words}", takes=Takes.LARGEST, amount=lower)


def _by_overload(manager: LoadManager, look: _Look) -> Iterator[Shed]:
    key, there = "loadBalancerBrokerOverloadedThresholdPercentage", look.there
    over = there.percent - manager.limits[key]
    if over >= 0:
        why = (
            f"OverloadShedder takes from a broker whose usage is {manager.limits[key]:,.1f} % or more ({key}), and"
            f" {there.broker} would be at {there.percent:,.1f} %"
        )
        yield Shed(source=there.broker, why=why, takes=Takes.LARGEST, amount=_beyond(there, over))


def _beyond(usage: BrokerUsage, points: float) -> float:
    """Traffic to take from a broker that is so many points over a limit."""
    return usage.bytes * (points + _MARGIN_PERCENT) / 100


def _by_deviation(manager: LoadManager, look: _Look) -> Iterator[Shed]:
    """From any broker above the mean, while the strategy transfers at all."""
    acts, there, mean = _why_transferred(manager, look.told, look.room), look.there, look.mean
    if acts is not None and there.percent > mean:
        why = (
            f"TransferShedder takes from brokers above the mean, as {acts}, and {there.broker} would be at"
            f" {there.percent:,.1f} %, the mean {mean:,.1f} %"
        )
        yield Shed(source=there.broker, why=why)


def _why_transferred(manager: LoadManager, usages: Collection[BrokerUsage], room: float = 0.0) -> str | None:
    """Reason why `TransferShedder` acts: uneven usages, an overloaded or a nearly idle broker; None: it does not.

    Args:
        manager: The load manager.
        usages: Usages of all brokers.
        room: Points by which each may be more or less; so much do the mean and the deviation move at most.
    """
    key = "loadBalancerBrokerLoadTargetStd"
    mean = sum(each.percent for each in usages) / len(usages)
    target, overloaded = 100 * manager.limits[key], manager.limits["loadBalancerBrokerOverloadedThresholdPercentage"]
    deviation = room + (sum((each.percent - mean) ** 2 for each in usages) / len(usages)) ** 0.5
    emptiest, fullest = min(usages, key=lambda each: each.percent), max(usages, key=lambda each: each.percent)
    least, most = max(0.0, emptiest.percent - room), fullest.percent + room
    little = min(0.5, max(0.0, manager.limits[key] / 2))
    times = (1 + PART) / (1 - PART) if room else 1.0
    if deviation > target:
        return f"usages would deviate by {deviation:,.1f} points, more than {target:,.1f} ({key})"
    if most > overloaded and most > mean - room + target:
        return f"{fullest.broker} would be at {most:,.1f} %, more than {overloaded:,.1f} %"
    if least < (mean + room) * little or emptiest.bytes < fullest.bytes * times * little:
        return (
            f"{emptiest.broker} would have {least:,.1f} % and {throughput_in_words(int(emptiest.bytes))}, hardly"
            f" anything beside {fullest.broker} with {throughput_in_words(int(fullest.bytes))}"
        )
    return None


def _by_pairs(manager: LoadManager, look: _Look) -> Iterator[Shed]:
    """`AvgShedder`: the fullest broker is paired with the emptiest, the second fullest with the second emptiest, etc.

    A pair that is far enough apart is counted in each round of shedding. Once a count is reached, the fuller one gives
    a part of what their traffic differs by: of messages, or of bytes where messages differ by too little.
    """
    there = look.there
    low, high = manager.limits[APART], manager.limits["loadBalancerAvgShedderHighThreshold"]
    many, few = (manager.limits[f"loadBalancerAvgShedderHitCount{name}Threshold"] for name in ("Low", "High"))
    minutes = manager.limits["loadBalancerSheddingIntervalMinutes"]
    for partner in _partners(look):
        apart = there.percent - partner.percent
        if apart < low:
            continue
        rounds = max(1, int(min(many, few) if apart >= high else many))
        after = "1 round" if rounds == 1 else f"1 to {rounds:,} rounds"
        pair = ", which may be its partner," if look.part else ""
        for unit, amount in _parts(manager, look, partner):
            why = (
                f"AvgShedder takes from the fuller of two brokers that are {low:,.1f} points or more apart ({APART}),"
                f" and {there.broker} would be at {there.percent:,.1f} %, {partner.broker}{pair} at"
                f" {partner.percent:,.1f} %; bundles of up to {_words(unit, amount)} go there after {after}"
                f" ({minutes:,.0f} min each)"
            )
            yield Shed(
                source=there.broker,
                why=why,
                target=partner.broker,
                takes=Takes.FITTING,
                unit=unit,
                amount=amount,
                idle=False,
                rounds=rounds,
            )


def _parts(manager: LoadManager, look: _Look, partner: BrokerUsage) -> Iterator[tuple[Unit, float]]:
    """Traffic that `AvgShedder` moves to the partner, and its unit; both units where either may be it."""
    told, share = {each.broker: each for each in look.told}, manager.limits[UNLOADED_SHARE]
    for unit, key in _UNITS:
        amount = (getattr(look.there, unit) - getattr(partner, unit)) * share
        if amount > manager.limits[key]:
            yield unit, amount / (1 - look.part)
        more, less = getattr(told[look.there.broker], unit), getattr(told[partner.broker], unit)
        if (more * (1 - look.part) - less * (1 + look.part)) * share > manager.limits[key]:
            return


def _partners(look: _Look) -> Iterator[BrokerUsage]:
    """Brokers that a broker may be paired with as the fuller one; at worst in any order of those that are alike."""
    last, room = len(look.told) - 1, 2 * look.room + _ALIKE_POINTS if look.room else 0.0
    groups = [0]
    for place in range(1, last + 1):
        alike = look.told[place].percent - look.told[place - 1].percent < room
        groups.append(groups[-1] if alike else place)
    own = look.usages.index(look.there)
    mates = {groups[last - rank] for rank in range(last // 2 + 1, last + 1) if groups[rank] == groups[own]}
    for place, partner in enumerate(look.usages):
        if place != own and groups[place] in mates:
            yield partner


def _by_difference(manager: LoadManager, look: _Look) -> Iterator[Shed]:
    """`UniformLoadShedder`: from the broker of most traffic, if that of least has far less; messages come first."""
    by_messages = "loadBalancerMsgRateDifferenceShedderThreshold"
    by_bytes = "loadBalancerMsgThroughputMultiplierDifferenceShedderThreshold"
    more, times = manager.limits[by_messages], manager.limits[by_bytes]
    cap = int(manager.limits["maxUnloadBundleNumPerShedding"])
    factors = {"messages": 1 + more / 100 if more > 0 else inf, "bytes": times if times > 0 else inf}
    conditions = {
        "messages": f"if that is {more:,.0f} % above the least ({by_messages})",
        "bytes": f"if that is {times:,.1f} times the least ({by_bytes})",
    }
    for unit, key in _UNITS:
        own, traffic = getattr(look.there, unit), [getattr(each, unit) for each in look.usages]
        most, least = max(traffic), _least(traffic)
        amount = float(int(min((most - least) * manager.limits[UNLOADED_SHARE], _MOST_INTEGER)))
        if most > factors[unit] * least and own == most and amount >= manager.limits[key]:
            why = (
                f"UniformLoadShedder takes from the broker of most traffic {conditions[unit]}, and"
                f" {look.there.broker} would have {_words(unit, most)}, the least {_words(unit, least)}; bundles of up"
                f" to {_words(unit, amount + _SLACK)} go wherever the placement strategy has them"
            )
            yield Shed(
                source=look.there.broker,
                why=why,
                takes=Takes.FITTING,
                unit=unit,
                amount=amount / (1 - look.part),
                slack=_SLACK,
                most_bundles=None if cap < 0 else cap,
            )
        told = [getattr(each, unit) for each in look.told]
        if max(told) * (1 - look.part) > factors[unit] * _least(told, 1 + look.part):
            return


def _least(traffic: Collection[float], times: float = 1.0) -> float:
    """The least traffic of a broker as `UniformLoadShedder` reckons with it."""
    least = min(*(each * times for each in traffic), _MOST_INTEGER)
    return 1.0 if least <= _NOTHING else least


_RULES: Mapping[str, Callable[[LoadManager, _Look], Iterator[Shed]]] = {
    "ThresholdShedder": _by_threshold,
    "OverloadShedder": _by_overload,
    "TransferShedder": _by_deviation,
    "AvgShedder": _by_pairs,
    "UniformLoadShedder": _by_difference,
}


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
    if _why_transferred(manager, usages) is None:
        return None
    ranked = sorted(usages, key=lambda each: each.percent)
    for emptier, fuller in zip(ranked, reversed(ranked), strict=True):
        if emptier.broker == move.target and emptier.percent < fuller.percent:
            smaller = move.bytes < _KEPT_OF_EXCHANGE * fuller.bytes
            return fuller.broker if smaller and emptier.bytes < fuller.bytes / 2 else None
    return None
