"""Facts for planners of business bundles, of a snapshot and those before it."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from pulsar_steward.facts.isolation import Isolation, LoadOfBroker
from pulsar_steward.facts.room import Usage
from pulsar_steward.model import tables
from pulsar_steward.model.bundles import position_of
from pulsar_steward.model.setting import SettingName
from pulsar_steward.planners.bundles.facts import BrokerLimits, BundleFacts, Busy, Load
from pulsar_steward.planners.from_snapshot import Moves, planning_facts_of
from pulsar_steward.snapshots.read import open_snapshot
from tests.builders import a_policy, equal_ranges
from tests.cases import row_by_row
from tests.unit.planners.bundles.scenes import names_in
from tests.unit.snapshots.conftest import FINDING, META, write

if TYPE_CHECKING:
    from pathlib import Path

    from pulsar_steward.planners.planning_facts import PlanningFacts
    from pulsar_steward.policy.schema import Policy

NAMESPACE = "shop/orders"
LOWER, UPPER = (str(bundle) for bundle in equal_ranges(2))
TOPICS = list(islice(names_in(equal_ranges(2)[0]), 4))
POSITIONS = sorted(position_of(name) for name in [*TOPICS, "persistent://shop/orders/not-loaded"])
TAKEN_AT = datetime(2026, 1, 1, tzinfo=UTC)
SMALL = a_policy(
    bundle_topic_skew={"warning_topics_per_bundle": 3},
    bundle_split_remedy={"least_topics": 2},
    bundle_balance_remedy={"least_snapshots": 1},
)


def a_row(bundle: str = LOWER, **fields: Any) -> dict[str, Any]:
    """A bundle on broker a with four topics."""
    usual = {
        "namespace": NAMESPACE,
        "bundle": bundle,
        "owner": "a:1",
        "owner_known": True,
        "topics": 4,
        "producers": 2,
        "consumers": 3,
        "message_rate_in": 1.25,
        "message_rate_out": 2.5,
        "throughput_in_bytes": 100.4,
        "throughput_out_bytes": 200.4,
        "positions": POSITIONS if bundle == LOWER else None,
    }
    return usual | fields


def a_topic(name: str, **fields: Any) -> dict[str, Any]:
    """A loaded topic of the lower bundle."""
    usual = {"topic": name, "namespace": NAMESPACE, "bundle": LOWER, "broker": "a:1"}
    figures = {"producers": 1, "consumers": 0, "subscriptions": 1, "backlog_bytes": 0, "throughput_in_bytes": 10.0}
    return usual | figures | fields


def found(check_id: str, subject: str) -> dict[str, Any]:
    """A finding's row."""
    return FINDING | {
        "check_id": check_id, "severity": "warning", "subject": subject, "first_seen": TAKEN_AT, "snapshots_in_a_row": 1
    }  # fmt: skip


USUAL: dict[str, list[dict[str, Any]]] = {
    "bundles": [a_row(), a_row(UPPER, owner="b:1", topics=1), a_row(namespace="pulsar/east/a:1", topics=1)],
    "topics": [a_topic(name) for name in TOPICS],
    "namespaces": [{"namespace": NAMESPACE, "bundles": 2, "boundaries": [], "policies_json": "{}"}],
    "brokers": [
        {"broker": name, "read": True, "leader": False, "read_milliseconds": 3} for name in ("a:1", "b:1", "c:1")
    ],
    "findings": [found("bundle-topic-skew", NAMESPACE)],
}


def put(folder: Path, minutes_before: int = 0, **rows: list[dict[str, Any]]) -> Path:
    """A snapshot beside that of `folder`, so much earlier; the tables that are named have other rows."""
    taken_at = TAKEN_AT - timedelta(minutes=minutes_before)
    place = folder.parent / f"taken_at={taken_at:%Y%m%dT%H%M%SZ}"
    shutil.rmtree(place, ignore_errors=True)
    meta = META | {"taken_at": taken_at, "unread_brokers": []}
    every = {"snapshot": [meta], **USUAL, **rows}
    for table in (*tables.COLLECTED, *tables.DIAGNOSED):
        write(place, table, every.get(table.name, []))
    (place / "_SUCCESS").touch()
    return place


def planning(place: Path, policy: Policy = SMALL) -> PlanningFacts:
    return planning_facts_of(open_snapshot(str(place)), policy, Moves())


