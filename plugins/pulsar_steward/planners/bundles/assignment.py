"""Loads of brokers during the search for moves, the gain of a move, and the room on the brokers that stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.facts.room import RESOURCES, Burden, Usage, limits_of_moves
from pulsar_steward.model.units import MEGABYTE, counted
from pulsar_steward.planners.bundles.facts import Load, PlacedBundle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pulsar_steward.checks.placement.broker_load import BrokerLoadSkewPolicy
    from pulsar_steward.planners.bundles.facts import LeavingFacts, OwnedBundlesLoad
    from pulsar_steward.policy.schema import Policy

MEASURES: tuple[Callable[[Load], int], ...] = (
    lambda load: load.topics,
    lambda load: load.bytes,
    lambda load: load.clients,
)
"""Quantities that are evened out between brokers: topics, throughput and clients."""

COST_OF_A_MOVE = 100
"""Fixed cost of a move, in clients, besides the bundle's own clients: a bundle with few clients needs a reason too."""

LEAST_GAIN = 1e-9
"""Minimum gain; less is a rounding error."""

Amounts = tuple[int, ...]
"""One number for each of `MEASURES`."""


def amounts(load: Load) -> Amounts:
    """The quantities of a load that are evened out."""
    return tuple(measure(load) for measure in MEASURES)


class Move(msgspec.Struct, frozen=True):
    """A bundle's move to the broker `target`; `gain` is the decrease of the spread, above 0."""

    stay: PlacedBundle
    target: str
    gain: float

    @property
    def order(self) -> tuple[float, str, str]:
        """Sort key: the gain for each disturbed client, the highest first; names make the order unambiguous."""
        return -self.gain / (COST_OF_A_MOVE + self.stay.now.clients), self.stay.name, self.target


class LoadAssignment:
    """Brokers' loads; a bundle moves at most once, from its owner to one target.

    The spread is the sum over brokers and measures of the squared distance from the mean. The unit is the mean, or, if
    the mean is smaller, the minimum load of a full broker in the check: below it, no broker has much load.

    Args:
        brokers: The brokers, by id.
        policy: Thresholds of `broker-load-skew`.
        within_percent: Distance from the mean that is near enough, in percent.
    """

    def __init__(self, brokers: Sequence[OwnedBundlesLoad], policy: BrokerLoadSkewPolicy, within_percent: int) -> None:
        self.mean = {each.broker: amounts(each.mean) for each in brokers}
        self.peak = {each.broker: amounts(each.peak) for each in brokers}
        self.topics = {each.broker: each.now.topics for each in brokers}
        least = (policy.minimum_topics, policy.minimum_throughput_megabytes * MEGABYTE, policy.minimum_clients)
        sums = [sum(column) for column in zip(*self.mean.values(), strict=True)]
        peaks = [sum(column) for column in zip(*self.peak.values(), strict=True)]
        self._means = [total / len(self.mean) for total in sums]
        self._scales: list[float] = [max(mean, float(small)) for mean, small in zip(self._means, least, strict=True)]
        self._near = within_percent / 100
        self._peak_limits = [total / len(self.peak) * (1 + self._near) for total in peaks]

    @property
    def spread(self) -> float:
        """Unevenness of the load; 0: none."""
        return sum((each * each for broker in self.mean for each in self._deviations(broker)), 0.0)

    def uneven(self) -> list[str]:
        """Brokers too far from the mean, the furthest first."""
        far = {broker: max(abs(each) for each in self._deviations(broker)) for broker in self.mean}
        return sorted((broker for broker, off in far.items() if off > self._near), key=lambda name: (-far[name], name))

    def by_fullness(self) -> list[str]:
        """All brokers, the emptiest first."""
        full = {broker: sum(self._deviations(broker)) for broker in self.mean}
        return sorted(full, key=lambda name: (full[name], name))

    def above_mean(self, broker: str) -> bool:
        """True if a broker is above the mean in any quantity."""
        return any(deviation > 0 for deviation in self._deviations(broker))

    def weight(self, stay: PlacedBundle) -> float:
        """A bundle's load, the sum over all measures, in units of the brokers' mean."""
        return sum((amount / scale for amount, scale in zip(amounts(stay.mean), self._scales, strict=True)), 0.0)

    def too_full(self, broker: str) -> bool:
        """True if a broker has too much of any quantity."""
        return any(deviation > self._near for deviation in self._deviations(broker))

    def too_empty(self, broker: str) -> bool:
        """True if a broker has too little of any quantity."""
        return any(deviation < -self._near for deviation in self._deviations(broker))

    def moves(self, stays: Sequence[PlacedBundle], target: str) -> Iterator[Move]:
        """Moves of one broker's bundles that would lower the spread, and that fit on the target at their peaks."""
        if not stays:
            return
        source = stays[0].owner
        here, there = self.mean[source], self.mean[target]
        peak_here, peak_there = self.peak[source], self.peak[target]
        room = [
            max(float(most), limit) - taken
            for most, limit, taken in zip(peak_here, self._peak_limits, peak_there, strict=True)
        ]
        differences = [one - other for one, other in zip(here, there, strict=True)]
        for stay in stays:
            mean, peak = amounts(stay.mean), amounts(stay.peak)
            gain = sum(
                amount * (difference - amount) / scale**2
                for amount, difference, scale in zip(mean, differences, self._scales, strict=True)
            )
            if gain > LEAST_GAIN and all(amount <= free for amount, free in zip(peak, room, strict=True) if amount):
                yield Move(stay, target, gain)

    def carry_out(self, move: Move) -> None:
        """Moves a bundle to its target."""
        source, target = move.stay.owner, move.target
        for loads, load in ((self.mean, move.stay.mean), (self.peak, move.stay.peak)):
            change = amounts(load)
            loads[source] = tuple(one - other for one, other in zip(loads[source], change, strict=True))
            loads[target] = tuple(one + other for one, other in zip(loads[target], change, strict=True))
        self.topics[source] -= move.stay.now.topics
        self.topics[target] += move.stay.now.topics

    def _deviations(self, broker: str) -> list[float]:
        return [
            (amount - mean) / scale
            for amount, mean, scale in zip(self.mean[broker], self._means, self._scales, strict=True)
        ]


