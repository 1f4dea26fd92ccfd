"""Abilities of the simulator alone: trouble on request, a log of requests, figures and labels of made-up clusters."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx
import msgspec
import pytest

from lab.faults.fault import SimulatedFault
from lab.faults.simulated import FAULTS
from lab.simulator import (
    Answer,
    BookieSpec,
    BrokenJson,
    ClusterSpec,
    Delay,
    Drop,
    Fault,
    LatencySpec,
    LoadSpec,
    NamespaceSpec,
    Simulator,
    SubscriptionSpec,
    TopicSpec,
    ZooKeeperSpec,
    running_servers,
    running_simulator,
)
from pulsar_steward.checks.registry import BY_ID

BUNDLE = "pulsar/system/0xf0000000_0xffffffff"


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    """Three brokers, nothing broken yet."""
    with running_simulator() as simulator:
        yield simulator


@pytest.fixture
def client(simulator: Simulator) -> Iterator[httpx.Client]:
    """Speaks to the first broker, which leads."""
    with httpx.Client(base_url=simulator.admin_urls[0], timeout=5, trust_env=False) as client:
        yield client


def owners(simulator: Simulator) -> list[str]:
    return [broker for broker, bundles in simulator.owned_bundles().items() if BUNDLE in bundles]


def test_the_coordinators_begin_spread(simulator: Simulator) -> None:
    """The sixteen coordinators of a new simulator are spread over its three brokers as 6, 6 and 4."""
    assert sorted(simulator.tc_placement().values()) == [4, 6, 6]


@pytest.mark.parametrize("done", [True, False])
def test_a_dropped_connection_hides_whether_the_work_was_done(
    simulator: Simulator, client: httpx.Client, *, done: bool
) -> None:
    simulator.faults.add(Fault(Drop(work_done=done), path="/unload", method="PUT"))
    with pytest.raises(httpx.RemoteProtocolError):
        client.put(f"/admin/v2/namespaces/{BUNDLE}/unload")
    assert (owners(simulator) == []) is done
    assert client.put(f"/admin/v2/namespaces/{BUNDLE}/unload").status_code == 204


def test_a_status_is_answered_as_often_as_asked(simulator: Simulator, client: httpx.Client) -> None:
    """A fault that answers twice with a status meets the first two matching requests and no other request."""
    simulator.faults.add(Fault(Answer(503, "busy"), path="brokers$", times=2))
    assert client.get("/admin/v2/clusters").status_code == 200
    answers = [client.get("/admin/v2/brokers") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [503, 503, 200]
    assert answers[0].json() == {"reason": "busy"}


def test_broken_json_is_a_200_that_cannot_be_read(simulator: Simulator, client: httpx.Client) -> None:
    simulator.faults.add(Fault(BrokenJson()))
    answer = client.get("/admin/v2/brokers")
    assert answer.status_code == 200
    with pytest.raises(msgspec.DecodeError):
        msgspec.json.decode(answer.content)


def test_a_delay_comes_after_the_work(simulator: Simulator, client: httpx.Client) -> None:
    """A delayed request is carried out, though its caller gives up before the answer comes."""
    fault = simulator.faults.add(Fault(Delay(30), path="/unload", times=None))
    with pytest.raises(httpx.ReadTimeout):
        client.put(f"/admin/v2/namespaces/{BUNDLE}/unload", timeout=0.3)
    assert owners(simulator) == []
    simulator.faults.remove(fault)
    assert client.put(f"/admin/v2/namespaces/{BUNDLE}/unload").status_code == 204


def test_a_fault_keeps_to_its_broker(simulator: Simulator, client: httpx.Client) -> None:
    simulator.faults.add(Fault(Answer(500), broker_id=simulator.active_brokers()[0], times=None))
    statuses = {url: client.get(f"{url}/admin/v2/clusters").status_code for url in simulator.admin_urls}
    assert sorted(statuses.values()) == [200, 200, 500]
    assert statuses[f"http://{simulator.active_brokers()[0]}"] == 500


def test_brokers_are_numbered_as_their_ids_sort() -> None:
    """Whichever ports are free, the brokers' numbers and the order of their ids name the same ones."""
    with running_simulator(ClusterSpec(brokers=9)) as simulator:
        assert simulator.admin_urls == tuple(f"http://{broker}" for broker in simulator.active_brokers())