def test_crowded_bundles_with_their_topics_and_positions(folder: Path) -> None:
    """A crowded namespace's facts hold the bundles that may need a split with their topics, and count the others."""
    (crowd,) = planning(put(folder)).bundles.crowds

    assert (crowd.namespace, crowd.bundles, crowd.topics, crowd.rest_topics) == (NAMESPACE, 2, 5, 1)
    (suspect,) = crowd.suspects
    assert (suspect.bundle, suspect.owner, suspect.positions) == (LOWER, "a:1", tuple(POSITIONS))
    assert suspect.load == Load(topics=4, bytes=301, messages=4, producers=2, consumers=3)
    assert sorted(topic.topic for topic in suspect.topics) == sorted(TOPICS)
    assert all((topic.position, topic.bytes) == (position_of(topic.topic), 10) for topic in suspect.topics)


def test_a_hot_bundle_with_what_it_is_compared_with(folder: Path) -> None:
    """A hot bundle's facts hold the load of all owned bundles without heartbeats, and the limits of its owner."""
    limits = [
        {"broker": "a:1", "key": "loadBalancerNamespaceBundleMaxBandwidthMbytes", "value": "100"},
        {"broker": "a:1", "key": "loadBalancerNamespaceBundleMaxSessions", "value": "1000"},
        {"broker": "b:1", "key": "loadBalancerNamespaceBundleMaxSessions", "value": "7"},
    ]
    place = put(folder, findings=[found("hot-bundle", f"{NAMESPACE}/{UPPER}")], configuration=limits)

    facts = planning(place).bundles

    assert [suspect.bundle for suspect in facts.crowds[0].suspects] == [UPPER]
    of_all = {"all_bytes": 602, "all_clients": 10, "brokers": 2}
    assert facts.busy == Busy(bytes=602, with_bytes=2, clients=10, with_clients=2, **of_all)
    assert facts.limits == {"b:1": BrokerLimits(clients=7)}


def test_without_findings_nothing_is_read(folder: Path) -> None:
    """No bundle facts are read if all findings are about transaction coordinators or their namespace."""
    place = put(folder, findings=[found("bundle-topic-skew", "pulsar/system"), found("tc-skew", "lab")])

    assert planning(place).bundles == BundleFacts()


def test_the_load_over_several_snapshots(folder: Path) -> None:
    """The load facts hold mean, peak and present load of brokers and of bundles that stayed, without heartbeats."""
    put(folder, 20, bundles=[a_row(topics=1, throughput_in_bytes=0.0), a_row(UPPER, owner="a:1", topics=3)])
    put(folder, 10, bundles=[a_row(topics=7, throughput_in_bytes=1000.0), a_row(UPPER, owner="b:1", topics=2)])
    place = put(folder, findings=[found("broker-load-skew", "a:1")])

    load = planning(place).bundles.load

    assert load is not None
    assert (load.snapshots, load.moved, [each.broker for each in load.brokers]) == (3, 1, ["a:1", "b:1", "c:1"])
    (stay,) = load.stays
    assert (stay.namespace, stay.bundle, stay.owner) == (NAMESPACE, LOWER, "a:1")
    assert (stay.mean.topics, stay.peak.topics, stay.now.topics) == (4, 7, 4)
    assert (stay.mean.bytes, stay.peak.bytes, stay.now.bytes) == (567, 1200, 301)
    assert [each.mean.topics for each in load.brokers] == [4, 2, 0]
    assert [each.now.topics for each in load.brokers] == [4, 1, 0]


@row_by_row(
    "before, expected",
    ([(10, []), (20, [])], 3),
    ([(10, ["a:1"]), (20, [])], 2),
    ([(10, []), (600, [])], 2),
    ([(number, []) for number in range(1, 9)], 6),
)
def test_which_snapshots_are_looked_at(folder: Path, before: list[tuple[int, list[str]]], expected: int) -> None:
    """The load facts use whole snapshots within the time window, and no more of them than the policy says."""
    for minutes, unread in before:
        meta = META | {"taken_at": TAKEN_AT - timedelta(minutes=minutes), "unread_brokers": unread}
        put(folder, minutes, snapshot=[meta])
    load = planning(put(folder, findings=[found("broker-load-skew", "a:1")])).bundles.load

    assert load is not None
    assert load.snapshots == expected


def test_too_few_snapshots_are_only_counted(folder: Path) -> None:
    """The load facts hold the number of snapshots and nothing else if there are too few snapshots."""
    place = put(folder, findings=[found("broker-load-skew", "a:1")])

    load = planning(place, a_policy()).bundles.load

    assert load is not None
    assert (load.snapshots, load.brokers, load.stays) == (1, (), ())


