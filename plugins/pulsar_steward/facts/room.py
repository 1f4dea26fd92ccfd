"""Room of brokers: what they would carry together, and the most that each of them may come to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.model.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pulsar_steward.policy.schema import Policy

RESOURCES = {"cpu": "CPU", "direct_memory": "direct memory"}
"""Resources that a broker must not run short of, by their field of `Usage`, as text."""


_ROOM = "what there is room for"


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Used resources of a broker, in percent; None: not reported."""

    cpu: float | None = None
    direct_memory: float | None = None

    def plus(self, other: Usage) -> Usage:
        """The sum; a resource is None if either did not report it."""
        both = {name: (getattr(self, name), getattr(other, name)) for name in RESOURCES}
        return Usage(**{name: None if None in pair else sum(pair) for name, pair in both.items()})

    def times(self, share: float) -> Usage:
        """A share of it."""
        told = {name: getattr(self, name) for name in RESOURCES}
        return Usage(**{name: None if percent is None else share * percent for name, percent in told.items()})


class RoomLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The most that a broker may come to.

    Attributes:
        topics: Loaded topics, by the policy's key `topics_key`.
        percent: Each of the `resources` (fields of `Usage`), by the policy's key `percent_key`.
    """

    topics: int
    topics_key: str
    percent: int
    percent_key: str
    resources: tuple[str, ...] = tuple(RESOURCES)


def limits_of_moves(policy: Policy) -> RoomLimits:
    """Limits for brokers that bundles are moved to."""
    remedy = policy.broker_drain_remedy
    return RoomLimits(
        topics=remedy.most_topics,
        topics_key="broker_drain_remedy.most_topics",
        percent=remedy.most_usage_percent,
        percent_key="broker_drain_remedy.most_usage_percent",
    )


def limits_after_loss(policy: Policy) -> RoomLimits:
    """Limits for the brokers that are left after the loss of one, as in the check `cluster-placement`."""
    return RoomLimits(
        topics=policy.partition_ceiling.critical_topics_per_broker,
        topics_key="partition_ceiling.critical_topics_per_broker",
        percent=policy.cluster_placement.warning_cpu_percent_after_loss,
        percent_key="cluster_placement.warning_cpu_percent_after_loss",
        resources=("cpu",),
    )


class Burden(msgspec.Struct, frozen=True, kw_only=True):
    """Load that some brokers would carry together, in whatever division.

    Attributes:
        brokers: Number of these brokers, 1 or more.
        topics: Loaded topics.
        used: Resources by field of `Usage`, in percent of one broker.
        silent: Brokers with some of the load that did not report their topics, or a resource, by `topics` or its field.
        by_topics: Brokers with no throughput, whose share of resources is that of topics.
        idle: Topics of namespaces that have no throughput now, and so no share of the resources.
    """

    brokers: int
    topics: int
    used: dict[str, float]
    silent: dict[str, tuple[str, ...]] = {}
    by_topics: tuple[str, ...] = ()
    idle: int = 0

    def shortages(self, limits: RoomLimits, who: str | None = None) -> Iterator[str]:
        """Reasons, with figures, why the brokers (`who`) could not carry it, or why that is not known."""
        yield from (words for words, _ in self.judged(limits, who))

    def judged(self, limits: RoomLimits, who: str | None = None) -> Iterator[tuple[str, bool]]:
        """The same, each with whether it is known."""
        many, each = who or counted(self.brokers, "broker"), " each" if self.brokers > 1 else ""
        if silent := self.silent.get("topics"):
            yield f"{', '.join(silent)} did not report their loaded topics, so that nobody knows {_ROOM}", False
        elif self.topics > limits.topics * self.brokers:
            topics = counted(self._topics_each, "topic")
            yield f"{many} would have {topics}{each}, more than {limits.topics:,} ({limits.topics_key})", True
        for name in limits.resources:
            words, mean = RESOURCES[name], self.used[name] / self.brokers
            if silent := self.silent.get(name):
                yield f"{', '.join(silent)} did not report {words}, so that nobody knows {_ROOM}", False
            elif mean > limits.percent:
                usage = f"{mean:.0f} % {words} on average, more than {limits.percent} % ({limits.percent_key})"
                yield f"{many} would be at {usage}", True

    def words(self, limits: RoomLimits) -> str:
        """The load of a broker on average: ``20 topics (50,000 at most), 31 % CPU and 6 % direct memory (80 %)``."""
        topics = f"{counted(self._topics_each, 'topic')} ({limits.topics:,} at most)"
        means = " and ".join(f"{self.used[name] / self.brokers:.0f} % {RESOURCES[name]}" for name in limits.resources)
        return f"{topics}, {means} ({limits.percent} %)" if means else topics

    @property
    def _topics_each(self) -> int:
        return -(-self.topics // self.brokers)
