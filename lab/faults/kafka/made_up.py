"""Kafka clusters that are too large, or divided too badly, for three brokers on one small machine."""

from collections.abc import Mapping

from lab.faults.fault import Expected, SimulatedKafkaFault
from lab.kafka.made_up import KafkaSpec

MANY = "thousands of partitions take longer to make than the lab may run"
LATE = "the lab has its brokers missed after 3 s, so that faults are made soon"

CEILING, REPLICAS, FAILOVER = "kafka-partition-ceiling", "kafka-replicas-uneven", "kafka-failover-time"
ZOOKEEPER = {"zookeeper.connect": "zk-1:2181"}


def _spread(partitions: int, brokers: int = 3, replicas: int = 3) -> list[list[int]]:
    """Replicas of a topic's partitions, dealt out to brokers one by one."""
    return [[(number + each) % brokers + 1 for each in range(replicas)] for number in range(partitions)]


def _of(partitions: int, brokers: int = 3, settings: Mapping[str, str] | None = None) -> KafkaSpec:
    topics = {f"events-{number}": _spread(partitions // 10, brokers) for number in range(10)}
    return KafkaSpec(brokers=tuple(range(1, brokers + 1)), topics=topics, settings=settings or {})


FAULTS = (
    SimulatedKafkaFault(
        name="kafka-too-many-replicas",
        about="Each of three brokers holds 4,500 replicas.",
        expected=tuple(Expected(CEILING, f"^broker {number}$") for number in (1, 2, 3)),
        spec=_of(4_500),
        why=MANY,
    ),
    SimulatedKafkaFault(
        name="kafka-many-replicas",
        about="Healthy: each of three brokers holds 3,000 replicas.",
        spec=_of(3_000),
        why=MANY,
        twin_of=("kafka-too-many-replicas",),
    ),
    SimulatedKafkaFault(
        name="kafka-too-many-for-zookeeper",
        about="A cluster that keeps its metadata in ZooKeeper has 120,000 partitions on 100 brokers.",
        expected=(Expected(CEILING, "^kafka-too-many-for-zookeeper$", "the ceiling is 200,000 partitions"),),
        spec=_of(120_000, 100, ZOOKEEPER),
        why=MANY,
    ),
    SimulatedKafkaFault(
        name="kafka-many-with-kraft",
        about="Healthy: 120,000 partitions on 100 brokers with KRaft.",
        spec=_of(120_000, 100),
        why=MANY,
        twin_of=("kafka-too-many-for-zookeeper",),
    ),
    SimulatedKafkaFault(
        name="kafka-missed-late",
        about="Brokers are missed only after 30 s, so that their partitions have no leader for as long.",
        expected=tuple(Expected(FAILOVER, f"^broker {number}$", "30 s until it is missed") for number in (1, 2, 3)),
        spec=_of(300, settings={"broker.session.timeout.ms": "30000"}),
        why=LATE,
    ),
    SimulatedKafkaFault(
        name="kafka-missed-soon",
        about="Healthy: the same cluster, whose brokers are missed after 9 s.",
        spec=_of(300),
        why=LATE,
        twin_of=("kafka-missed-late",),
    ),
    SimulatedKafkaFault(
        name="kafka-full-broker",
        about="One of three brokers holds 1,200 replicas, the two others 600 each.",
        expected=(Expected(REPLICAS, "^broker 1$"),),
        spec=KafkaSpec(topics={"events": [[2, 1], [1, 2], [3, 1], [1, 3]] * 300}),
        allowed={"kafka-leaders-uneven": "it leads more, too, as it has more to lead"},
        why=MANY,
    ),
    SimulatedKafkaFault(
        name="kafka-new-broker",
        about="A fourth broker has come, and holds nothing yet; the three others hold 900 replicas each.",
        expected=(Expected(REPLICAS, "^broker 4$", "it is new, or was emptied"),),
        spec=KafkaSpec(brokers=(1, 2, 3, 4), topics={"events": _spread(900)}),
        why=MANY,
        quick=True,
    ),
    SimulatedKafkaFault(
        name="kafka-replicas-even",
        about="Healthy: four brokers hold 675 replicas each.",
        spec=KafkaSpec(brokers=(1, 2, 3, 4), topics={"events": _spread(900, 4)}),
        why=MANY,
        quick=True,
        twin_of=("kafka-full-broker", "kafka-new-broker"),
    ),
)
