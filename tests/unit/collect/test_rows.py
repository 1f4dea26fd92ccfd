"""Rows of a snapshot's tables, made of brokers' documents."""

from __future__ import annotations

import json
import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lab.simulator import (
    Answer,
    ClusterSpec,
    Fault,
    NamespaceSpec,
    ReplicatorSpec,
    Simulator,
    SubscriptionSpec,
    TopicSpec,
)
from lab.simulator import running_simulator as running
from lab.simulator.brokers import default_configuration
from lab.simulator.stats import replicator
from pulsar_steward.apply.live_topics import _figures
from pulsar_steward.collect.arrow import UNREAD, answer_schema, as_answer
from pulsar_steward.collect.broker import KEPT, SWITCHES, kept
from pulsar_steward.collect.bundles import BundleSum, SystemBundle, as_owned_now, owned_by_namespace, placement, worst
from pulsar_steward.collect.pending import Recent
from pulsar_steward.collect.rows import BATCH_ROWS, Rows
from pulsar_steward.collect.topics import TopicRows
from pulsar_steward.model.bundles import BundleRange, position_of, ranges_of
from pulsar_steward.model.tables import COLLECTED, DIAGNOSED, NAMESPACES, Table
from pulsar_steward.policy.schema import CollectPolicy
from pulsar_steward.pulsar.statistics import BundleStatistics, TopicStatistics, bundles_in
from pulsar_steward.snapshots.database import schema_of
from tests.cases import row_by_row
from tests.unit.collect.test_reading import OF_OTHER_VERSIONS, read_first


def test_an_answer_is_of_one_table_only() -> None:
    """An answer holds the rows of one table, and nulls for the other tables."""
    rows = Rows(UNREAD)
    rows.add(["a/b", "c/d"], ["refused", None])

    batch = as_answer(next(rows.rest()), (NAMESPACES, UNREAD))

    assert batch.schema == answer_schema((NAMESPACES, UNREAD))
    assert batch["namespaces"].null_count == 2
    assert batch["unread"].to_pylist() == [{"name": "a/b", "failure": "refused"}, {"name": "c/d", "failure": None}]


@pytest.mark.parametrize("count", [0, 1, BATCH_ROWS - 1, BATCH_ROWS, BATCH_ROWS + 1, 3 * BATCH_ROWS])
def test_batches_stay_bounded_and_lose_nothing(count: int) -> None:
    rows = Rows(UNREAD)
    rows.add([str(number) for number in range(count)], [None] * count)

    batches = [piece.rows for piece in (*rows.full(), *rows.rest())]

    assert all(0 < batch.num_rows <= BATCH_ROWS for batch in batches)
    assert [name for batch in batches for name in batch["name"].to_pylist()] == [str(number) for number in range(count)]


@pytest.mark.parametrize("table", [*COLLECTED, *DIAGNOSED], ids=lambda table: table.name)
def test_every_table_has_an_arrow_schema(table: Table) -> None:
    assert tuple(schema_of(table).names) == table.names


def test_columns_of_unequal_number_are_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        Rows(UNREAD).add(["a/b"])


TOPIC = TopicSpec("t", partitions=40, subscriptions=(SubscriptionSpec("s", consumers=1),))
SPEC = ClusterSpec(namespaces=(NamespaceSpec("acme/orders", topics=(TOPIC,), owner=0),), tc_owner=0)


def positions(cluster: Simulator, **policy: Any) -> dict[str, list[int]]:
    """Positions that the bundles of the namespace carry, by range; the keywords are those of `CollectPolicy`."""
    rows = read_first(cluster, **policy)["bundles"]
    return {row["bundle"]: row["positions"] for row in rows if row["namespace"] == "acme/orders" and row["positions"]}


def calls(cluster: Simulator) -> list[str]:
    """The questions about bundles of the namespace, so far."""
    return [
        call.path for call in cluster.requests.all() if "acme/orders" in call.path and "topicHashPositions" in call.path
    ]


@row_by_row(
    "policy, bundles",
    ({}, 0),
    ({"positions_from_topics": 2}, 4),
    ({"positions_from_topics": 2, "positions_bundles": 1}, 1),
    ({"positions_from_topics": 2, "positions_bundles": 0}, 0),
    ({"positions_from_clients": 1}, 4),
)
def test_bundles_are_asked_for_as_the_policy_bounds_it(policy: dict[str, int], bundles: int) -> None:
    """Bundles are asked for hash positions only from the policy's size on, and only as many as it permits."""
    with running(SPEC) as cluster:
        found = positions(cluster, **policy)

        assert len(found) == len(calls(cluster)) == bundles
    for bundle, places in found.items():
        lower, upper = (int(end, 16) for end in bundle.split("_"))
        assert places == sorted(places)
        assert all(lower <= place <= upper for place in places)


