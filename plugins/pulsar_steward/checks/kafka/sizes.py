"""The size of a Kafka cluster, from the row of `SIZES`, for the model of its metadata and outages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.model.kafka_size import KafkaSize, KafkaStore

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Row

SIZES = """
select (select count(*) from kafka_partitions) as partitions,
    (select count(*) from kafka_brokers where listed) as brokers,
    (select count(distinct topic) from kafka_partitions) as topics,
    (select coalesce(avg(len(replicas)), 1) from kafka_partitions) as replication_factor,
    (select coalesce(avg(length(topic)), 0) from (select distinct topic from kafka_partitions)) as name_length,
    case when exists (select 1 from configuration)
        then (select coalesce(bool_or(trim(value) <> ''), false) from setting('zookeeper.connect')) end as by_zookeeper
"""
"""One row; only brokers that keep metadata in ZooKeeper know its addresses. Null: no broker told its settings."""

STORE_UNKNOWN = "No broker told its settings: whether the metadata are in ZooKeeper or in KRaft is not known."


def stores_in(row: Row) -> tuple[KafkaStore, ...]:
    """Where the cluster's metadata are; both, if it is not known."""
    by_zookeeper = row["by_zookeeper"]
    if by_zookeeper is None:
        return tuple(KafkaStore)
    return (KafkaStore.ZOOKEEPER if by_zookeeper else KafkaStore.KRAFT,)


def size_in(row: Row, store: KafkaStore, leaders: int | None = None) -> KafkaSize:
    """Size of the cluster, with the partitions of the broker in question that others can lead."""
    return KafkaSize(
        brokers=max(row["brokers"], 1),
        topics=row["topics"],
        partitions=row["partitions"],
        store=store,
        replication_factor=row["replication_factor"],
        name_length=round(row["name_length"]),
        most_leaders=leaders,
    )