def test_brokers_that_take_part(folder: Path) -> None:
    """Draining brokers are left out of the load facts, which hold the allowed brokers of isolated namespaces."""
    namespaces = [USUAL["namespaces"][0] | {"allowed_brokers": ["a:1", "c:1"]}]
    policy = a_policy(brokers={"draining": ["b:1"]}, bundle_balance_remedy={"least_snapshots": 1})

    load = planning(
        put(folder, findings=[found("broker-load-skew", "a:1")], namespaces=namespaces), policy
    ).bundles.load

    assert load is not None
    assert [each.broker for each in load.brokers] == ["a:1", "c:1"]
    assert load.allowed == {NAMESPACE: ("a:1", "c:1")}


def test_what_drains(folder: Path) -> None:
    """One snapshot suffices for the drain facts: bundles with topics, loads and resources of brokers, and isolation."""
    rows = [
        *USUAL["bundles"],
        a_row("0x00000000_0xffffffff", namespace="pulsar/system", producers=None, consumers=None, topics=3),
        a_row("0x00000000_0xffffffff", namespace="shop/idle", topics=0),
    ]
    brokers = [row | {"cpu_percent": 12.5, "direct_memory_percent": 3.0} for row in USUAL["brokers"]]
    namespaces = [USUAL["namespaces"][0] | {"allowed_brokers": ["a:1", "c:1"]}]
    place = put(
        folder, findings=[found("broker-draining", "a:1")], bundles=rows, brokers=brokers, namespaces=namespaces
    )
    policy = a_policy(brokers={"draining": ["a:1"]})
    facts = planning(place, policy).bundles
    drain = facts.drain

    assert drain is not None
    assert list(drain.leaving) == ["pulsar/system/0x00000000_0xffffffff", f"{NAMESPACE}/{LOWER}"]
    assert drain.leaving[f"{NAMESPACE}/{LOWER}"].now.topics == 4
    assert drain.idle == {"a:1": 1}
    assert [(each.broker, each.now.topics) for each in drain.brokers] == [("a:1", 7), ("b:1", 1), ("c:1", 0)]
    assert drain.resources["b:1"] == Usage(cpu=12.5, direct_memory=3.0)
    assert drain.allowed == {NAMESPACE: ("a:1", "c:1")}
    assert (facts.allowed(NAMESPACE), facts.allowed("shop/idle")) == (("a:1", "c:1"), None)


def test_the_risks_of_what_drains_are_known(folder: Path) -> None:
    """The risk figures include a topic near its quota in a bundle that leaves a draining broker."""
    told = [USUAL["namespaces"][0] | {"policies_json": msgspec.json.encode(QUOTA).decode()}]
    topics = [a_topic(TOPICS[0], backlog_bytes=900)]
    place = put(folder, findings=[found("broker-draining", "a:1")], namespaces=told, topics=topics)
    facts = planning(place, a_policy(brokers={"draining": ["a:1"]})).bundles
    assert [each.topic for each in facts.risks.figures[f"{NAMESPACE}/{LOWER}"]] == [TOPICS[0]]


def test_loads_that_groups_divide(folder: Path) -> None:
    """Topics and throughput by namespace, without heartbeats; of a broker that told no topics, none are known."""
    told = [
        dict(row, topics=topics, cpu_percent=12.5) for row, topics in zip(USUAL["brokers"], (5, 1, None), strict=True)
    ]
    meta = META | {"taken_at": TAKEN_AT, "unread_brokers": [], "isolation_json": "{}"}
    isolation = planning(
        put(folder, findings=[found("broker-groups", "shop")], brokers=told, snapshot=[meta])
    ).isolation

    assert isinstance(isolation, Isolation)
    assert isolation.loads == {
        "a:1": LoadOfBroker(topics={NAMESPACE: 4}, bytes={NAMESPACE: 301.0}, used=Usage(cpu=12.5)),
        "b:1": LoadOfBroker(topics={NAMESPACE: 1}, bytes={NAMESPACE: 301.0}, used=Usage(cpu=12.5)),
        "c:1": LoadOfBroker(bytes={}, used=Usage(cpu=12.5)),
    }


QUOTA = {
    "backlog_quota_map": {
        "destination_storage": {"limitSize": 1000, "limitTime": -1, "policy": "producer_request_hold"}
    }
}


def samples(**figures: float) -> dict[str, Any]:
    """Samples of the owner's metrics of the backlog, by the ends of their names."""
    usual = {"source": "a:1", "source_kind": "broker", "topic": TOPICS[0]}
    series = {"delayed": "pulsar_delayed_message_index_size_bytes"}
    return {
        "metrics": [
            usual | {"series": series.get(name, f"pulsar_storage_backlog_{name}"), "value": value}
            for name, value in figures.items()
        ]
    }


