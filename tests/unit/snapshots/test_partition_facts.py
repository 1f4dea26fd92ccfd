"""Facts of topics that are too much for their partitions, of a snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.facts.partitions import PartitionedTopic
from pulsar_steward.planners.partitions.facts import Partition
from tests.builders import a_policy
from tests.unit.snapshots.test_bundle_facts import LOWER, NAMESPACE, a_topic, found, planning, put

if TYPE_CHECKING:
    from pathlib import Path

    from pulsar_steward.planners.partitions.facts import PartitionedFact

BASE = f"persistent://{NAMESPACE}/t"
FIRST, SECOND = (f"{BASE}-partition-{index}" for index in range(2))
PERMITS = a_policy(guards={"most_partitions": 8})
TOPICS = [
    a_topic(SECOND, throughput_in_bytes=5.0, consumers=7),
    a_topic(FIRST, throughput_in_bytes=90.4, throughput_out_bytes=90.0),
    a_topic(f"{BASE}-partition-x"),
    a_topic(f"persistent://{NAMESPACE}/tt-partition-0"),
]


def a_subscription(topic: str, name: str, kind: str | None) -> dict[str, Any]:
    """A subscription's row."""
    return {"topic": topic, "namespace": NAMESPACE, "subscription": name, "type": kind, "consumers": 1}


def read(folder: Path, subject: str, check: str = "hot-bundle", **tables: Any) -> tuple[PartitionedFact, ...]:
    """What is read of a snapshot with a finding."""
    place = put(folder, **{"topics": TOPICS, "findings": [found(check, subject)], **tables})
    return planning(place, PERMITS).partitioned


@pytest.mark.parametrize(
    ("check", "subject"),
    [("hot-bundle", f"{NAMESPACE}/{LOWER}"), ("consumer-fanout", FIRST), ("producer-fanout", FIRST)],
)
def test_the_partitions_of_the_topic_that_is_named(folder: Path, check: str, subject: str) -> None:
    """The topic of a finding, or the one that dominates its bundle, comes with all of its loaded partitions."""
    (fact,) = read(folder, subject, check)
    assert (fact.topic, fact.namespace, fact.named_by) == (BASE, NAMESPACE, {subject: FIRST})
    assert fact.partitions == (Partition(0, 180, 1, 0), Partition(1, 5, 1, 7))
    assert fact.state == PartitionedTopic(partitions=2)


def test_what_a_raise_would_meet(folder: Path) -> None:
    """Types of subscriptions, other clusters, compaction and limits are read, the namespace's own limits first."""
    subscriptions = [
        a_subscription(FIRST, "app", "Shared"),
        a_subscription(SECOND, "app", "Failover"),
        a_subscription(FIRST, "new", None),
    ]
    policies = '{"replication_clusters": ["lab", "west"], "compaction_threshold": 1, "max_topics_per_namespace": 9}'
    (fact,) = read(
        folder,
        FIRST,
        "consumer-fanout",
        subscriptions=subscriptions,
        namespaces=[{"namespace": NAMESPACE, "bundles": 2, "boundaries": [], "policies_json": policies}],
        configuration=[
            {"broker": "a:1", "key": "maxNumPartitionsPerPartitionedTopic", "value": "64"},
            {"broker": "a:1", "key": "maxTopicsPerNamespace", "value": "5"},
        ],
    )
    assert fact.state.subscriptions == {"app": "Failover", "new": "None"}
    assert "west" in fact.state.clusters
    assert fact.state.compacted
    assert (fact.state.most_partitions, fact.state.most_topics, fact.state.topics) == (64, 9, 4)


@pytest.mark.parametrize(("check", "subject"), [("hot-bundle", f"{NAMESPACE}/{LOWER}"), ("consumer-fanout", BASE)])
def test_what_no_partition_dominates_is_left_out(folder: Path, check: str, subject: str) -> None:
    """A hot bundle of many even topics, and a topic without partitions, have no facts."""
    even = [a_topic(FIRST), a_topic(SECOND), a_topic(BASE)]
    assert read(folder, subject, check, topics=even) == ()


def test_where_nothing_is_permitted_nothing_is_read(folder: Path) -> None:
    """By default no facts are read, whatever is found."""
    place = put(folder, topics=TOPICS, findings=[found("consumer-fanout", FIRST)])
    assert planning(place, a_policy()).partitioned == ()