@pytest.mark.parametrize(("effect", "asked"), [(Answer(500), 4), (Answer(412, "Failed to find ownership"), 4)])
def test_a_bundle_that_cannot_be_asked_for_is_left_out(effect: Answer, asked: int) -> None:
    """A bundle whose positions cannot be read has none, and its broker is still read."""
    with running(SPEC) as cluster:
        cluster.faults.add(Fault(effect, path="acme/orders/.*/topicHashPositions", times=None))
        found = read_first(cluster, positions_from_topics=2)

        assert found["brokers"][0]["read"]
        assert len(calls(cluster)) == asked
    assert [row["positions"] for row in found["bundles"] if row["namespace"] == "acme/orders"] == [None] * 4


def test_the_worst_first_by_what_they_have_most_of() -> None:
    """Bundles furthest above a limit come first. Bundles of coordinators or with a single topic are left out."""
    sums = {
        ("a/b", "1"): BundleSum(topics=150),
        ("a/b", "2"): BundleSum(topics=2, consumers=5000),
        ("a/b", "3"): BundleSum(topics=2, throughput_in=15e6, throughput_out=15e6),
        ("a/b", "4"): BundleSum(topics=99, producers=499, throughput_in=9e6),
        ("a/b", "5"): BundleSum(topics=1, consumers=9000),
        ("pulsar/system", "1"): BundleSum(topics=9000),
    }
    assert [bundle for _, bundle in worst(sums, CollectPolicy())] == ["2", "3", "1"]


ALL = "0x00000000_0xffffffff"
NAN = float("nan")
CONSUMER = {"consumerName": "c", "availablePermits": 0, "unackedMessages": 5, "msgRateOut": NAN, "messageAckRate": 0.0}
SUBSCRIPTION: dict[str, Any] = {"consumers": [CONSUMER], "type": "Shared", "msgBacklog": 9, "msgRateOut": NAN}
UNCOUNTED: dict[str, Any] = {"publishers": [], "replication": {}, "producerCount": 2, "msgRateIn": NAN}
TOPICS = {
    "persistent://a/b/c": {**UNCOUNTED, "subscriptions": {"s": SUBSCRIPTION}},
    "persistent://a/b/d": {**UNCOUNTED, "subscriptions": {}, "msgRateIn": 7.0},
}
DOCUMENT = json.dumps({"a/b": {ALL: {"persistent": TOPICS}}}).encode()


def test_a_rate_that_is_no_number_is_null_and_adds_nothing() -> None:
    """All other figures are kept; a consumer without a known rate is not stuck; its bundle has the others' rates."""
    rows = TopicRows("x:8080", Recent(datetime(2026, 1, 1, tzinfo=UTC), 10), 3)
    for each in bundles_in(DOCUMENT, "x:8080"):
        rows.add(each.namespace, each.bundle, each.topics)

    told = {batch.table.name: batch.rows.to_pylist() for batch in rows.rest()}

    assert [row["message_rate_in"] for row in told["topics"]] == [None, 7.0]
    (subscription,), (client,) = told["subscriptions"], told["clients"]
    assert (subscription["message_rate_out"], subscription["backlog_entries"]) == (None, 9)
    assert (subscription["consumers_without_permits"], subscription["consumers_stuck"]) == (1, 0)
    assert (client["message_rate_out"], client["unacked_messages"]) == (None, 5)
    assert (rows.sums["a/b", ALL].rate_in, rows.sums["a/b", ALL].producers) == (7.0, 4)


def test_a_rate_that_is_no_number_is_not_known_for_a_move() -> None:
    """It is neither 0, as then nothing would be lost, nor any other number that somebody could approve."""
    (bundle,) = bundles_in(DOCUMENT, "x:8080")
    assert [_figures(name, each, {}).rate_in for name, each in bundle.topics.items()] == [None, 7.0]


SECRET = re.compile(r"(?i)pass|token|secret|credential|auth|param|key(store|file|path)|private|sasl|url|path|file")


def test_no_setting_that_may_hold_a_secret_is_kept() -> None:
    assert {key for key in KEPT if SECRET.search(key)} == SWITCHES


