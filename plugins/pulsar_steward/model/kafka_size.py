"""Size of a Kafka cluster's metadata, and for how long a lost controller or broker stops partitions: estimates.

Sizes follow from the formats of ZooKeeper and Kafka. Times are the rates of `KafkaRates`, which were published.
docs/kafka.md compares both with the published figures.
"""

from __future__ import annotations

import math
from enum import StrEnum

import msgspec

from pulsar_steward.model.section import Section, number
from pulsar_steward.model.units import rate_side_by_side, total_seconds


class KafkaStore(StrEnum):
    """Where a Kafka cluster keeps its metadata."""

    ZOOKEEPER = "zookeeper"
    KRAFT = "kraft"


class KafkaRates(Section):
    """Rates and time limits that estimates assume; ceilings are those of the check `kafka-partition-ceiling`."""

    request_max_bytes: int = number(104_857_600, "default of `socket.request.max.bytes`; brokers refuse longer ones")
    zookeeper_session_seconds: int = number(18, "default of `zookeeper.session.timeout.ms`")
    nodes_read_per_second: int = number(35_700, "by one reader of ZooKeeper: a million in 28 s, as published")
    nodes_read_per_second_in_all: int = number(71_400, "by all readers: a million in 14 s by five, as published")
    partitions_restored_per_second: int = number(
        111_000, "by the controller, beside reading: 37 s for a million in all, of which reading is 28 s"
    )
    partitions_applied_per_second: int = number(25_000, "by a broker that is told all: a million in 40 s, as published")
    controller_bytes_per_second: int = number(125_000_000, "to all brokers together; assumed: 1 Gbit/s")
    replicas_prepared_per_second: int = number(
        16_000, "by a new controller, whose requests name each: 827,000 in 51 s (linkedin/kafka#373, #377)"
    )
    leaders_elected_per_second_zookeeper: int = number(
        2_000, "10 requests in flight (`zookeeper.max.in.flight.requests`) of 5 ms each; assumed"
    )
    nodes_loaded_per_second: int = number(400_000, "by a ZooKeeper that starts; two million in 5 s, measured")
    broker_session_seconds: int = number(9, "default of `broker.session.timeout.ms`, in KRaft")
    quorum_fetch_seconds: int = number(2, "default of `controller.quorum.fetch.timeout.ms`")
    quorum_election_seconds: int = number(1, "default of `controller.quorum.election.timeout.ms`")
    leaders_elected_per_second_kraft: int = number(10_000, "written to the metadata log and applied; assumed")
    records_loaded_per_second: int = number(
        500_000, "by a controller or broker of KRaft that starts; a million in 1.7 s, measured"
    )


class KafkaSize(msgspec.Struct, frozen=True, kw_only=True):
    """Size of a Kafka cluster.

    Attributes:
        brokers: Number of brokers, at least 1.
        topics: Number of topics.
        partitions: Number of partitions of all topics, each counted once.
        store: Where the metadata is.
        replication_factor: Average number of replicas of a partition.
        name_length: Average length of a topic's name, in bytes.
        most_replicas: Replicas of the fullest broker; None: all have as many.
        most_leaders: Partitions that the broker with the most leaders leads; None: all lead as many.
        before_2_2: True for Kafka before 2.2, whose requests repeat the topic's name for each partition.
    """

    brokers: int
    topics: int
    partitions: int
    store: KafkaStore = KafkaStore.KRAFT
    replication_factor: float = 3.0
    name_length: int = 20
    most_replicas: int | None = None
    most_leaders: int | None = None
    before_2_2: bool = False

    @property
    def leaders(self) -> int:
        """Partitions that the broker with the most leaders leads."""
        return math.ceil(self.partitions / self.brokers) if self.most_leaders is None else self.most_leaders

    @property
    def replicas(self) -> int:
        """Replicas of the fullest broker."""
        if self.most_replicas is not None:
            return self.most_replicas
        return math.ceil(self.partitions * self.replication_factor / self.brokers)