def test_every_request_is_written_down(simulator: Simulator, client: httpx.Client) -> None:
    client.get("/admin/v2/brokers", headers={"Authorization": "Bearer x"})
    client.post("/admin/v2/namespaces/public/default/messageTTL?a=b", json=60)
    read, write = simulator.requests.all()
    assert (read.path, read.had_authorization) == ("/admin/v2/brokers", True)
    assert (write.query, write.body, write.had_authorization) == ("a=b", b"60", False)
    assert simulator.requests.writes() == (write,)


def test_a_paused_broker_accepts_and_does_not_answer(simulator: Simulator, client: httpx.Client) -> None:
    broker_id = simulator.admin_urls[0].removeprefix("http://")
    simulator.pause_broker(broker_id)
    with pytest.raises(httpx.ReadTimeout):
        client.get("/admin/v2/brokers", timeout=0.3)
    simulator.resume_broker(broker_id)
    assert client.get("/admin/v2/brokers").status_code == 200


def test_an_added_broker_is_listed_and_gets_nothing(simulator: Simulator, client: httpx.Client) -> None:
    broker = simulator.add_broker()
    assert broker.broker_id in client.get(f"{broker.admin_url}/admin/v2/brokers").json()
    assert simulator.tc_placement()[broker.broker_id] == 0
    assert simulator.owned_bundles()[broker.broker_id] == (
        f"pulsar/{broker.broker_id}/0x00000000_0xffffffff",
        f"pulsar/local/{broker.broker_id}/0x00000000_0xffffffff",
    )


def test_a_session_can_be_ended_at_once(simulator: Simulator, client: httpx.Client) -> None:
    first, second, _ = (url.removeprefix("http://") for url in simulator.admin_urls)
    simulator.kill_broker(first)
    at = simulator.admin_urls[1]
    assert client.get(f"{at}/admin/v2/brokers/leaderBroker").json()["brokerId"] == first
    simulator.expire_session(first)
    assert client.get(f"{at}/admin/v2/brokers/leaderBroker").json()["brokerId"] == second
    assert first not in simulator.active_brokers()


def test_a_described_topic_shows_its_figures_everywhere() -> None:
    idle = SubscriptionSpec("s", consumers=2, backlog=50, unacked=7, ack_holes=3, delayed=5)
    topic = TopicSpec("t", partitions=2, producers=1, subscriptions=(idle,), message_bytes=10)
    spec = ClusterSpec(brokers=1, namespaces=(NamespaceSpec("a/b", topics=(topic,)),))
    name = "persistent://a/b/t-partition-1"
    with (
        running_simulator(spec) as simulator,
        httpx.Client(base_url=simulator.admin_urls[0], trust_env=False) as client,
    ):
        bundle = client.get("/lookup/v2/topic/persistent/a/b/t-partition-1/bundle").text
        sampled = client.get("/admin/v2/broker-stats/topics").json()["a/b"][bundle]["persistent"][name]
        asked = client.get("/admin/v2/persistent/a/b/t-partition-1/stats").json()
        metrics = client.get("/metrics/").text
    assert sampled["backlogSize"] == asked["backlogSize"] == 500
    assert [each["unackedMessages"] for each in sampled["subscriptions"]["s"]["consumers"]] == [4, 3]
    assert sampled["subscriptions"]["s"]["totalNonContiguousDeletedMessagesRange"] == 3
    assert asked["nonContiguousDeletedMessagesRanges"] == 3
    assert asked["subscriptions"]["s"]["msgBacklogNoDelayed"] == 45
    assert (
        f'pulsar_subscription_delayed{{cluster="local",namespace="a/b",topic="{name}",subscription="s"}} 5\n' in metrics
    )


