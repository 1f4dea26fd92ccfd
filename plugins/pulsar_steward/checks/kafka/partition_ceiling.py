"""More partitions than a Kafka broker, or a Kafka cluster, should carry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.checks.check import Check, Judgement, Query
from pulsar_steward.checks.kafka.sizes import SIZES, size_in
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
    limits, size = context.limits, size_in(queried["sizes"].one)
    held = sorted(queried["held"].rows, key=lambda row: (-row["replicas"], row["broker"]))
    if not held or not size.partitions:
        return Judgement(quiet="There are no partitions.")
    of_store = "with_zookeeper" if size.store is KafkaStore.ZOOKEEPER else "per_cluster"
    ceiling = getattr(limits, f"critical_partitions_{of_store}")
    warning = getattr(limits, f"warning_partitions_{of_store}")
    cost = estimate(size)
    words = (
        f"{counted(size.partitions, 'partition')} of {counted(size.topics, 'topic')} make metadata of about"
        f" {bytes_in_words(cost.snapshot_bytes, rounded=True)}"
    )
    if cost.load_seconds is not None:
        words += (
            f", which a broker or controller that starts reads in {seconds_in_words(cost.load_seconds, rounded=True)}"
        )
    found = []
    if severity := Severity.beyond(size.partitions, warning=warning, critical=ceiling):
        figures = {"partitions": size.partitions, "ceiling": ceiling, "snapshot_bytes": cost.snapshot_bytes}
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
    return Judgement(findings=tuple(found), quiet=quiet)


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
