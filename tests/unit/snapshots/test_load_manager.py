"""Facts of a snapshot about load managers and partitions."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.facts.load_manager import MANAGER_UNKNOWN, USAGES_UNKNOWN, BrokerUsage, LoadManager
from pulsar_steward.facts.partitions import PartitionedTopic
from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.model import tables
from pulsar_steward.planners.from_snapshot import Moves, planning_facts_of
from pulsar_steward.planners.partitions.facts import Partition, PartitionedFact
from pulsar_steward.policy.schema import Policy
from pulsar_steward.snapshots.read import open_snapshot
from tests.builders import a_policy
from tests.cases import cases, row_by_row
from tests.unit.facts.test_load_manager import EXTENSIBLE, FLOW, HISTORY, MODULAR, RESOURCES
from tests.unit.snapshots.conftest import write
from tests.unit.snapshots.test_bundle_facts import LOWER, NAMESPACE, a_topic, found, planning, put

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pulsar_steward.planners.planning_facts import PlanningFacts

Samples = list[tuple[str, str, float]]
READ = ("a:1", "b:1")


def planned(folder: Path, settings: Mapping[str, Mapping[str, str]], samples: Mapping[str, Samples]) -> PlanningFacts:
    """Facts of a snapshot whose brokers told these settings and samples."""
    configuration = [
        {"broker": broker, "key": key, "value": value} for broker, of in settings.items() for key, value in of.items()
    ]
    metrics = [
        {"source": broker, "source_kind": "broker", "series": series, "value": value}
        | {"labels_json": f'{{"feature":"{feature}"}}' if feature else "{}"}
        for broker, of in samples.items()
        for series, feature, value in of
    ]
    for table, rows in ((tables.CONFIGURATION, configuration), (tables.METRICS, metrics)):
        shutil.rmtree(folder / table.name)
        write(folder, table, rows)
    return planning_facts_of(open_snapshot(str(folder)), Policy(), Moves())


def test_a_calm_cluster(folder: Path) -> None:
    """No usage is read of brokers whose shedding is off."""
    calm = MODULAR | {"loadBalancerSheddingEnabled": "false"}
    facts = planned(folder, dict.fromkeys(READ, calm), {})
    assert facts.load_manager == LoadManager(name="ModularLoadManagerImpl")
    assert facts.usages == USAGES_UNKNOWN


@cases("settings, samples, percent", ("modular", MODULAR, RESOURCES, 50.0), ("extensible", EXTENSIBLE, HISTORY, 35.0))
def test_a_cluster_that_sheds(folder: Path, settings: dict[str, str], samples: Samples, percent: float) -> None:
    """Each broker that was read has a usage, by the figure that its load manager compares."""
    facts = planned(folder, dict.fromkeys(READ, settings), {key: [*samples, *FLOW] for key in READ})
    assert isinstance(facts.load_manager, LoadManager)
    assert facts.load_manager.sheds
    assert facts.usages == tuple(
        BrokerUsage(broker=broker, percent=percent, bytes=3000.0, messages=30.0) for broker in READ
    )


@pytest.mark.parametrize("told", [READ[:1], ()])
def test_a_broker_that_tells_too_little(folder: Path, told: Sequence[str]) -> None:
    """Usages and load manager are unknown if a broker tells no metrics or no settings."""
    facts = planned(folder, dict.fromkeys(READ, MODULAR), {key: [*RESOURCES, *FLOW] for key in told})
    assert facts.usages == USAGES_UNKNOWN
    assert planned(folder, dict.fromkeys(told, MODULAR), {}).load_manager == MANAGER_UNKNOWN


def test_brokers_that_are_set_differently(folder: Path) -> None:
    """The load manager is unknown if the brokers' settings for it differ."""
    settings = {"a:1": MODULAR, "b:1": MODULAR | {"loadBalancerBrokerThresholdShedderPercentage": "50"}}
    assert isinstance(planned(folder, settings, {}).load_manager, Unknown)


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
    return {"topic": topic, "namespace": NAMESPACE, "subscription": name, "type": kind, "consumers": 1}


def read(folder: Path, subject: str, check: str = "hot-bundle", **tables: Any) -> tuple[PartitionedFact, ...]:
    place = put(folder, **{"topics": TOPICS, "findings": [found(check, subject)], **tables})
    return planning(place, PERMITS).partitioned


@row_by_row(
    "check, subject", ("hot-bundle", f"{NAMESPACE}/{LOWER}"), ("consumer-fanout", FIRST), ("producer-fanout", FIRST)
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
