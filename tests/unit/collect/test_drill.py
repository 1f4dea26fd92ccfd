"""Asking owners about suspects, and never anybody else."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import httpx
import msgspec
import pytest

from lab.simulator import Answer, ClusterSpec, Fault, NamespaceSpec, Simulator, SubscriptionSpec, TopicSpec
from lab.simulator import running_simulator as running
from pulsar_steward.collect.drill import DetailRequest, DrillTask, drill, rows_of
from pulsar_steward.decoding import decode
from pulsar_steward.model.subscription import Cursor
from pulsar_steward.policy.schema import AdminPolicy, CollectPolicy
from pulsar_steward.pulsar.owner import SubscriptionDetail, TopicDetail
from pulsar_steward.pulsar.reader import Reader
from pulsar_steward.pulsar.settings import AdminSettings
from tests.builders import CURSOR
from tests.cases import cases, row_by_row

if TYPE_CHECKING:
    from collections.abc import Iterator

WHOLE = "acme/orders/0x00000000_0xffffffff"
BASE = "persistent://acme/orders/ü t"
PARTITION = f"{BASE}-partition-0"
SUBSCRIPTION = SubscriptionSpec("s", backlog=10, delayed=4, ack_holes=3)
TOPIC = TopicSpec("ü t", partitions=2, subscriptions=(SUBSCRIPTION,), storage_bytes=2_000)
FAST = CollectPolicy(drill_calls_per_second=1000)


@pytest.fixture
def cluster() -> Iterator[Simulator]:
    """Three brokers; the second one, which does not lead, owns the only bundle."""
    with running(ClusterSpec(namespaces=(NamespaceSpec("acme/orders", bundles=1, topics=(TOPIC,), owner=1),))) as made:
        yield made


def broker(cluster: Simulator, number: int) -> str:
    """``host:webport``."""
    return cluster.admin_urls[number].partition("//")[2]


def drilled(
    cluster: Simulator, number: int, *wanted: DetailRequest, policy: CollectPolicy = FAST
) -> dict[str, list[Any]]:
    """The rows that asking this broker yields, by table."""
    settings = AdminSettings(urls=cluster.admin_urls, limits=AdminPolicy(read_timeout_seconds=1))
    found: dict[str, list[Any]] = {"drilled": [], "own_policies": []}
    for piece in drill(settings, DrillTask(broker(cluster, number), cluster.cluster, wanted), policy):
        found[piece.table.name] += piece.rows.to_pylist()
    return found


def test_a_suspects_own_statistics_are_read(cluster: Simulator) -> None:
    """A suspect's own statistics yield its delayed messages and the size of its acknowledgement state."""
    (row,) = drilled(cluster, 1, DetailRequest(WHOLE, PARTITION, internals=True))["drilled"]

    assert (row["topic"], row["namespace"], row["subscription"]) == (PARTITION, "acme/orders", "s")
    assert (row["delayed_messages"], row["ack_state_bytes"], row["delayed_index_bytes"]) == (4, 36, 768)
    assert (row["ledgers"], row["cursor_properties_json"]) == (2, "[]")
    position = msgspec.structs.replace(CURSOR, position="1:6")
    assert msgspec.json.decode(row["cursor_json"], type=Cursor) == position
    assert row["entries_behind"] == SUBSCRIPTION.backlog + SUBSCRIPTION.ack_holes
    assert row["unread_closed_milliseconds"] > CURSOR.created.timestamp() * 1000
    assert row["quota_limit_bytes"] is row["quota_limit_seconds"] is row["oldest_backlog_age_seconds"] == -1


def test_ledgers_are_asked_for_only_where_they_are_wanted(cluster: Simulator) -> None:
    """Internal statistics, and when cursors were made, are requested only for suspects of which they are wanted."""
    (row,) = drilled(cluster, 1, DetailRequest(WHOLE, PARTITION))["drilled"]

    assert row["ledgers"] is row["cursor_properties_json"] is row["cursor_json"] is None
    assert not [record for record in cluster.requests.all() if "/internal" in record.path]