class KafkaOutage(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds until the last partition has a leader that clients can find, by part, one after the other.

    Attributes:
        noticed: Until the loss is noticed: a session or a time limit ends.
        restored: Until the new controller has the metadata.
        told: Until the new controller has told all brokers everything.
        elected: Until the partitions of the lost broker have new leaders, and brokers know these.
    """

    noticed: float
    restored: float = 0.0
    told: float = 0.0
    elected: float = 0.0

    @property
    def seconds(self) -> int:
        """Sum of all parts, rounded up."""
        return total_seconds(self.noticed, self.restored, self.told, self.elected)

    @property
    def words(self) -> str:
        """The sum and its parts: ``58 s = 18 s until it is noticed + 40 s until all brokers know``."""
        parts = {
            "until it is noticed": self.noticed,
            "until a new controller has the metadata": self.restored,
            "until it has told all brokers": self.told,
            "until partitions have new leaders": self.elected,
        }
        sums = (f"{seconds:,.0f} s {words}" for words, seconds in parts.items() if seconds)
        return f"{self.seconds:,} s = {' + '.join(sums)}"


class KafkaEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """What a cluster of this size costs.

    Attributes:
        nodes: Nodes in ZooKeeper, or records of a snapshot of KRaft.
        snapshot_bytes: Size of a snapshot of the metadata.
        load_seconds: Time in which a ZooKeeper, or a controller or broker of KRaft, loads it when it starts.
        update_bytes: What a new controller tells each broker; 0 in KRaft, where brokers have it.
        update_refused: True if that is longer than brokers accept (`socket.request.max.bytes`).
        change_bytes: What each broker is told of the new leaders of the lost broker's partitions.
        controller_lost: A controller is lost, and no broker.
        broker_lost: The broker with the most leaders is lost.
        both_lost: A broker is lost that is the controller too, or at the same time as the controller.
    """

    nodes: int
    snapshot_bytes: int
    load_seconds: float
    update_bytes: int
    update_refused: bool
    change_bytes: int
    controller_lost: KafkaOutage
    broker_lost: KafkaOutage
    both_lost: KafkaOutage


# A node of a ZooKeeper snapshot besides its path and its data: two lengths, the list of rights, and its statistics.
_NODE = 4 + 4 + 8 + 60
_STATE = '{"controller_epoch":1,"leader":,"version":1,"leader_epoch":0,"isr":[]}'
_TOPIC = '{"version":2,"partitions":{},"adding_replicas":{},"removing_replicas":{}}'
_PARTITION = '"":[],'
_CONFIG = '{"version":1,"config":{}}'
_TOPICS, _PARTITIONS, _STATE_NODE, _CONFIGS = "/brokers/topics/", "/partitions/", "/state", "/config/topics/"

# A record of KRaft besides its fields: of the batch (length, attributes, two deltas, key, length, headers) and of the
# frame (three versions, the number of tagged fields).
_RECORD = 10 + 4
_UUID, _INT = 16, 4


def estimate(size: KafkaSize, rates: KafkaRates | None = None, readers: int = 1) -> KafkaEstimate:
    """Estimates size and times of a cluster.

    Args:
        size: The cluster.
        rates: Rates; None: the published ones.
        readers: Threads by which a new controller reads ZooKeeper; Kafka itself has one.
    """
    rates = rates or KafkaRates()
    return _of_kraft(size, rates) if size.store is KafkaStore.KRAFT else _of_zookeeper(size, rates, readers)


def read_seconds(nodes: int, rates: KafkaRates, readers: int = 1) -> float:
    """Time in which readers side by side read so many nodes of ZooKeeper."""
    return nodes / rate_side_by_side(rates.nodes_read_per_second, readers, rates.nodes_read_per_second_in_all)


def restore_seconds(partitions: int, rates: KafkaRates, readers: int = 1) -> float:
    """Time in which a new controller has the metadata of so many partitions from ZooKeeper."""
    return read_seconds(partitions, rates, readers) + partitions / rates.partitions_restored_per_second


def tell_seconds(partitions: int, sent_bytes: int, rates: KafkaRates) -> float:
    """Time until brokers were sent so many bytes in all, about so many partitions, and have applied them."""
    return sent_bytes / rates.controller_bytes_per_second + partitions / rates.partitions_applied_per_second


def update_bytes(size: KafkaSize, partitions: int) -> int:
    """Size of a request `UpdateMetadata` about so many partitions, without its list of brokers.

    Kafka 2.2 and 2.3 need 8 bytes a partition more than later versions.
    """
    # Five numbers, and three lists with their lengths: replicas, those in sync, those offline.
    fields = 5 * _INT + 2 * _INT * size.replication_factor
    if size.before_2_2:
        return round(partitions * (fields + 3 * _INT + 2 + size.name_length))
    return round(partitions * (fields + 3 + 1) + min(size.topics, partitions) * (size.name_length + 3))


def _of_zookeeper(size: KafkaSize, rates: KafkaRates, readers: int) -> KafkaEstimate:
    nodes, snapshot = _in_zookeeper(size)
    update, change = update_bytes(size, size.partitions), update_bytes(size, size.leaders)
    noticed = rates.zookeeper_session_seconds
    restored = restore_seconds(size.partitions, rates, readers)
    # Brokers apply the metadata while the controller prepares further requests, which name each replica.
    prepared = size.partitions * size.replication_factor / rates.replicas_prepared_per_second
    told = max(tell_seconds(size.partitions, size.brokers * update, rates), prepared)
    elected = size.leaders / rates.leaders_elected_per_second_zookeeper
    elected += max(
        tell_seconds(size.leaders, size.brokers * change, rates), size.replicas / rates.replicas_prepared_per_second
    )
    return KafkaEstimate(
        nodes=nodes,
        snapshot_bytes=snapshot,
        load_seconds=nodes / rates.nodes_loaded_per_second,
        update_bytes=update,
        update_refused=update > rates.request_max_bytes,
        change_bytes=change,
        controller_lost=KafkaOutage(noticed=noticed, restored=restored, told=told),
        broker_lost=KafkaOutage(noticed=noticed, elected=elected),
        both_lost=KafkaOutage(noticed=noticed, restored=restored, told=told, elected=elected),
    )


def _of_kraft(size: KafkaSize, rates: KafkaRates) -> KafkaEstimate:
    records, snapshot = _in_kraft(size)
    elected = size.leaders / rates.leaders_elected_per_second_kraft
    # Another controller has the metadata in memory, and brokers read on where they were.
    changed = rates.quorum_fetch_seconds + rates.quorum_election_seconds
    return KafkaEstimate(
        nodes=records,
        snapshot_bytes=snapshot,
        load_seconds=records / rates.records_loaded_per_second,
        update_bytes=0,
        update_refused=False,
        change_bytes=round(size.leaders * _change_of_kraft(size)),
        controller_lost=KafkaOutage(noticed=changed),
        broker_lost=KafkaOutage(noticed=rates.broker_session_seconds, elected=elected),
        # A new controller gives every broker a whole session before it takes it for lost.
        both_lost=KafkaOutage(noticed=changed + rates.broker_session_seconds, elected=elected),
    )


def _in_zookeeper(size: KafkaSize) -> tuple[int, int]:
    """Nodes in ZooKeeper, and bytes of its snapshot."""
    broker, partition = _digits(size.brokers), _digits(size.partitions / max(size.topics, 1))
    ids = size.replication_factor * (broker + 1)
    path = len(_TOPICS) + size.name_length + len(_PARTITIONS) + partition
    of_partition = 2 * _NODE + 2 * path + len(_STATE_NODE) + len(_STATE) + broker + ids
    # The topic has the replicas of all its partitions; beside it are the node above its partitions, and its settings.
    of_topic = 3 * _NODE + len(_TOPICS) * 2 + len(_PARTITIONS) - 1 + len(_CONFIGS) + 3 * size.name_length
    of_topic += len(_TOPIC) + len(_CONFIG)
    in_topic = len(_PARTITION) + partition + ids - 1
    nodes = 2 * size.partitions + 3 * size.topics
    return nodes, round(size.partitions * (of_partition + in_topic) + size.topics * of_topic)


def _in_kraft(size: KafkaSize) -> tuple[int, int]:
    """Records of a snapshot, and its bytes: a record a topic and a partition, with the directory of each replica."""
    replicas = size.replication_factor
    lists = 2 * (1 + _INT * replicas) + 2 + (1 + _UUID * replicas)
    of_partition = _RECORD + _INT + _UUID + lists + 3 * _INT
    of_topic = _RECORD + 1 + size.name_length + _UUID
    return size.partitions + size.topics, round(size.partitions * of_partition + size.topics * of_topic)


def _change_of_kraft(size: KafkaSize) -> float:
    """Bytes of the record by which a partition gets a new leader and loses a replica in sync."""
    in_sync = 2 + 1 + _INT * (size.replication_factor - 1)
    leader = 2 + _INT
    return _RECORD + _INT + _UUID + in_sync + leader


def _digits(count: float) -> int:
    """Digits of most of so many numbers that begin at 0."""
    return len(str(max(round(count) - 1, 0)))