@row_by_row(
    "topic, rows, expected",
    ({"backlog_bytes": 899}, {}, None),
    ({"backlog_bytes": 900}, {}, {"backlog_bytes": 900, "limit_bytes": None}),
    ({"backlog_bytes": 900, "subscriptions": 0}, {}, {"backlog_bytes": 900, "subscriptions": ()}),
    ({"backlog_bytes": 90}, samples(quota_limit=100.0), {"limit_bytes": 100, "limit_seconds": -1}),
    ({"backlog_bytes": 5000}, samples(quota_limit=-1.0), None),
    ({"backlog_bytes": 1}, samples(quota_limit_time=60.0, age_seconds=59.0), {"limit_seconds": 60, "age_seconds": 59}),
    # Of sizes a limit of 0 is used up at all times, of ages it is none.
    ({"backlog_bytes": 0}, samples(quota_limit=0.0), {"limit_bytes": 0}),
    ({"backlog_bytes": 0}, samples(quota_limit_time=0.0, age_seconds=59.0), None),
    ({}, samples(delayed=7.0), {"delayed_index_bytes": 7}),
    ({}, {"subscriptions": [{"backlog_entries": 0}]}, None),
    ({}, {"subscriptions": [{"backlog_entries": 0, "ack_holes": 1}]}, {"subscriptions": (("s", 1),)}),
    ({}, {"subscriptions": [{}]}, {"subscriptions": (("s", 0),)}),
)
def test_only_topics_with_a_hazard_are_told_of(
    folder: Path, topic: dict[str, Any], rows: dict[str, Any], expected: dict[str, Any] | None
) -> None:
    """Only topics near a quota, with a delayed index, or with what somebody has to read are in the risk figures."""
    subscriptions = [
        {"topic": TOPICS[0], "namespace": NAMESPACE, "subscription": "s", "backlog_entries": 1} | row
        for row in rows.get("subscriptions", [])
    ]
    namespaces = [USUAL["namespaces"][0] | {"policies_json": msgspec.json.encode(QUOTA).decode()}]
    topics = [a_topic(TOPICS[0], **topic), *USUAL["topics"][1:]]
    place = put(
        folder, topics=topics, namespaces=namespaces, metrics=rows.get("metrics", []), subscriptions=subscriptions
    )
    risks = planning(place).bundles.risks

    assert risks.around[NAMESPACE].quotas[SettingName.SIZE_QUOTA].limit_bytes == 1000
    if expected is None:
        assert risks.figures == {}
        return
    (figures,) = risks.figures[f"{NAMESPACE}/{LOWER}"]
    told = {
        name: tuple((each.subscription, each.holes) for each in value) if name == "subscriptions" else value
        for name, value in msgspec.structs.asdict(figures).items()
    }
    assert figures.topic == TOPICS[0]
    assert told == told | expected


def test_replication_by_a_topics_own_policy_alone_is_a_risk(folder: Path) -> None:
    """Only clusters that the namespace does not name are told; where nothing of its policies is, all are."""
    remotes = [{"cluster": name, "connected": True, "backlog_entries": 7} for name in ("west", "north")]
    topics = [
        a_topic(TOPICS[0], replication_json=msgspec.json.encode(remotes).decode()),
        a_topic(TOPICS[1], replication_json=msgspec.json.encode(remotes[:1]).decode()),
    ]
    policies = msgspec.json.encode({"replication_clusters": ["east", "west"]}).decode()
    for told, expected in (
        (policies, {TOPICS[0]: ["north"]}),
        (None, {TOPICS[0]: ["west", "north"], TOPICS[1]: ["west"]}),
    ):
        namespaces = [USUAL["namespaces"][0] | {"policies_json": told}]
        risks = planning(put(folder, topics=topics, namespaces=namespaces)).bundles.risks
        seen = {each.topic: each.replicated for each in risks.figures[f"{NAMESPACE}/{LOWER}"]}
        assert {name: [each.cluster for each in clusters] for name, clusters in seen.items()} == expected
        assert {each.entries for clusters in seen.values() for each in clusters} == {7}


def test_what_brokers_do_is_in_force_for_all(folder: Path) -> None:
    """The limit of persisted ack holes and the place of delayed indexes are read from the brokers' configuration."""
    configuration = [
        {"broker": "a:1", "key": "managedLedgerMaxUnackedRangesToPersist", "value": "5"},
        {
            "broker": "a:1",
            "key": "delayedDeliveryTrackerFactoryClassName",
            "value": "org.apache.pulsar.broker.delayed.BucketDelayedDeliveryTrackerFactory",
        },
    ]
    around = planning(put(folder, configuration=configuration)).bundles.risks.around[NAMESPACE]

    assert (around.kept_acks.holes, around.index_in_memory) == (5, False)
