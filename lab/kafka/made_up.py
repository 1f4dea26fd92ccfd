"""A made-up Kafka cluster that answers as an admin client does: as large as no lab can have it, without groups."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaSpec:
    """A cluster whose replicas are in sync, and whose partitions are led by their first replica.

    Attributes:
        brokers: Numbers of its brokers.
        topics: Replicas of the partitions of each topic, by its name.
        settings: Of every broker, besides those of a cluster with KRaft.
    """

    brokers: tuple[int, ...] = (1, 2, 3)
    topics: Mapping[str, Sequence[Sequence[int]]]
    settings: Mapping[str, str] = field(default_factory=dict)


USUAL = {"auto.leader.rebalance.enable": "true", "broker.session.timeout.ms": "9000", "min.insync.replicas": "1"}


class MadeUpKafka:
    """Answers requests about a made-up cluster.

    Attributes:
        requests: How many were made.
    """

    def __init__(self, spec: KafkaSpec) -> None:
        self._spec = spec
        self.requests = 0

    def metadata(self) -> Any:
        """Brokers and topics."""
        return SimpleNamespace(
            cluster_id="made-up",
            brokers={n: SimpleNamespace(id=n, host="127.0.0.1", port=9000 + n) for n in self._spec.brokers},
            topics={
                name: SimpleNamespace(
                    error=None,
                    partitions={
                        number: SimpleNamespace(id=number, leader=each[0], replicas=list(each), isrs=list(each))
                        for number, each in enumerate(replicas)
                    },
                )
                for name, replicas in self._spec.topics.items()
            },
        )

    def racks(self) -> dict[int, str | None]:
        """No broker has one."""
        return dict.fromkeys(self._spec.brokers)

    def settings(self, brokers: Sequence[int], names: Iterable[str]) -> dict[int, dict[str, str] | str]:
        """The same of each broker."""
        known = USUAL | dict(self._spec.settings)
        return {each: {name: known[name] for name in names if name in known} for each in brokers}

    def topic_settings(self, topics: Sequence[str], names: Iterable[str]) -> dict[str, dict[str, str] | str]:
        """Those of the brokers."""
        told = self.settings(self._spec.brokers[:1], names)[self._spec.brokers[0]]
        return dict.fromkeys(topics, told)

    def groups(self) -> tuple[dict[str, str], list[str]]:
        """None."""
        return {}, []