def test_policies_of_a_topic_itself_are_read(cluster: Simulator) -> None:
    """The policies that a topic does not set itself are read as empty objects."""
    (row,) = drilled(cluster, 1, DetailRequest(WHOLE, BASE, policies=True))["own_policies"]

    assert row == {"base": BASE, "topic_quota_json": "{}", "topic_retention_json": "{}", "topic_rates_json": None}


RATES = ("dispatchRate", "publishRate")


def test_rates_of_a_topic_itself_are_read_where_one_held_something_back(cluster: Simulator) -> None:
    """Only those that are asked for; where they are not told, the rest of the policies still is."""
    wanted = DetailRequest(WHOLE, BASE, policies=True, rates=RATES)
    (none,) = drilled(cluster, 1, wanted)["own_policies"]
    cluster.faults.add(Fault(Answer(500), path="/publishRate", times=None))
    (failed,) = drilled(cluster, 1, wanted)["own_policies"]

    assert (none["topic_rates_json"], failed["topic_rates_json"]) == ("{}", None)
    assert failed["topic_quota_json"] == "{}"
    asked = [record.path.rpartition("/")[2] for record in cluster.requests.all() if "Rate" in record.path]
    assert [name.partition("?")[0] for name in asked] == [*RATES, *RATES]


@cases("number", ("the leader", 0), ("its last owner", 1), ("another broker", 2))
@pytest.mark.parametrize("policies", [False, True])
def test_a_bundle_that_nobody_owns_any_more_stays_so(cluster: Simulator, number: int, *, policies: bool) -> None:
    unloaded = httpx.put(
        f"{cluster.admin_urls[1]}/admin/v2/namespaces/acme/orders/0x00000000_0xffffffff/unload", follow_redirects=True
    )
    assert unloaded.is_success
    assert not any(WHOLE in owned for owned in cluster.owned_bundles().values())

    found = drilled(
        cluster, number, DetailRequest(WHOLE, PARTITION, internals=True), DetailRequest(WHOLE, BASE, policies=policies)
    )

    assert found == {"drilled": [], "own_policies": []}
    assert not any(WHOLE in owned for owned in cluster.owned_bundles().values())


def test_a_bundle_that_moved_is_not_followed(cluster: Simulator) -> None:
    """A broker that does not own the bundle yields no rows, and no other broker is asked."""
    found = drilled(cluster, 0, DetailRequest(WHOLE, PARTITION))

    assert found["drilled"] == []
    assert {record.broker_id for record in cluster.requests.all()} == {broker(cluster, 0)}


@row_by_row(
    "path, details, policies",
    (r"/stats\?", 0, 1),
    ("/internalStats$", 1, 1),
    ("/internal-info$", 1, 1),
    (r"/retention\?", 1, 0),
)
def test_what_fails_is_left_out_alone(cluster: Simulator, path: str, details: int, policies: int) -> None:
    """A failed request does not affect the rows of the other requests."""
    cluster.faults.add(Fault(Answer(500), path=path, times=None))

    found = drilled(
        cluster, 1, DetailRequest(WHOLE, PARTITION, internals=True), DetailRequest(WHOLE, BASE, policies=True)
    )

    assert (len(found["drilled"]), len(found["own_policies"])) == (details, policies)