class Room:
    """Loads of brokers after the moves so far, and the room on each remaining broker.

    A bundle is assumed to use the same share of its broker's CPU and direct memory as of its load, like in the brokers'
    load shedding. The room of a broker is unknown if it does not report one of these resources.

    Attributes:
        targets: Remaining brokers, by id.
        topics: Topics of every broker after the moves so far.
        coordinators: Transaction coordinators of every broker after the moves so far.
    """

    def __init__(self, facts: LeavingFacts, coordinators: Mapping[str, int], policy: Policy) -> None:
        self._limits, skew = limits_of_moves(policy), policy.broker_load_skew
        least = (skew.minimum_topics, skew.minimum_throughput_megabytes * MEGABYTE, skew.minimum_clients)
        self._mean = {each.broker: amounts(each.mean) for each in facts.brokers}
        means = [sum(column) / len(self._mean) for column in zip(*self._mean.values(), strict=True)]
        self._scales = [max(mean, float(small)) for mean, small in zip(means, least, strict=True)]
        self._usages = {each.broker: facts.resources.get(each.broker, Usage()) for each in facts.brokers}
        self._before = dict(self._usages)
        self._whole = {each.broker: self._weight(each.mean) for each in facts.brokers}
        self._allowed = facts.allowed
        self.targets = tuple(each for each in self._mean if each not in policy.brokers.draining)
        self.topics = {each.broker: each.now.topics for each in facts.brokers}
        self.coordinators = {each.broker: coordinators.get(each.broker, 0) for each in facts.brokers}

    def shortages(self) -> Iterator[str]:
        """Reasons, with figures, why the remaining brokers could not take over the whole load in any division."""
        usages = self._usages.items()
        used = {name: [(broker, getattr(usage, name)) for broker, usage in usages] for name in RESOURCES}
        return Burden(
            brokers=len(self.targets),
            topics=sum(self.topics.values()),
            used={name: sum(percent or 0.0 for _, percent in each) for name, each in used.items()},
            silent={name: tuple(sorted(b for b, percent in each if percent is None)) for name, each in used.items()},
        ).shortages(self._limits)

    def candidates(self, stay: PlacedBundle, coordinators: int) -> list[str]:
        """Brokers that may get a bundle: for coordinators, those with fewest coordinators first; else the emptiest."""
        allowed = self._allowed.get(stay.namespace)
        may = [each for each in self.targets if allowed is None or each in allowed]
        fewest = self.coordinators if coordinators else dict.fromkeys(may, 0)
        return sorted(may, key=lambda broker: (fewest[broker], self._fullness(broker), broker))

    def objection(self, stay: PlacedBundle, target: str) -> str | None:
        """Reason, with its figure, why a broker has no room for a bundle, or may have none; None: it has room."""
        topics, most = self.topics[target] + stay.peak.topics, self._limits.topics
        if topics > most:
            return f"{target} would have {counted(topics, 'topic')}, more than {most:,}"
        after = self.usage_after(stay, target)
        for name, words in RESOURCES.items():
            if (percent := getattr(after, name)) is None:
                silent = [each for each in (target, stay.owner) if getattr(self._before[each], name) is None]
                return f"{' and '.join(silent)} did not report {words}"
            if percent > self._limits.percent:
                return f"{target} would be at {percent:.0f} % {words}, more than {self._limits.percent} %"
        return None

    def usage_after(self, stay: PlacedBundle, target: str) -> Usage:
        """Used resources of a broker after it gets a bundle, as far as it and the bundle's owner report theirs."""
        whole = self._whole[stay.owner]
        share = self._weight(stay.mean) / whole if whole else 0.0
        return self._usages[target].plus(self._before[stay.owner].times(share))

    def usage(self, broker: str) -> Usage:
        """Used resources of a broker after the moves so far."""
        return self._usages[broker]

    def weight(self, stay: PlacedBundle) -> float:
        """A bundle's load, the sum over all measures."""
        return self._weight(stay.mean)

    def put(self, stay: PlacedBundle, target: str, coordinators: int) -> None:
        """Puts a bundle on a broker."""
        self._usages[target] = self.usage_after(stay, target)
        change = amounts(stay.mean)
        for broker, sign in ((stay.owner, -1), (target, 1)):
            moved = zip(self._mean[broker], change, strict=True)
            self._mean[broker] = tuple(amount + sign * each for amount, each in moved)
            self.topics[broker] += sign * stay.now.topics
            self.coordinators[broker] += sign * coordinators

    def _fullness(self, broker: str) -> float:
        return sum((amount / scale for amount, scale in zip(self._mean[broker], self._scales, strict=True)), 0.0)

    def _weight(self, load: Load) -> float:
        return sum((amount / scale for amount, scale in zip(amounts(load), self._scales, strict=True)), 0.0)
