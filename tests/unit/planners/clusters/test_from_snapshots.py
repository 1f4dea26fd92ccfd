"""Facts of the members of a logical cluster, from their snapshots, and what is not known of them."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from pulsar_steward.errors import ConfigurationError
from pulsar_steward.model.units import GIB
from pulsar_steward.planners.clusters.differences import Differences, differences
from pulsar_steward.planners.clusters.from_snapshots import MemberFacts, member_facts
from pulsar_steward.planners.clusters.model import Resource
from pulsar_steward.planners.clusters.whatif import AddedMember, WhatIf, supposed
from pulsar_steward.policy.schema import Policy
from pulsar_steward.snapshots.read import open_snapshot
from tests.cases import cases
from tests.unit.planners.clusters.members import BOOKIE, NOW, Held, write_kafka, write_member

HELD = {
    "acme/orders": Held(30, 30 * GIB, ("east",), ("east", "west")),
    "acme/audit": Held(10, 10 * GIB, ("east",), brokers=("east-0:8080",)),
    "pulsar/system": Held(20, 0, None),
}
ZOOKEEPER = {"source": "zk:7000", "source_kind": "zookeeper", "series": "znode_count", "value": 1000.0}


def facts_of(shelf: Path, cluster: str = "east", held: dict[str, Held] | None = None, **changed: Any) -> MemberFacts:
    """Facts of a member, under the default policy."""
    return member_facts(open_snapshot(write_member(shelf, cluster, held or HELD, **changed)), Policy())


def test_the_ceilings_of_a_member(tmp_path: Path) -> None:
    """Of topics and CPU as brokers carry them after the loss of one; of disks by the fullest one's limit of 85 %."""
    capacity = facts_of(tmp_path, metrics=[BOOKIE, ZOOKEEPER]).capacity
    fixed = {Resource.METADATA_NODES: 12_000_000, Resource.STORED_BYTES: 40 * GIB * 5}
    assert capacity.ceilings() == {Resource.TOPICS: 120, Resource.MILLICPU: 24_000 * 85 * 2 // 300, **fixed}
    assert capacity.ceilings(removed=1) == {Resource.TOPICS: 60, Resource.MILLICPU: 24_000 * 85 // 300, **fixed}
    assert capacity.ceilings(removed=2)[Resource.TOPICS] == 60


def test_the_load_of_a_member(tmp_path: Path) -> None:
    """Load is that of its namespaces and of Pulsar's own topics; CPU goes by bytes, nodes as ZooKeeper counts them."""
    facts = facts_of(tmp_path, metrics=[ZOOKEEPER])
    loads = {each.namespace: each.load for each in facts.holdings}
    assert loads["acme/orders"] == {
        Resource.TOPICS: 30,
        Resource.METADATA_NODES: 30 * 2 + 60 * 2,
        Resource.MILLICPU: 4_800 // 2,
        Resource.STORED_BYTES: 30 * GIB,
    }
    assert facts.own == {
        Resource.TOPICS: 20,
        Resource.METADATA_NODES: 1000 - 40 * 6,
        Resource.MILLICPU: 4_800 // 3,
        Resource.STORED_BYTES: 0,
    }
    assert facts.subscriptions == 80


def test_the_constraints_of_a_namespace(tmp_path: Path) -> None:
    orders, audit = sorted(facts_of(tmp_path).holdings, key=lambda each: each.pinned is not None)
    assert (orders.allowed, orders.pinned) == (frozenset({"east", "west"}), None)
    assert (audit.allowed, audit.pinned) == (None, "isolation policies leave it 1 broker where it is")
    (lost,) = facts_of(tmp_path / "other", held={"a/b": Held(1, 1, None)}, namespaces=[]).holdings
    assert lost.pinned == "its policies could not be read"


def test_of_a_member_with_unread_brokers_nothing_moves(tmp_path: Path) -> None:
    """Neither its load nor its ceilings are known."""
    facts = facts_of(tmp_path, about={"unread_brokers": ["east-9:8080"]})
    assert {each.pinned for each in facts.holdings} == {"brokers of its member could not be read"}
    assert [each.whole for each in supposed([facts], WhatIf()).members] == [False]


@cases(
    "hours, about, topics",
    ("a day", 24, {}, 20),
    ("half a day", 12, {}, 40),
    ("too short", 2, {}, None),
    ("a partial one", 24, {"unread_brokers": ["x:1"]}, None),
)
def test_growth_is_that_of_a_day(tmp_path: Path, hours: int, about: dict[str, Any], topics: int | None) -> None:
    """A namespace that was not there grew by all its topics; a partial snapshot, or one of few hours, says nothing."""
    before = {"acme/orders": Held(10, 10 * GIB, ("east",))}
    write_member(tmp_path, "east", before, taken_at=NOW - timedelta(hours=hours), about=about)
    facts = facts_of(tmp_path)
    growths = {each.namespace: each.growth and each.growth[Resource.TOPICS] for each in facts.holdings}
    assert growths["acme/orders"] == topics
    assert growths["acme/audit"] == (None if topics is None else topics // 2)
    assert any("no growth" in each for each in facts.unknown) is (topics is None)


def test_a_damaged_snapshot_of_the_day_before_says_nothing(tmp_path: Path) -> None:
    before = Path(write_member(tmp_path, "east", HELD, taken_at=NOW - timedelta(days=1)))
    (before / "topics" / "part-0.parquet").write_text("no Parquet")
    assert {each.growth for each in facts_of(tmp_path).holdings} == {None}


@cases(
    "changed, words",
    ("part unread", {"about": {"unread_namespaces": ["a/b"]}}, "east: 1 part could not be read: its load is a lower"),
    ("no processors", {"brokers": [{"broker": "a:1", "read": True, "cpu_percent": 1.0}]}, "no ceiling of CPU"),
    ("no disks", {}, "no ceiling of disks"),
    ("an old one", {}, "only other clusters serve were not kept yet"),
)
def test_what_is_not_known_is_said(tmp_path: Path, changed: dict[str, Any], words: str) -> None:
    usual = {"leader": False, "read_milliseconds": 1}
    rows = {"brokers": [each | usual for each in changed["brokers"]]} if "brokers" in changed else {}
    facts = facts_of(tmp_path, **changed | rows)
    assert any(words in each for each in facts.unknown)
    assert Resource.STORED_BYTES not in facts.capacity.ceilings()


@pytest.fixture
def both(tmp_path: Path) -> list[MemberFacts]:
    """Two members."""
    return [facts_of(tmp_path), facts_of(tmp_path, "west", {"shop/x": Held(5, 5, ("west",))})]


def test_supposed_changes(both: list[MemberFacts]) -> None:
    """Traffic takes CPU along, a new member has its ceiling of topics alone, and regions come from the policy."""
    change = WhatIf(
        added=(AddedMember(name="south", topics=7, region="us"),),
        leaving=frozenset({"west"}),
        removed_brokers={"east": 1},
        traffic=1.5,
        namespaces={"new/n": 3},
    )
    cluster = supposed(both, change, {"east": "eu"}, [["acme", "shop"]])
    east, west, south = cluster.members
    assert (east.region, east.ceilings[Resource.TOPICS], east.own[Resource.MILLICPU]) == ("eu", 60, 2_400)
    assert (west.leaving, south.ceilings, south.region) == (True, {Resource.TOPICS: 7}, "us")
    loads = {each.namespace: each.load for each in cluster.holdings}
    assert loads["acme/orders"][Resource.MILLICPU] == 3_600
    assert loads["new/n"] == {Resource.TOPICS: 3}
    assert cluster.together == (frozenset({"acme", "shop"}),)


@cases(
    "change, words",
    ("no member", WhatIf(leaving=frozenset({"noth"})), "noth is no member: members are east, west"),
    ("no broker left", WhatIf(removed_brokers={"east": 3}), "at least one has to be left"),
    ("a member twice", WhatIf(added=(AddedMember(name="west", topics=1),)), "west is a member already"),
)
def test_what_cannot_be_supposed(both: list[MemberFacts], change: WhatIf, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        supposed(both, change)


def test_one_cluster_by_two_names_is_refused(tmp_path: Path) -> None:
    """Its namespaces would count twice."""
    again = facts_of(tmp_path, "west", about={"pulsar_cluster": "east", "metadata_id": "east"})
    with pytest.raises(ConfigurationError, match="east and west are one cluster"):
        supposed([facts_of(tmp_path), again], WhatIf())


def test_differences_between_members(tmp_path: Path) -> None:
    """Topics of one name clash unless they are replicated; nobody serves a namespace whose policies name no cluster."""
    east = {
        "a/apart": Held(2, 2, ("east",)),
        "a/both": Held(1, 1, ("east", "west")),
        "a/nobody": Held(1, 1, ()),
        "a/untold": Held(1, 1, None),
    }
    west = {"a/apart": Held(3, 3, ("west",)), "a/both": Held(1, 1, ("east", "west"))}
    elsewhere = {"served_elsewhere": ["a/gone", "a/west"], "configuration_store_id": "e" * 16}
    west["a/west"] = Held(1, 1, ("west",))
    uris = [
        write_member(tmp_path, "east", east, about=elsewhere, settings={"brokerDeduplicationEnabled": "true"}),
        write_member(
            tmp_path,
            "west",
            west,
            settings={"brokerDeduplicationEnabled": "false"},
            version="4.0.6",
            about={"configuration_store_id": "f" * 16},
        ),
    ]
    opened = [open_snapshot(uri) for uri in uris]
    found = differences([(member_facts(each, Policy()), each) for each in opened])
    assert [(each.namespace, each.members, each.topics, each.example) for each in found.clashes] == [
        ("a/apart", ("east", "west"), 1, "persistent://a/apart/t")
    ]
    assert found.unserved == ("a/gone", "a/nobody")
    assert {each.name: each.members for each in found.differing} == {
        "brokerDeduplicationEnabled": {"true": ("east",), "false": ("west",)},
        "version": {"4.0.7": ("east",), "4.0.6": ("west",)},
        "configuration store": {"e" * 16: ("east",), "f" * 16: ("west",)},
    }
    alike = open_snapshot(write_member(tmp_path / "other", "north", {}))
    assert differences([(member_facts(alike, Policy()), alike)]) == Differences(clashes=(), unserved=(), differing=())


def kafka_of(shelf: Path, cluster: str, topics: dict[str, int], **changed: Any) -> MemberFacts:
    """Facts of a Kafka cluster, under the default policy."""
    return member_facts(open_snapshot(write_kafka(shelf, cluster, topics, **changed)), Policy())


KAFKA_TOPICS = {"orders": 30, "__transaction_state": 50, "__consumer_offsets": 50}


@cases(
    "settings, ceiling, told",
    ("with KRaft", None, 45_000, False),
    ("with ZooKeeper", {"zookeeper.connect": "zk:2181"}, 45_000, False),
    ("not told", {}, 45_000, True),
)
def test_a_member_of_kafka(tmp_path: Path, settings: dict[str, str] | None, ceiling: int, *, told: bool) -> None:
    """A partition is a topic; its own topics are no load that could go, and each coordinator is a partition."""
    facts = kafka_of(tmp_path, "k1", KAFKA_TOPICS, groups={"app": ["orders"], "b": []}, settings=settings)
    assert [(each.namespace, each.load) for each in facts.holdings] == [("orders", {Resource.TOPICS: 30})]
    assert (facts.own[Resource.TOPICS], facts.subscriptions, facts.coordinators) == (100, 2, 50)
    assert facts.capacity.ceilings() == {Resource.TOPICS: ceiling}
    assert facts.capacity.ceilings(removed=1) == {Resource.TOPICS: ceiling * 2 // 3}
    assert any("no broker told its settings" in each for each in facts.unknown) is told


def test_the_ceiling_of_a_kafka_cluster_with_zookeeper(tmp_path: Path) -> None:
    """It is lower; where no broker tells which it is, the lower one is taken."""
    policy = Policy.model_validate(
        {
            "kafka_partition_ceiling": {
                "warning_partitions_with_zookeeper": 500,
                "critical_partitions_with_zookeeper": 1_000,
            }
        }
    )
    ceilings = [
        member_facts(
            open_snapshot(write_kafka(tmp_path / str(n), "k", {"a": 1}, settings=each)), policy
        ).capacity.ceilings()[Resource.TOPICS]
        for n, each in enumerate((None, {"zookeeper.connect": "zk:2181"}, {}))
    ]
    assert ceilings == [45_000, 1_000, 1_000]


def test_the_growth_of_a_kafka_cluster(tmp_path: Path) -> None:
    write_kafka(tmp_path, "k1", {"orders": 10}, taken_at=NOW - timedelta(days=1))
    (orders,) = kafka_of(tmp_path, "k1", KAFKA_TOPICS).holdings
    assert orders.growth == {Resource.TOPICS: 20}


def test_differences_between_kafka_clusters(tmp_path: Path) -> None:
    """Topics of one name clash, but for each cluster's own; offsets of topics that a member lacks are told."""
    groups = {"app": ["orders", "paid"], "audit": ["paid"], "old": ["gone"], "unread": None}
    uris = [
        write_kafka(tmp_path, "k1", {"orders": 3, "both": 2, "__consumer_offsets": 3}, groups),
        write_kafka(
            tmp_path, "k2", {"paid": 3, "both": 5, "__consumer_offsets": 3}, settings={"min.insync.replicas": "2"}
        ),
    ]
    opened = [open_snapshot(uri) for uri in uris]
    found = differences([(member_facts(each, Policy()), each) for each in opened])
    assert [(each.namespace, each.members, each.topics, each.example) for each in found.clashes] == [
        ("", ("k1", "k2"), 1, "both")
    ]
    assert [(each.member, each.owner, each.groups, each.topics, each.example) for each in found.foreign_positions] == [
        ("k1", None, 1, 1, "gone"),
        ("k1", "k2", 2, 1, "paid"),
    ]
    assert [each.name for each in found.differing] == ["min.insync.replicas"]


def test_members_are_of_one_system(tmp_path: Path) -> None:
    opened = [open_snapshot(write_kafka(tmp_path, "k1", {})), open_snapshot(write_member(tmp_path, "east", {}))]
    with pytest.raises(ConfigurationError, match="k1 is of Kafka and east is of Pulsar: a logical cluster is of one"):
        differences([(member_facts(each, Policy()), each) for each in opened])
    again = kafka_of(tmp_path / "again", "k2", {}, pulsar_cluster="id-k1")
    with pytest.raises(ConfigurationError, match="k1 and k2 are one cluster"):
        supposed([kafka_of(tmp_path / "first", "k1", {}), again], WhatIf())