def test_a_broker_that_is_gone_is_asked_once(cluster: Simulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that cannot be reached yields no rows, and is not asked again about suspects of another bundle."""
    asked: list[str] = []
    ask = Reader.owned_bundles

    def counted(reader: Reader, pulsar_cluster: str, name: str) -> tuple[str, ...]:
        asked.append(name)
        return ask(reader, pulsar_cluster, name)

    monkeypatch.setattr(Reader, "owned_bundles", counted)
    cluster.kill_broker(broker(cluster, 1))
    wanted = (DetailRequest(WHOLE, PARTITION), DetailRequest("acme/idle/0x00000000_0xffffffff", PARTITION))

    assert drilled(cluster, 1, *wanted) == {"drilled": [], "own_policies": []}
    assert asked == [broker(cluster, 1)]


def test_no_more_is_asked_when_the_time_is_up(cluster: Simulator) -> None:
    """Once the time that the policy leaves for suspects is used up by the first request, none follows it."""
    policy = CollectPolicy(drill_calls_per_second=1, drill_seconds=1)

    assert drilled(cluster, 1, DetailRequest(WHOLE, PARTITION), policy=policy)["drilled"] == []
    owned = f"/admin/v2/brokers/{cluster.cluster}/{broker(cluster, 1)}/ownedNamespaces"
    assert [record.path for record in cluster.requests.all()] == [owned]


def consumer(name: str, **figures: int) -> dict[str, Any]:
    """One of a topic's own statistics."""
    return {"consumerName": name, "address": f"/10.0.0.{len(name)}:1", **figures}


def test_consumers_that_hold_messages_are_named_the_worst_first() -> None:
    """First those that others wait for, then those that hold most, with their own times; no more than asked for."""
    consumers = [
        consumer("idle"),
        consumer("few", unackedMessages=3),
        consumer("most", unackedMessages=900),
        consumer("some", unackedMessages=20),
        consumer("drains", unackedMessages=4, drainingHashesCount=2, drainingHashesUnackedMessages=4),
    ]
    subscription = {"msgBacklog": 30, "isReplicated": False, "isDurable": True, "consumers": consumers}
    subscription |= {"lastConsumedTimestamp": 8, "lastAckedTimestamp": 7}
    subscription |= {"consumersAfterMarkDeletePosition": {"later": "5:0"}}
    nothing: dict[str, Any] = {"publishers": [], "replication": {}, "storageSize": 0, "backlogSize": 0}
    detail = decode(msgspec.json.encode(nothing | {"subscriptions": {"s": subscription}}), TopicDetail)

    (row,) = rows_of(DetailRequest(WHOLE, BASE), detail, None, 3)

    told = msgspec.json.decode(row["holders_json"])
    assert [each["consumer"] for each in told] == ["drains", "most", "some"]
    assert told[0] == {
        "consumer": "drains",
        "address": "10.0.0.6:1",
        "connected_since": "",
        "unacked_messages": 4,
        "messages_per_entry": 0,
        "acked_milliseconds": 0,
        "consumed_milliseconds": 0,
        "draining_hashes": 2,
        "draining_messages": 4,
    }
    assert row["consumers_waiting"] == 1


def test_a_topic_without_subscriptions_is_one_row() -> None:
    """A topic without subscriptions yields one row with its quota and age, as its broker reports them."""
    nothing = TopicDetail(publishers=[], subscriptions={}, replication={}, storage_size=0, backlog_size=0)
    detail = msgspec.structs.replace(
        nothing, backlog_quota_limit_size=0, backlog_quota_limit_time=0, oldest_backlog_message_age_seconds=9
    )

    (row,) = rows_of(DetailRequest(WHOLE, BASE), detail, None, 3)

    assert row.get("subscription") is None
    assert (row["quota_limit_bytes"], row["quota_limit_seconds"], row["oldest_backlog_age_seconds"]) == (0, 0, 9)


def test_what_dispatch_rates_held_back_is_counted_whoever_set_them() -> None:
    """The rates of the subscription, its topic and its broker, by messages and by bytes."""
    subscription = {
        "msgBacklog": 0,
        "isReplicated": False,
        "isDurable": True,
        "consumers": [],
        "lastConsumedTimestamp": 0,
        "lastAckedTimestamp": 0,
    }
    counts = {
        f"dispatchThrottled{what}EventsBy{level}Limit": 10**power
        for power, (what, level) in enumerate(product(("Msg", "Bytes"), ("Subscription", "Topic", "Broker")))
    }
    held = msgspec.convert(subscription | counts, SubscriptionDetail)
    assert held.times_limited == 111_111
