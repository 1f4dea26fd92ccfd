"""Tables of docs/kafka.md: the model of Kafka's size beside published figures, and by size.

``python -m benchmarks.kafka_size`` prints them.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from pulsar_steward.model.kafka_size import (
    KafkaRates,
    KafkaSize,
    KafkaStore,
    estimate,
    read_seconds,
    restore_seconds,
    tell_seconds,
    update_bytes,
)
from pulsar_steward.model.units import MEGABYTE

ARTICLE = "the article"
RATES = KafkaRates()
MILLION = 1_000_000


class Compared(NamedTuple):
    """A published or measured figure beside the model's; `fitted`: a rate of the model was taken from this figure."""

    what: str
    figure: float
    model: float
    unit: str
    source: str
    fitted: bool = False

    @property
    def deviation(self) -> float:
        """Part of the figure by which the model is above it."""
        return self.model / self.figure - 1


def of_zookeeper(
    brokers: int, partitions: int, replication_factor: float = 3, topics: int = 10_000, *, before_2_2: bool = False
) -> KafkaSize:
    """A cluster with its metadata in ZooKeeper."""
    return KafkaSize(
        brokers=brokers,
        topics=topics,
        partitions=partitions,
        store=KafkaStore.ZOOKEEPER,
        replication_factor=replication_factor,
        before_2_2=before_2_2,
    )


def compared() -> list[Compared]:
    """All comparisons."""
    old = of_zookeeper(100, MILLION, before_2_2=True)
    size, new = of_zookeeper(100, MILLION), KafkaSize(brokers=100, topics=10_000, partitions=MILLION)
    update, snapshot = update_bytes(old, MILLION), estimate(old).snapshot_bytes / MEGABYTE
    linkedin = estimate(of_zookeeper(199, 275_000, 827 / 275)).controller_lost
    early = estimate(of_zookeeper(5, 100_000, 1, 100_000, before_2_2=True)).controller_lost
    later = estimate(of_zookeeper(5, 140_000, 170 / 140, 22_000, before_2_2=True)).controller_lost
    changed = estimate(KafkaSize(brokers=1, topics=100_000, partitions=30_000))
    hundred_thousand = estimate(KafkaSize(brokers=100, topics=1_000, partitions=100_000))
    two_million = KafkaSize(brokers=50, topics=20_000, partitions=2 * MILLION)
    return [
        Compared("nodes of 10,000 topics with 100 partitions", 2e6, estimate(old).nodes, "", f"{ARTICLE}: over"),
        Compared("their snapshot", 300, snapshot, "MB", ARTICLE),
        Compared("the same", 358.1, snapshot, "MB", "written by ZooKeeper 3.9.3"),
        Compared("a million nodes read by one reader", 28, read_seconds(MILLION, RATES), "s", ARTICLE, fitted=True),
        Compared("by five", 14, read_seconds(MILLION, RATES, 5), "s", ARTICLE, fitted=True),
        Compared("200,000 by one", 6, read_seconds(200_000, RATES), "s", ARTICLE),
        Compared("a million partitions restored", 37, restore_seconds(MILLION, RATES), "s", ARTICLE, fitted=True),
        Compared("what a broker is told of them", 80, update / MEGABYTE, "MB", ARTICLE),
        Compared("the same", 78.0, update / MEGABYTE, "MB", "request of version 4 (Kafka 1.0 to 2.1), encoded"),
        Compared(
            "the same since Kafka 2.4", 48.2, update_bytes(size, MILLION) / MEGABYTE, "MB", "of version 6, encoded"
        ),
        Compared("told to a broker, and applied", 40, tell_seconds(MILLION, update, RATES), "s", ARTICLE, fitted=True),
        Compared("275,000 partitions restored", 12.6, linkedin.restored, "s", "linkedin/kafka#373"),
        Compared(
            "and 827,000 replicas prepared",
            64.8,
            linkedin.restored + linkedin.told,
            "s",
            "the same, #377",
            fitted=True,
        ),
        Compared("100,000 partitions, 1 replica each", 17, early.restored + early.told, "s", "apache/kafka#3765"),
        Compared(
            "140,000, 170,000 replicas", 11.1, later.restored + later.told, "s", "apache/kafka#5101: 7.4 and 14.9"
        ),
        Compared(
            "2,000,000, a broker lost uncleanly",
            503,
            estimate(of_zookeeper(50, 2 * MILLION, topics=20_000)).both_lost.seconds,
            "s",
            "Confluent; 50 brokers, 3 replicas assumed",
        ),
        Compared("KRaft: the same", 37, estimate(two_million).both_lost.seconds, "s", "the same"),
        Compared(
            "KRaft: snapshot of a million partitions",
            123.7,
            estimate(new).snapshot_bytes / MEGABYTE,
            "MB",
            "records of Kafka 4.3.0, encoded",
        ),
        Compared(
            "KRaft: of 100,000",
            10,
            hundred_thousand.snapshot_bytes / MEGABYTE,
            "MB",
            "apache/kafka#12884, before KIP-858 added directories",
        ),
        Compared(
            "KRaft: 30,000 partitions get new leaders",
            1.2,
            changed.change_bytes / MEGABYTE,
            "MB",
            "KIP-630, fields alone",
        ),
    ]


SIZES = ((10_000, 10), (100_000, 50), (200_000, 100), (MILLION, 100), (2 * MILLION, 200))
"""Partitions and brokers."""


def comparison() -> str:
    """The table of comparisons."""
    rows = ["| figure | published or measured | model | deviation | source |", "|---|---|---|---|---|"]
    for each in compared():
        unit = f" {each.unit}" if each.unit else ""
        digits = 0 if each.figure >= 100 else 1  # a fourth digit says nothing
        deviation = f"{100 * each.deviation:+.1f} %" + (", taken from it" if each.fitted else "")
        rows.append(
            f"| {each.what} | {each.figure:,.{digits}f}{unit} | {each.model:,.{digits}f}{unit} | {deviation} |"
            f" {each.source} |"
        )
    return "\n".join(rows)


def by_size() -> str:
    """The table by size, with three replicas, 100 partitions a topic, and names of 20 bytes."""
    heads = "partitions, brokers", "metadata in", "nodes or records", "snapshot", "told to each broker"
    lost = "controller lost", "broker lost", "both", "both, five readers"
    rows = [f"| {' | '.join((*heads, *lost))} |", "|---" * (len(heads) + len(lost)) + "|"]
    for partitions, brokers in SIZES:
        size = KafkaSize(brokers=brokers, topics=partitions // 100, partitions=partitions)
        in_zookeeper = msgspec.structs.replace(size, store=KafkaStore.ZOOKEEPER)
        five = f"{estimate(in_zookeeper, readers=5).both_lost.seconds} s"
        for of, name, by_five in ((in_zookeeper, "ZooKeeper", five), (size, "KRaft", "does not read")):
            it = estimate(of)
            told = f"{it.update_bytes / MEGABYTE:,.1f} MB" if it.update_bytes else "changes alone"
            sizes = f"{it.nodes:,}", f"{it.snapshot_bytes / MEGABYTE:,.1f} MB", told
            times = (f"{lost.seconds} s" for lost in (it.controller_lost, it.broker_lost, it.both_lost))
            rows.append(f"| {' | '.join((f'{partitions:,}, {brokers}', name, *sizes, *times, by_five))} |")
    return "\n".join(rows)


if __name__ == "__main__":
    print(f"{comparison()}\n\n{by_size()}")
