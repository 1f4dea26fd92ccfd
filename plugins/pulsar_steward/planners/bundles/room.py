"""Room on the remaining brokers, while the bundles of draining ones move to them one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.model.units import MEGABYTE, counted
from pulsar_steward.planners.bundles.assignment import amounts
from pulsar_steward.planners.bundles.facts import Load, Usage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pulsar_steward.planners.bundles.facts import DrainFacts, PlacedBundle
    from pulsar_steward.policy.schema import Policy

RESOURCES = {"cpu": "CPU", "direct_memory": "direct memory"}
"""Resources that a broker must not run short of, by their field of `Usage`, as text."""


class Room:
    """Loads of brokers after the moves so far, and the room on each remaining broker.

    A bundle is assumed to use the same share of its broker's CPU and direct memory as of its load, like in the brokers'
    load shedding. The room of a broker is unknown if it does not report one of these resources.

    Attributes:
        targets: Remaining brokers, by id.
        topics: Topics of every broker after the moves so far.
        coordinators: Transaction coordinators of every broker after the moves so far.
    """

    def __init__(self, facts: DrainFacts, coordinators: Mapping[str, int], policy: Policy) -> None:
        self._remedy, skew = policy.broker_drain_remedy, policy.broker_load_skew
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
        staying = len(self.targets)
        topics, most = sum(self.topics.values()), self._remedy.most_topics
        if topics > most * staying:
            yield (
                f"{counted(staying, 'broker')} would have {counted(topics // staying, 'topic')} each, more than"
                f" {most:,} (broker_drain_remedy.most_topics)"
            )
        for name, words in RESOURCES.items():
            used = [getattr(each, name) for each in self._usages.values()]
            unknown = sorted(broker for broker, usage in self._usages.items() if getattr(usage, name) is None)
            if unknown:
                yield f"{', '.join(unknown)} did not report {words}, so that nobody knows what there is room for"
            elif (mean := sum(used) / staying) > self._remedy.most_usage_percent:
                yield (
                    f"{counted(staying, 'broker')} would be at {mean:.0f} % {words} on average, more than"
                    f" {self._remedy.most_usage_percent} % (broker_drain_remedy.most_usage_percent)"
                )

    def candidates(self, stay: PlacedBundle, coordinators: int) -> list[str]:
        """Brokers that may get a bundle: for coordinators, those with fewest coordinators first; else the emptiest."""
        allowed = self._allowed.get(stay.namespace)
        may = [each for each in self.targets if allowed is None or each in allowed]
        fewest = self.coordinators if coordinators else dict.fromkeys(may, 0)
        return sorted(may, key=lambda broker: (fewest[broker], self._fullness(broker), broker))

    def objection(self, stay: PlacedBundle, target: str) -> str | None:
        """Reason, with its figure, why a broker has no room for a bundle; None: it has room."""
        topics, most = self.topics[target] + stay.peak.topics, self._remedy.most_topics
        if topics > most:
            return f"{target} would have {counted(topics, 'topic')}, more than {most:,}"
        after = self.usage_after(stay, target)
        for name, words in RESOURCES.items():
            if (percent := getattr(after, name)) > self._remedy.most_usage_percent:
                return f"{target} would be at {percent:.0f} % {words}, more than {self._remedy.most_usage_percent} %"
        return None

    def usage_after(self, stay: PlacedBundle, target: str) -> Usage:
        """Used resources of a broker after it gets a bundle; all brokers have to report theirs."""
        whole = self._whole[stay.owner]
        share = self._weight(stay.mean) / whole if whole else 0.0
        there, carried = self._usages[target], self._before[stay.owner]
        return Usage(**{name: getattr(there, name) + share * getattr(carried, name) for name in RESOURCES})

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
