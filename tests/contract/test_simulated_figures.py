"""Documents and series of a made-up cluster, by its description, which the checks' faults rest on."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx
import pytest

from lab.simulator import (
    BookieSpec,
    ClusterSpec,
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