def test_the_command_prints_its_addresses_and_ends_when_told() -> None:
    command = [sys.executable, "-m", "lab.simulator", "--brokers", "2", "--token", "made-up"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            told = msgspec.json.decode(process.stdout.readline())
            headers = {"Authorization": "Bearer made-up"}
            listed = httpx.get(f"{told['admin_urls'][1]}/admin/v2/brokers", headers=headers, trust_env=False).json()
            assert sorted(f"http://{broker}" for broker in listed) == sorted(told["admin_urls"])
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=10) == 0
            assert process.stdout.read() == b""
        finally:
            process.kill()


IN_MEMORY = {"delayedDeliveryTrackerFactoryClassName": "InMemoryDelayedDeliveryTrackerFactory"}
PUBLISHES = "pulsar_ml_AddEntryLatencyBuckets"
SWITCHES = "pulsar_ml_LedgerSwitchLatencyBuckets"
BUCKETS = "pulsar_delayed_message_index_bucket_total"


@contextmanager
def one_broker(load: LoadSpec | None = None, *topics: TopicSpec, **more: Any) -> Iterator[tuple[Simulator, str]]:
    """A cluster of one broker, and where its admin API is."""
    namespace = NamespaceSpec("shop/orders", bundles=1, topics=topics)
    spec = ClusterSpec(brokers=1, namespaces=(namespace,), loads=(load or LoadSpec(),), **more)
    with running_simulator(spec) as simulator:
        yield simulator, simulator.admin_urls[0]


def told(url: str, series: str, *labels: str) -> list[float]:
    """The values of a series' samples that have these labels (``area="heap"``), of a broker."""
    return told_at(f"{url}/metrics/", series, *labels)


def told_at(url: str, series: str, *labels: str) -> list[float]:
    """The same of any server, by the address of its metrics."""
    text = httpx.get(url, trust_env=False).text
    lines = re.findall(rf"^{series}(\{{.*\}})? (\S+)$", text, re.MULTILINE)
    return [float(value) for inside, value in lines if all(label in inside for label in labels)]


@pytest.mark.parametrize(
    ("load", "series", "label", "value"),
    [
        (LoadSpec(gc_seconds=9.5), "jvm_gc_collection_seconds_sum", 'gc="Copy"', 9.5),
        (LoadSpec(full_gc_count=7), "jvm_gc_collection_seconds_count", 'gc="MarkSweepCompact"', 7),
        (LoadSpec(direct_mb=3), "jvm_memory_direct_bytes_used", "cluster", 3 * 1024**2),
        (LoadSpec(blocked_threads=12), "jvm_threads_state", 'state="BLOCKED"', 12),
        (LoadSpec(deadlocked_threads=2), "jvm_threads_deadlocked", "cluster", 2),
        (LoadSpec(open_files=77), "process_open_fds", "cluster", 77),
        (LoadSpec(pending_lookups=5), "pulsar_broker_lookup_pending_requests", "cluster", 5),
        (LoadSpec(connections=4), "pulsar_active_connections", 'metric="broker_connection"', 4),
        (LoadSpec(connections=4, connections_replaced=6), "pulsar_connection_create_success_count", "", 10),
        (
            LoadSpec(metadata_reads=50, metadata_slow_reads=8),
            "pulsar_metadata_store_ops_latency_ms_bucket",
            'type="get",status="success",le="1000.0"',
            42,
        ),
        (LoadSpec(ledger_switches=LatencySpec(2.0, 10, 30)), SWITCHES, '/persistent", quantile="200.0_1000.0"', 0.2),
        (LoadSpec(ledger_switches=LatencySpec(2.0, 10, 30)), f"{SWITCHES}_OVERFLOW", '/persistent"', 0.6),
        (LoadSpec(publishes=LatencySpec(2.0, 10, 30)), f"{PUBLISHES}_OVERFLOW", '/orders/persistent"', 0.6),
        (LoadSpec(writes=LatencySpec(2.0, 10, 40)), f"{PUBLISHES}_OVERFLOW", '/orders/persistent"', 0.8),
    ],
)
def test_how_busy_a_broker_is_stands_in_its_series(load: LoadSpec, series: str, label: str, value: float) -> None:
    with one_broker(load, TopicSpec("placed")) as (_, url):
        assert told(url, series, label) == [pytest.approx(value)]