def test_of_a_broker_that_tells_its_passwords_none_is_kept() -> None:
    """The kept settings hold no secret, although every setting that is not on the list contains one."""
    told = {key: value if key in KEPT else "s3cr3t" for key, value in default_configuration().items()}
    told |= dict.fromkeys(SWITCHES, "s3cr3t")
    told |= {"brokerClientAuthenticationParameters": "token:s3cr3t", "managedLedgerPassword": "s3cr3t"}

    found = kept(told)

    assert not [value for value in found.values() if "s3cr3t" in value]
    assert found.keys() <= KEPT


def test_the_names_are_those_of_a_real_broker() -> None:
    """Every kept setting is one that a broker of 4.0.7 has, except for those of other versions."""
    there = sorted(KEPT - OF_OTHER_VERSIONS)
    assert kept(default_configuration()) == {key: default_configuration()[key] for key in there}


SIXTEEN = ranges_of([hex(min(number * 0x10000000, 0xFFFFFFFF)) for number in range(17)])


def test_sixteen_coordinators_fall_into_eight_of_sixteen_bundles() -> None:
    """The computed counts of coordinators by bundle are those of a real cluster: 3, 3, 2, 2, 2, 2, 1, 1."""
    placed = placement(16, [SystemBundle(str(each), "a:1", owner_known=True) for each in SIXTEEN])

    assert sorted(Counter(each.bundle for each in placed).values()) == [1, 1, 2, 2, 2, 2, 3, 3]
    assert {each.broker for each in placed} == {"a:1"}
    assert [each.coordinator for each in placed] == list(range(16))


def test_an_owned_half_counts_before_the_bundle_that_it_was_cut_from() -> None:
    """A coordinator is placed in the owned half of a split bundle rather than in the whole bundle without owner."""
    whole = SystemBundle(str(BundleRange(0, 0xFFFFFFFF)), None, owner_known=True)
    half = SystemBundle(str(BundleRange(0, 0x80000000)), "a:1", owner_known=True)

    placed = placement(16, [whole, half])

    inside = [each.position < 0x80000000 for each in placed]
    assert (len(inside), set(inside)) == (16, {True, False})
    assert [(each.bundle, each.broker) for each in placed] == [
        (half.bundle, "a:1") if lower else (whole.bundle, None) for lower in inside
    ]


def test_a_coordinator_in_no_known_bundle_is_unknown() -> None:
    assert [(each.bundle, each.broker, each.broker_known) for each in placement(2, [])] == [(None, None, False)] * 2


def test_a_bundle_that_an_unread_broker_may_own_leaves_its_coordinators_unknown() -> None:
    (first,) = placement(1, [SystemBundle("0x00000000_0xffffffff", None, owner_known=False)])

    assert (first.bundle, first.broker, first.broker_known) == ("0x00000000_0xffffffff", None, False)


WHOLE, LOWER, UPPER = "0x00000000_0xffffffff", "0x00000000_0x80000000", "0x80000000_0xffffffff"
OWNED = {
    f"persistent://acme/orders/t-{number}": TopicStatistics(
        subscriptions={}, publishers=[], replication={}, producer_count=number
    )
    for number in range(20)
}
STATISTICS = BundleStatistics("acme/orders", WHOLE, OWNED)


def test_a_bundle_that_is_still_owned_is_as_it_was() -> None:
    """A bundle that the broker still owns with the same range keeps its statistics as they are."""
    owned = owned_by_namespace([f"acme/orders/{WHOLE}"])

    assert list(as_owned_now(STATISTICS, owned)) == [(WHOLE, OWNED)]


def test_a_bundle_that_was_split_hands_its_topics_to_the_halves() -> None:
    owned = owned_by_namespace([f"acme/orders/{LOWER}", f"acme/orders/{UPPER}"])

    found = dict(as_owned_now(STATISTICS, owned))

    lower = {topic: figures for topic, figures in OWNED.items() if position_of(topic) < 0x80000000}
    upper = {topic: figures for topic, figures in OWNED.items() if topic not in lower}
    assert 0 < len(lower) < len(OWNED)
    assert found == {LOWER: lower, UPPER: upper}


def test_a_bundle_that_went_elsewhere_takes_its_topics_along() -> None:
    """Topics outside the bundles that the broker owns now are left out."""
    lower_only = owned_by_namespace([f"acme/orders/{LOWER}", f"other/orders/{WHOLE}"])

    ((bundle, topics),) = as_owned_now(STATISTICS, lower_only)

    assert bundle == LOWER
    assert set(topics) == {topic for topic in OWNED if position_of(topic) < 0x80000000}
    assert list(as_owned_now(STATISTICS, {})) == []


