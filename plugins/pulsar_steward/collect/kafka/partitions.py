"""Tables of brokers and partitions, from the one response with a cluster's metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from pulsar_steward.collect.kafka.reader import KafkaPartition
from pulsar_steward.model.tables import KAFKA_PARTITIONS
from pulsar_steward.snapshots.database import schema_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class BrokerPlace(NamedTuple):
    """A broker, as the metadata tell it.

    Attributes:
        id: Its number.
        address: ``host:port``; None: it is not listed, but holds replicas.
        leads: Number of partitions that it leads.
    """

    id: int
    address: str | None
    leads: int

    @property
    def name(self) -> str:
        """Its name in tables and findings."""
        return broker_name(self.id)


def broker_name(number: int) -> str:
    """Name of a broker in tables and findings: Kafka's tools know it by its number."""
    return f"broker {number}"


class ReadMetadata:
    """Partitions and brokers of a cluster.

    Args:
        metadata: `confluent_kafka.admin.ClusterMetadata`; its topics are taken out, so that memory is freed on the way.

    Attributes:
        partitions: The table `kafka_partitions`.
        brokers: All brokers, by id.
        leaderless: Partitions without a leader: nobody can tell their offsets.
        incomplete: Topics of which a replica is missing or out of sync.
        unread: Topics that were listed with an error, with it.
    """

    def __init__(self, metadata: Any) -> None:
        self.unread: dict[str, str] = {}
        self.leaderless: set[KafkaPartition] = set()
        self.incomplete: set[str] = set()
        addresses = {each.id: f"{each.host}:{each.port}" for each in metadata.brokers.values()}
        leads: dict[int, int] = {}
        holders: set[int] = set()
        columns: dict[str, list[Any]] = {name: [] for name in KAFKA_PARTITIONS.names}
        for topic, each in self._partitions(metadata.topics):
            leader = each.leader if each.leader >= 0 else None
            if leader is None:
                self.leaderless.add(KafkaPartition(topic, each.id))
            else:
                leads[leader] = leads.get(leader, 0) + 1
            holders.update(each.replicas)
            if len(each.isrs) < len(each.replicas) or not addresses.keys() >= set(each.replicas):
                self.incomplete.add(topic)
            for column, value in zip(columns.values(), (topic, each.id, leader, each.replicas, each.isrs), strict=True):
                column.append(value)
        schema = schema_of(KAFKA_PARTITIONS)
        self.partitions = pa.table([pa.array(columns[each.name], each.type) for each in schema], schema=schema)
        self.brokers = tuple(
            BrokerPlace(number, addresses.get(number), leads.get(number, 0))
            for number in sorted({*addresses, *holders})
        )

    def _partitions(self, topics: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        """Partitions in the order of topics and numbers."""
        for name in sorted(topics):
            topic = topics.pop(name)
            if topic.error is not None and not topic.partitions:
                self.unread[name] = str(topic.error.str())
            yield from ((name, topic.partitions[number]) for number in sorted(topic.partitions))


def rows_of_settings(told: Mapping[int, dict[str, str] | str]) -> list[dict[str, object]]:
    """Rows of the table `configuration`, by broker and name."""
    return [
        {"broker": broker_name(broker), "key": name, "value": found[name]}
        for broker, found in sorted(told.items())
        if not isinstance(found, str)
        for name in sorted(found)
    ]