def test_slow_entries_of_a_topic_are_told() -> None:
    with one_broker(None, TopicSpec("placed", slow_entries=7, stalled_entries=3)) as (_, url):
        assert told(url, "pulsar_storage_write_latency_le_1000", "/placed") == [7]
        assert told(url, "pulsar_storage_write_latency_overflow", "/placed") == [3]


def test_the_client_of_bookies_is_told_of_where_it_is_configured() -> None:
    series = "pulsar_managedLedger_client_thread_BookKeeperClientWorker_OrderedExecutor_1_0_thread_executor_queue"
    load = LoadSpec(client_queues=(0, 900))
    with one_broker(load) as (_, url):
        assert told(url, series) == []
    with one_broker(load, configuration={"bookkeeperClientExposeStatsToPrometheus": "true"}) as (_, url):
        assert told(url, series) == [900]


def test_a_clock_that_is_ahead_dates_the_answers() -> None:
    with one_broker(LoadSpec(clock_ahead_s=120.0)) as (_, url):
        shown = parsedate_to_datetime(httpx.get(f"{url}/admin/v2/brokers", trust_env=False).headers["Date"])
    assert 110 < (shown - datetime.now(UTC)).total_seconds() < 130


def test_brokers_have_run_for_a_while_and_later_ones_have_not() -> None:
    with one_broker(LoadSpec(uptime_s=5000.0)) as (simulator, url):
        later = simulator.add_broker().admin_url
        (old,), (young,) = (told(each, "process_start_time_seconds") for each in (url, later))
    assert 4900 < young - old < 5100


def test_buckets_are_told_by_the_tracker_that_has_them() -> None:
    waiting = SubscriptionSpec("mail", backlog=200_000, delayed=200_000, delayed_buckets=3)
    topic = TopicSpec("reminders", subscriptions=(waiting,))
    with one_broker(None, topic) as (_, url):
        assert told(url, BUCKETS, 'subscription="mail"') == [4]
        internals = httpx.get(f"{url}/admin/v2/persistent/shop/orders/reminders/internalStats", trust_env=False)
    assert len(internals.json()["cursors"]["mail"]["properties"]) == 3
    with one_broker(None, topic, configuration=IN_MEMORY) as (_, url):
        assert told(url, BUCKETS) == []


@pytest.mark.parametrize(
    ("subscription", "taken"),
    [
        (SubscriptionSpec("mail", backlog=9), 0),
        (SubscriptionSpec("mail", backlog=3, delayed=3), 768),
        (SubscriptionSpec("mail", backlog=10_000, delayed=10_000), 240_000),
        (SubscriptionSpec("mail", backlog=900_000, delayed=900_000, delayed_buckets=10), 2_400_000),
    ],
)
def test_the_index_of_delayed_messages_takes_24_bytes_each(subscription: SubscriptionSpec, taken: int) -> None:
    with one_broker(None, TopicSpec("reminders", subscriptions=(subscription,))) as (_, url):
        assert told(url, "pulsar_subscription_delayed_message_index_size_bytes") == [taken]
        stats = httpx.get(f"{url}/admin/v2/persistent/shop/orders/reminders/stats", trust_env=False).json()
    assert stats["subscriptions"]["mail"]["delayedMessageIndexSizeInBytes"] == taken


def test_new_clients_have_connected_just_now() -> None:
    """The given number of clients is shown as connected within the last three minutes, the others as older."""
    reader = SubscriptionSpec("app", consumers=5, new_consumers=2)
    topic = TopicSpec("live", producers=3, new_producers=1, subscriptions=(reader,))
    with one_broker(None, topic) as (_, url):
        (bundles,) = (
            document
            for name, document in httpx.get(f"{url}/admin/v2/broker-stats/topics", trust_env=False).json().items()
            if name == "shop/orders"
        )
    figures = bundles["0x00000000_0xffffffff"]["persistent"]["persistent://shop/orders/live"]
    for clients, new in ((figures["publishers"], 1), (figures["subscriptions"]["app"]["consumers"], 2)):
        ages = [
            (datetime.now(UTC) - datetime.fromisoformat(each["connectedSince"])).total_seconds() for each in clients
        ]
        assert sum(age < 180 for age in ages) == new