def test_heartbeat_namespaces_of_three_parts_are_read() -> None:
    assert list(owned_by_namespace([f"pulsar/local/127.0.0.1:8080/{WHOLE}"])) == ["pulsar/local/127.0.0.1:8080"]


TAKEN_AT = datetime(2026, 3, 1, 0, 5, tzinfo=UTC)


@row_by_row(
    "written, expected",
    ("2026-02-28T23:55:00.000000001Z", True),
    ("2026-02-28T23:54:59.999999999Z", False),
    ("2026-03-01T00:04:59Z", True),
    ("2026-03-01T00:55:00.123+01:00", True),
    ("2026-03-01T00:54:59.123+01:00", False),
    ("2026-02-28T18:25:00-05:30", True),
    ("2026-02-28T18:24:59.9-05:30", False),
    ("2027-01-01T00:00:00Z", True),
    ("", False),
    ("yesterday", False),
)
def test_a_time_is_compared_in_the_zone_that_it_was_written_in(written: str, *, expected: bool) -> None:
    """A client is recent from ten minutes before the snapshot on, in any time zone. Other text is not recent."""
    recent = Recent(TAKEN_AT, 10)

    assert recent.holds(written) is expected
    assert written >= recent.earliest or not expected


@pytest.mark.parametrize("offset", ["+14:00", "-12:00", "+18:00", "-18:00"])
def test_the_earliest_time_holds_for_every_zone(offset: str) -> None:
    """A client that connected exactly ten minutes before the snapshot is recent in every time zone."""
    zone = datetime.fromisoformat(f"2026-01-01T00:00:00{offset}").tzinfo
    recent, written = Recent(TAKEN_AT, 10), (TAKEN_AT - timedelta(minutes=10)).astimezone(zone).isoformat()

    assert written >= recent.earliest
    assert recent.holds(written)


def replicated(**replication: object) -> list[str | None]:
    """Column `replication_json` of two topics, of which the second is replicated like this."""
    topic = {"publishers": [], "subscriptions": {}, "replication": {}, "producerCount": 0}
    topics = {"persistent://a/b/c": topic, "persistent://a/b/d": {**topic, "replication": replication}}
    document = json.dumps({"a/b": {ALL: {"persistent": topics}}}).encode()
    rows = TopicRows("x:8080", Recent(datetime(2026, 1, 1, tzinfo=UTC), 10), 3)
    for each in bundles_in(document, "x:8080"):
        rows.add(each.namespace, each.bundle, each.topics)
    told = [row for batch in rows.rest() if batch.table.name == "topics" for row in batch.rows.to_pylist()]
    return [row["replication_json"] for row in told]


def test_what_brokers_tell_of_each_remote_cluster_is_kept() -> None:
    specs = (ReplicatorSpec("west", 7, connected=False), ReplicatorSpec("east", 0, rate_out=2.5, expired_rate=1.0))
    none, both = replicated(**{each.cluster: replicator(each) for each in specs})

    assert none is None
    names = ("cluster", "connected", "backlog_entries", "message_rate_out", "expired_rate")
    assert [tuple(each[name] for name in names) for each in json.loads(both or "")] == [
        ("east", True, 0, 2.5, 1.0),
        ("west", False, 7, 0.0, 0.0),
    ]


def test_what_comes_from_a_remote_cluster_is_told_while_it_is_connected() -> None:
    """Brokers tell 0 of a cluster that is not connected, and of what waits without a connection: that is no figure."""
    specs = (
        ReplicatorSpec("east", 3, delay_s=4, inbound=True, rate_in=2.0),
        ReplicatorSpec("west", 3, connected=False, delay_s=4, rate_in=2.0),
    )
    _, both = replicated(**{each.cluster: replicator(each) for each in specs})
    names = ("delay_seconds", "inbound", "message_rate_in")
    assert [tuple(each[name] for name in names) for each in json.loads(both or "")] == [
        (4, True, 2.0),
        (None, False, None),
    ]


def test_what_a_broker_leaves_out_is_no_trouble() -> None:
    """Rates that a broker leaves out are 0, and the state of the connection is unknown."""
    _, told = replicated(west={"replicationBacklog": 7})
    assert json.loads(told or "")[0] == {
        "cluster": "west",
        "connected": None,
        "backlog_entries": 7,
        "message_rate_out": 0.0,
        "expired_rate": 0.0,
        "delay_seconds": None,
        "inbound": False,
        "message_rate_in": None,
    }
