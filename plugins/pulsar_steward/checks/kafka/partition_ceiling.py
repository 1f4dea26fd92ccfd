"""More partitions than a Kafka broker, or a Kafka cluster, should carry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.checks.check import Check, Judgement, Query
from pulsar_steward.checks.kafka.sizes import SIZES, STORE_UNKNOWN, size_in, stores_in
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.kafka_size import KafkaStore, estimate
from pulsar_steward.model.section import Section, number
from pulsar_steward.model.system import System
from pulsar_steward.model.trouble import Harm
from pulsar_steward.model.units import bytes_in_words, counted, seconds_in_words

if TYPE_CHECKING:
    from pulsar_steward.checks.check import CheckContext, Queried


class KafkaPartitionCeilingPolicy(Section):
    """Thresholds for the number of partitions of a Kafka cluster, and of replicas on its brokers."""

    warning_replicas_per_broker: int = number(4_000, "as advised for any cluster (KIP-578)")
    critical_replicas_per_broker: int = number(
        30_000, "each segment takes two memory maps, and Linux grants 65,530 (`vm.max_map_count`)"
    )
    warning_partitions_per_cluster: int = number(1_000_000, "half of the next")
    critical_partitions_per_cluster: int = number(
        2_000_000, "the most of which a measurement was published, with KRaft"
    )
    warning_partitions_with_zookeeper: int = number(100_000, "half of the next")
    critical_partitions_with_zookeeper: int = number(200_000, "as advised (KIP-578)")


HELD = "select broker, replicas from kafka_held"


def judge(queried: Queried, context: CheckContext[KafkaPartitionCeilingPolicy]) -> Judgement:
    """Judges each broker by its replicas, and the cluster by its partitions."""
    limits, row = context.limits, queried["sizes"].one
    held = sorted(queried["held"].rows, key=lambda row: (-row["replicas"], row["broker"]))
    if not held or not row["partitions"]:
        return Judgement(quiet="There are no partitions.")
    # Of a store that is not known, what holds with either.
    of_stores = [(_severity(row["partitions"], store, limits), size_in(row, store)) for store in stores_in(row)]
    severity, size = min(of_stores, key=lambda each: -1 if each[0] is None else each[0].rank)
    cost, ceiling = estimate(size), _ceilings(size.store, limits)[1]
    words = (
        f"{counted(size.partitions, 'partition')} of {counted(size.topics, 'topic')} make metadata of about"
        f" {bytes_in_words(cost.snapshot_bytes, rounded=True)}, which a broker or controller that starts reads in"
        f" {seconds_in_words(cost.load_seconds, rounded=True)}"
    )
    figures = {"partitions": size.partitions, "ceiling": ceiling}
    if len(of_stores) == 1:
        figures["snapshot_bytes"] = cost.snapshot_bytes
    else:
        words = f"There are {counted(size.partitions, 'partition')} of {counted(size.topics, 'topic')}"
    found = []
    if severity:
        evidence = f"{words}; the ceiling is {counted(ceiling, 'partition')}."
        found.append(
            CHECK.finding(severity=severity, subject=context.about.cluster, evidence=evidence, figures=figures)
        )
    for row in held:
        replicas, most = row["replicas"], limits.critical_replicas_per_broker
        severity = Severity.beyond(replicas, warning=limits.warning_replicas_per_broker, critical=most)
        if severity is None:
            break
        found.append(
            CHECK.finding(
                severity=severity,
                subject=row["broker"],
                evidence=f"{row['broker']} holds {counted(replicas, 'replica')}; the ceiling is {most:,}.",
                figures={"replicas": replicas, "ceiling": most},
            )
        )
    quiet = f"{words}; {held[0]['broker']} holds most replicas: {held[0]['replicas']:,}."
    differ = len({severity for severity, _ in of_stores}) > 1
    return Judgement(findings=tuple(found), quiet=quiet, cannot_tell=STORE_UNKNOWN if differ else None)


def _ceilings(store: KafkaStore, limits: KafkaPartitionCeilingPolicy) -> tuple[int, int]:
    """Partitions of the cluster from which there is a warning, and those from which it is critical."""
    if store is KafkaStore.ZOOKEEPER:
        return limits.warning_partitions_with_zookeeper, limits.critical_partitions_with_zookeeper
    return limits.warning_partitions_per_cluster, limits.critical_partitions_per_cluster


def _severity(partitions: int, store: KafkaStore, limits: KafkaPartitionCeilingPolicy) -> Severity | None:
    warning, critical = _ceilings(store, limits)
    return Severity.beyond(partitions, warning=warning, critical=critical)


CHECK = Check(
    check_id="kafka-partition-ceiling",
    harm=Harm.SOON,
    order=10,
    title="More partitions than a Kafka broker or cluster should carry",
    advice=(
        "Find topics with many partitions and little traffic: `kafka-topics.sh --bootstrap-server SERVERS --describe`.",
        "Delete topics that nobody uses: Kafka never makes the partitions of a topic fewer.",
        "Add brokers where single ones are full, and let Cruise Control move replicas to them (`add_broker`).",
        "Place new topics on a second cluster before this one is full.",
    ),
    source="docs/kafka.md; docs/knowledge.md E",
    policy=KafkaPartitionCeilingPolicy,
    cluster={"held": Query(HELD), "sizes": Query(SIZES)},
    judge=judge,
    system=System.KAFKA,
)