def test_bundles_are_with_the_brokers_that_are_named() -> None:
    spec = ClusterSpec(namespaces=(NamespaceSpec("shop/orders", bundles=3, owners=(2, 2, 0)),))
    with running_simulator(spec) as simulator:
        brokers = [simulator.broker(url.removeprefix("http://")).broker_id for url in simulator.admin_urls]
        owned = simulator.owned_bundles()
    placed = sorted((bundle, number) for number, broker in enumerate(brokers) for bundle in owned[broker])
    assert [number for bundle, number in placed if bundle.startswith("shop/orders/")] == [2, 2, 0]


def test_bookies_and_zookeeper_tell_their_own_figures() -> None:
    bookie = BookieSpec(writable=False, queues=(0, 70))
    zookeeper = ZooKeeperSpec(updates=50, updating_ms=400.0, gc_count=9)
    with running_servers(bookie, zookeeper) as servers:
        (kind, _, of_bookie), (other, _, of_zookeeper) = (url.partition("=") for url in servers.metrics_urls)
        assert (kind, other) == ("bookie", "zookeeper")
        assert told_at(of_bookie, "bookie_SERVER_STATUS") == [0]
        assert told_at(of_bookie, "bookkeeper_server_thread_executor_queue") == [0, 70]
        assert told_at(of_zookeeper, "updatelatency_count") == [50]
        assert told_at(of_zookeeper, "updatelatency_sum") == [400]
        assert told_at(of_zookeeper, "jvm_gc_collection_seconds_count", 'gc="Copy"') == [9]


def test_servers_may_show_other_figures_later_and_have_started_when_they_did() -> None:
    with running_servers(ZooKeeperSpec(updates=50, uptime_s=1000.0)) as servers:
        url = servers.metrics_urls[0].partition("=")[2]
        started = told_at(url, "process_start_time_seconds")
        servers.show(ZooKeeperSpec(updates=90, uptime_s=3000.0))
        assert told_at(url, "updatelatency_count") == [90]
        assert told_at(url, "process_start_time_seconds") == started
        with pytest.raises(ValueError, match="as many, in the same order"):
            servers.show(BookieSpec())


IDS = BY_ID.keys()
NOT_TO_BE_HAD_FOR_REAL = {
    *("backlog-growing", "bookie-thread-busy", "broker-load-skew", "bundle-flapping", "client-versions"),
    *("clock-skew", "cluster-placement", "connection-churn", "consumer-fanout", "cursor-not-persistable"),
    *("delayed-bucket-count", "delayed-holds-ledgers", "delayed-index-memory", "delayed-index-multiplied"),
    *("direct-memory-pressure", "failover-time", "gc-pressure", "hot-bundle", "io-threads-stuck"),
    *("ledger-switch-slow", "metadata-latency", "partition-ceiling", "publish-slow", "quota-stuck"),
    *("zookeeper-slow",),
}


@pytest.mark.parametrize("fault", [pytest.param(fault, id=fault.name) for fault in FAULTS])
def test_a_label_names_checks_that_exist(fault: SimulatedFault) -> None:
    expected = {each.check_id for each in fault.expected}
    assert expected | fault.allowed.keys() <= IDS
    assert not expected & fault.allowed.keys()
    assert fault.why
    assert all(fault.allowed.values())
    assert len(fault.specs) <= fault.observations
    assert len(fault.servers) <= fault.observations


def test_every_check_that_needs_a_made_up_cluster_has_one() -> None:
    """Simulated faults cover every check that real brokers on a small machine cannot be brought to."""
    assert {each.check_id for fault in FAULTS for each in fault.expected} >= NOT_TO_BE_HAD_FOR_REAL


def test_some_clusters_are_well() -> None:
    """At least three simulated clusters have nothing to find, so that a check that always finds something fails."""
    assert sum(not fault.expected for fault in FAULTS) >= 3
