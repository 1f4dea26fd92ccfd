"""The model of a Kafka cluster's size, by the article's figures, by what Kafka and ZooKeeper encode, and its rules."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from benchmarks.kafka_size import by_size, comparison
from pulsar_steward.checks.kafka.partition_ceiling import KafkaPartitionCeilingPolicy
from pulsar_steward.model.kafka_size import (
    KafkaOutage,
    KafkaRates,
    KafkaSize,
    KafkaStore,
    estimate,
    read_seconds,
    restore_seconds,
    tell_seconds,
    update_bytes,
)
from tests.cases import cases

ROOT = Path(__file__).resolve().parents[3]
MILLION = 1_000_000
RATES = KafkaRates()
KRAFT = KafkaSize(brokers=100, topics=10_000, partitions=MILLION)
ZOOKEEPER = msgspec.structs.replace(KRAFT, store=KafkaStore.ZOOKEEPER)
OLD = msgspec.structs.replace(ZOOKEEPER, before_2_2=True)


@cases(
    "figure, model, percent",
    ("over 2 million nodes", 2_000_000, estimate(OLD).nodes, 1.5),
    ("a snapshot of about 300 MB", 300e6, estimate(OLD).snapshot_bytes, 19.8),
    ("restored in about 37 s", 37, restore_seconds(MILLION, RATES), 0.1),
    ("about 80 MB for each broker", 80e6, update_bytes(OLD, MILLION), -2.5),
    ("a broker applies it in about 40 s", 40, tell_seconds(MILLION, update_bytes(OLD, MILLION), RATES), 1.6),
    ("28 s by one reader", 28, read_seconds(MILLION, RATES), 0.0),
    ("14 s by five", 14, read_seconds(MILLION, RATES, 5), 0.0),
    ("about 6 s for 200,000 by one", 6, read_seconds(200_000, RATES), -6.6),
)
def test_the_articles_figures(figure: float, model: float, percent: float) -> None:
    """Each figure, and by how many percent the model is above it."""
    assert round(100 * (model / figure - 1), 1) == percent


@cases(
    "encoded, model",
    ("a snapshot of 10,000 topics with 100 partitions, by ZooKeeper 3.9.3", 358_130_861, estimate(OLD).snapshot_bytes),
    ("`UpdateMetadata` of version 4, by Kafka's clients 3.9.1", 78_000_160, update_bytes(OLD, MILLION)),
    ("the same of version 6", 48_230_200, update_bytes(ZOOKEEPER, MILLION)),
    ("records of a KRaft snapshot, by Kafka 4.3.0", 123_666_144, estimate(KRAFT).snapshot_bytes),
)
def test_sizes_are_those_of_the_formats(encoded: int, model: int) -> None:
    """Bytes that the real classes wrote, of the same topics with names of 20 bytes and three replicas."""
    assert model == pytest.approx(encoded, rel=0.005)


def test_the_document_has_the_tables_of_today() -> None:
    """`python -m benchmarks.kafka_size` prints them."""
    page = (ROOT / "docs" / "kafka.md").read_text(encoding="utf-8")
    assert comparison() in page
    assert by_size() in page


def test_readers_share_one_store() -> None:
    """A second reader halves the time; further ones do not shorten it."""
    assert [round(read_seconds(MILLION, RATES, readers)) for readers in (1, 2, 3, 50)] == [28, 14, 14, 14]


def test_kraft_tells_changes_alone_and_has_them_in_memory() -> None:
    """A lost controller costs the time until it is noticed, whatever the size; a lost broker costs its leaders."""
    it, larger = estimate(KRAFT), estimate(msgspec.structs.replace(KRAFT, partitions=2 * MILLION))
    assert (it.update_bytes, it.controller_lost) == (0, KafkaOutage(noticed=3))
    assert it.controller_lost == larger.controller_lost
    assert larger.broker_lost.elected == 2 * it.broker_lost.elected > 0


def test_a_broker_that_is_the_controller_too_costs_both() -> None:
    """One session ends, a new controller is complete, and then it elects leaders."""
    it = estimate(ZOOKEEPER)
    assert it.both_lost == msgspec.structs.replace(it.controller_lost, elected=it.broker_lost.elected)
    assert it.both_lost.seconds > max(it.controller_lost.seconds, it.broker_lost.seconds)


def test_the_fullest_broker_counts() -> None:
    """Its leaders decide how long its loss takes."""
    even = KafkaSize(brokers=4, topics=10, partitions=1_000)
    assert (even.leaders, even.replicas) == (250, 750)
    uneven = msgspec.structs.replace(even, most_leaders=1_000, most_replicas=1_000)
    assert (uneven.leaders, uneven.replicas) == (1_000, 1_000)
    assert estimate(uneven).broker_lost.elected == 4 * estimate(even).broker_lost.elected


def test_a_single_broker_can_be_estimated() -> None:
    """Nobody takes its partitions over."""
    alone = KafkaSize(brokers=1, topics=0, partitions=0, replication_factor=1)
    assert (estimate(alone).nodes, estimate(alone).broker_lost.seconds) == (0, 9)


@cases(
    "partitions, before_2_2, refused",
    ("few enough", 2_170_000, False, False),
    ("too many", 2_180_000, False, True),
    ("before 2.2", 1_350_000, True, True),
)
def test_brokers_refuse_what_is_too_long(partitions: int, before_2_2: bool, refused: bool) -> None:
    """100 MiB by default: then a new controller cannot tell anybody."""
    size = msgspec.structs.replace(ZOOKEEPER, partitions=partitions, before_2_2=before_2_2)
    assert estimate(size).update_refused is refused


def test_an_outage_in_words() -> None:
    """The sum, and its parts that are not 0."""
    assert KafkaOutage(noticed=18, elected=6.4).words == (
        "25 s = 18 s until it is noticed + 6 s until partitions have new leaders"
    )


def test_ceilings_are_those_of_the_store() -> None:
    limits = KafkaPartitionCeilingPolicy()
    ceilings = [limits.critical_partitions_with_zookeeper, limits.critical_partitions_per_cluster]
    assert (ceilings, limits.warning_replicas_per_broker) == ([200_000, 2_000_000], 4_000)
