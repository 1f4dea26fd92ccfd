"""Brokers and namespaces as Arrow rows, read from a made-up cluster."""

from __future__ import annotations

import re
from collections import defaultdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import SecretStr

from lab.simulator import (
    Answer,
    BrokenJson,
    ClusterSpec,
    Fault,
    LoadSpec,
    NamespaceSpec,
    Simulator,
    SubscriptionSpec,
    TopicSpec,
)
from lab.simulator import running_simulator as running
from pulsar_steward.collect.broker import KEPT, BrokerTask, ReadScope, read_brokers
from pulsar_steward.collect.metrics import SERIES, read_endpoint
from pulsar_steward.collect.overview import PlacementInput, look_over, read_namespaces
from pulsar_steward.model.bundles import HEARTBEAT
from pulsar_steward.model.isolation import isolation_policies
from pulsar_steward.policy.schema import AdminPolicy, CollectPolicy
from pulsar_steward.pulsar.reader import Reader
from pulsar_steward.pulsar.settings import AdminSettings
from tests.cases import row_by_row
from tests.unit.pulsar.scripted import Reply, answer, scripted_brokers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pulsar_steward.collect.arrow import TableBatch

TAKEN_AT = datetime(2026, 1, 1, 0, 5, tzinfo=UTC)
SUBSCRIPTION = SubscriptionSpec("s/1", consumers=2, backlog=10, unacked=3, ack_holes=4)
TOPIC = TopicSpec("ü x", partitions=6, producers=1, subscriptions=(SUBSCRIPTION,), rate_in=2.0, backlog_age_s=60)
SPEC = ClusterSpec(namespaces=(NamespaceSpec("acme/orders", topics=(TOPIC,), owner=0),), tc_owner=0)


@pytest.fixture
def cluster() -> Iterator[Simulator]:
    """Three brokers; the first one owns six topics and all transaction coordinators."""
    with running(SPEC) as simulator:
        yield simulator


def settings_of(cluster: Simulator) -> AdminSettings:
    """Settings to reach the cluster, with one attempt for each read."""
    return AdminSettings(urls=cluster.admin_urls, limits=AdminPolicy(read_attempts=1))


def rows(pieces: Iterable[TableBatch]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for piece in pieces:
        found[piece.table.name] += piece.rows.to_pylist()
    return found


def read_first(cluster: Simulator, **policy: Any) -> dict[str, list[dict[str, Any]]]:
    """Reading of the first broker; the keywords are those of `CollectPolicy`."""
    broker = cluster.admin_urls[0].partition("//")[2]
    scope = ReadScope(TAKEN_AT, CollectPolicy(**policy))
    return rows(read_brokers(settings_of(cluster), [BrokerTask(broker, cluster.cluster, leader=True)], scope))


def test_a_broker_yields_itself_its_bundles_topics_and_subscriptions(cluster: Simulator) -> None:
    found = read_first(cluster)
    (broker,) = found["brokers"]
    topics = [row for row in found["topics"] if row["namespace"] == "acme/orders"]
    bundles = [row for row in found["bundles"] if row["namespace"] == "acme/orders"]
    subscribed = [row["topic"] for row in found["subscriptions"] if row["namespace"] == "acme/orders"]

    assert (broker["read"], broker["failure"], broker["leader"]) == (True, None, True)
    assert broker["bundles"] == len(found["bundles"])
    assert broker["topics"] == len(found["topics"])
    assert (broker["producers"], broker["consumers"]) == (6, 12)
    assert (broker["cpu_percent"], broker["processors"]) == (pytest.approx(10.0), 2.0)
    assert {row["topic"] for row in topics} == {f"persistent://acme/orders/ü x-partition-{n}" for n in range(6)}
    assert sorted(subscribed) == sorted(row["topic"] for row in topics)
    assert sum(row["topics"] for row in bundles) == 6
    assert sum(row["message_rate_in"] for row in bundles) == pytest.approx(12.0)
    assert all(row["positions"] is None for row in bundles)


def test_subscriptions_keep_their_figures(cluster: Simulator) -> None:
    """Each partition's subscription is a row with its own figures."""
    found = [row for row in read_first(cluster)["subscriptions"] if row["namespace"] == "acme/orders"]

    assert len(found) == 6
    for row in found:
        assert row["subscription"] == "s/1"
        assert (row["consumers"], row["backlog_entries"]) == (2, 10)
        assert (row["unacked_messages"], row["ack_holes"], row["blocked_on_unacked"]) == (3, 4, False)


def test_clients_that_connected_lately_are_counted(cluster: Simulator) -> None:
    now, before = read_first(cluster), read_first(cluster, recent_minutes=4)

    assert {row["consumers_connected_recently"] for row in now["subscriptions"]} == {2}
    assert {row["consumers_connected_recently"] for row in before["subscriptions"]} == {0}
    recent = [row["producers_connected_recently"] for row in now["topics"] if row["namespace"] == "acme/orders"]
    assert recent == [1] * 6


def test_the_worst_clients_of_a_subscription_are_named(cluster: Simulator) -> None:
    """A subscription's consumers with the most unacknowledged messages are named, as many as the policy permits."""
    (name, *others) = (row["topic"] for row in read_first(cluster)["clients"] if row["unacked_messages"] == 2)
    found = [row for row in read_first(cluster)["clients"] if row["topic"] == name]

    assert len(others) == 5
    assert [(row["consumer"], row["unacked_messages"], row["available_permits"]) for row in found] == [
        ("s/1-0", 2, 1000),
        ("s/1-1", 1, 1000),
    ]
    assert found[0]["address"] == "10.0.0.0:40000"
    assert (found[0]["connected_since"], found[0]["blocked"]) == ("2026-01-01T00:00:00Z", False)
    assert len(read_first(cluster, clients_per_subscription=1)["clients"]) == 6


def test_clients_of_subscriptions_without_backlog_are_not_named() -> None:
    healthy = TopicSpec("t", partitions=2, subscriptions=(SubscriptionSpec("s", consumers=2),))
    with running(ClusterSpec(namespaces=(NamespaceSpec("acme/orders", topics=(healthy,), owner=0),))) as cluster:
        found = read_first(cluster)

    assert found.get("clients", []) == []
    assert sum(row["consumers"] for row in found["subscriptions"]) == 4


OF_OTHER_VERSIONS = {
    "cacheEvictionByExpectedReadCount",  # since 4.2
    "loadBalancerSheddingExcludedNamespaces",  # since 4.2
    "managedLedgerCacheEvictionExtendTTLOfRecentlyAccessed",  # since 4.2
    "preciseTopicPublishRateLimiterEnable",  # until 3.3
    "schemaJsonAllowLegacyJacksonFormat",  # since 4.2
    "streamingDispatch",  # until 3.0
    "topicPoliciesCacheInitTimeoutSeconds",  # since 4.2
    "transactionCoordinatorScalableTopicsEnabled",  # since 5.0
}


def test_settings_of_a_broker_are_kept_that_somebody_reads(cluster: Simulator) -> None:
    """The configuration of a broker is kept as text, for all settings of the list that its version has."""
    found = {row["key"]: row["value"] for row in read_first(cluster)["configuration"]}

    assert found.keys() == KEPT - OF_OTHER_VERSIONS
    assert found["maxMessageSize"] == "5242880"


def test_metrics_of_a_broker_are_kept_that_somebody_reads(cluster: Simulator) -> None:
    """The metrics that are kept all belong to the list of series, and zeros of all topics take a single row."""
    found = read_first(cluster)
    (broker,) = found["brokers"]
    metrics = found["metrics"]

    assert broker["metrics_read"] is True
    assert {row["source"] for row in metrics} == {broker["broker"]}
    assert {row["series"] for row in metrics} <= SERIES["broker"].keys()
    heap, _ = (row for row in metrics if row["series"] == "jvm_memory_bytes_max")
    assert (heap["value"], heap["topic"]) == (512 * 1024 * 1024, None)
    assert heap["labels_json"] == '{"area":"heap","cluster":"local"}'
    assert [row["value"] for row in metrics if row["series"] == "pulsar_subscription_delayed"] == [0]
    ages = [row for row in metrics if row["series"] == "pulsar_storage_backlog_age_seconds" and row["value"] != -1]
    mine = [row["topic"] for row in found["topics"] if row["namespace"] == "acme/orders"]
    assert {row["topic"]: row["value"] for row in ages} == dict.fromkeys(mine, 60)


def test_metrics_that_are_too_long_are_cut_and_said() -> None:
    """A broker with more metrics than the limit is marked as not read in full, and those before it are kept."""
    many = TopicSpec("t", partitions=2000, subscriptions=(SubscriptionSpec("s", delayed=1, backlog=2),))
    with running(ClusterSpec(namespaces=(NamespaceSpec("acme/orders", topics=(many,), owner=0),))) as cluster:
        found = read_first(cluster, metrics_megabytes=1)

    (broker,) = found["brokers"]
    series = {row["series"] for row in found["metrics"]}
    assert broker["metrics_read"] is False
    assert "jvm_memory_bytes_max" in series
    assert "pulsar_subscription_delayed" not in series


@pytest.mark.parametrize(
    ("path", "effect"), [("/metrics/", Answer(500)), ("/metrics/", Answer(302)), ("configuration/runtime", Answer(403))]
)
def test_a_broker_is_read_though_it_tells_no_metrics_or_settings(cluster: Simulator, path: str, effect: Answer) -> None:
    cluster.faults.add(Fault(effect, path=path, times=None))

    found = read_first(cluster)

    (broker,) = found["brokers"]
    assert broker["read"]
    assert broker["metrics_read"] is (None if "metrics" in path else True)
    assert bool(found.get("metrics")) is ("metrics" not in path)
    assert bool(found.get("configuration")) is ("metrics" in path)


def test_each_broker_tells_its_version_and_its_clock_in_one_answer(cluster: Simulator) -> None:
    (broker,) = read_first(cluster)["brokers"]

    assert broker["pulsar_version"] == "4.0.7"
    assert broker["clock_skew_milliseconds"] is not None
    paths = [record.path for record in cluster.requests.all()]
    assert paths.count("/admin/v2/brokers/version") == 1


def test_the_brokers_clock_is_compared() -> None:
    """A broker's clock that is two minutes ahead is told, give or take two seconds."""
    with running(ClusterSpec(loads=(LoadSpec(clock_ahead_s=120),))) as cluster:
        (broker,) = read_first(cluster)["brokers"]

    assert abs(broker["clock_skew_milliseconds"] - 120_000) <= 2000


def test_bundles_of_the_coordinators_carry_positions(cluster: Simulator) -> None:
    system = [row for row in read_first(cluster)["bundles"] if row["namespace"] == "pulsar/system"]

    assert sum(len(row["positions"]) for row in system) == 16
    assert all(row["positions"] == sorted(row["positions"]) for row in system)


@row_by_row(
    "path, effect, words",
    ("broker-stats/topics", Answer(500), "500"),
    ("broker-stats/topics", BrokenJson(), "cannot be read"),
    ("ownedNamespaces", Answer(403, "no superuser"), "403 no superuser"),
)
def test_a_broker_that_cannot_be_read_yields_nothing_but_its_failure(
    cluster: Simulator, path: str, effect: Answer | BrokenJson, words: str
) -> None:
    cluster.faults.add(Fault(effect, path=path, times=None))

    found = read_first(cluster)

    (broker,) = found["brokers"]
    assert not broker["read"]
    assert words in broker["failure"]
    assert broker["topics"] is broker["bundles"] is broker["message_rate_in"] is None
    assert not found["topics"]
    assert not found["bundles"]


def test_a_broker_without_a_load_report_is_read_all_the_same(cluster: Simulator) -> None:
    cluster.faults.add(Fault(Answer(404), path="load-report", times=None))

    (broker,) = read_first(cluster)["brokers"]

    assert (broker["read"], broker["cpu_percent"]) == (True, 10.0)
    cluster.faults.add(Fault(Answer(500), path="/metrics/", times=None))

    (broker,) = read_first(cluster)["brokers"]

    assert (broker["read"], broker["cpu_percent"], broker["processors"]) == (True, None, None)


def test_the_extensible_load_manager_is_not_asked_for_a_load_report() -> None:
    with running(ClusterSpec(brokers=1, load_manager="extensible")) as cluster:
        found = read_first(cluster)
        assert not [each for each in cluster.requests.all() if each.path.endswith("load-report")]

    (broker,) = found["brokers"]
    assert (broker["read"], broker["cpu_percent"]) == (True, 10.0)
    watched = {row["namespace"] for row in found["bundles"] if re.match(HEARTBEAT, row["namespace"])}
    assert watched == {f"{kind}{broker['broker']}" for kind in ("pulsar/", "pulsar/local/", "sla-monitor/local/")}


def test_namespaces_yield_boundaries_policies_and_brokers(cluster: Simulator) -> None:
    cluster.faults.add(Fault(Answer(500), path="public/default", times=None))
    policies = isolation_policies({"p": {"namespaces": ["acme/.*"], "primary": ["a"], "secondary": []}})
    names = ["acme/orders", "acme/gone", "public/default"]

    found = rows(read_namespaces(settings_of(cluster), PlacementInput(("a:1", "b:1"), policies, "local"), names))

    (namespace,) = found["namespaces"]
    assert (namespace["namespace"], namespace["bundles"], namespace["allowed_brokers"]) == ("acme/orders", 4, ["a:1"])
    assert namespace["boundaries"] == ["0x00000000", "0x40000000", "0x80000000", "0xc0000000", "0xffffffff"]
    assert [row["name"] for row in found["unread"]] == ["public/default"]
    assert "500" in found["unread"][0]["failure"]


def test_namespaces_of_other_clusters_are_no_part_of_this_one() -> None:
    clusters = {
        "acme/here": ["local"],
        "acme/both": ["west", "local"],
        "acme/there": ["west"],
        "acme/anywhere": [],
        "pulsar/odd": ["west"],
    }
    spec = ClusterSpec(
        namespaces=tuple(
            NamespaceSpec(name, policies={"replication_clusters": each}) for name, each in clusters.items()
        )
    )
    with running(spec) as cluster:
        found = rows(read_namespaces(settings_of(cluster), PlacementInput((), {}, "local"), clusters))

    assert [row["namespace"] for row in found["namespaces"]] == [name for name in clusters if name != "acme/there"]
    assert [row["name"] for row in found["elsewhere"]] == ["acme/there"]
    assert not found["unread"]


def test_the_overview_names_what_there_is(cluster: Simulator) -> None:
    """The overview lists brokers, coordinators and namespaces, and names a tenant that cannot be listed."""
    cluster.faults.add(Fault(Answer(500), path="/admin/v2/namespaces/public$", times=None))
    with Reader(settings_of(cluster)) as reader:
        overview = look_over(reader)

    assert overview.brokers == cluster.active_brokers()
    assert (overview.pulsar_cluster, overview.coordinators) == (cluster.cluster, 16)
    assert {"acme/orders", "pulsar/system"} <= set(overview.namespaces)
    assert overview.unread == ("public/*",)


def test_without_transactions_there_are_no_coordinators() -> None:
    """A cluster with transactions turned off has no coordinators."""
    spec = ClusterSpec(brokers=1, configuration={"transactionCoordinatorEnabled": "false"})
    with running(spec) as cluster, Reader(settings_of(cluster)) as reader:
        assert look_over(reader).coordinators == 0


METRICS = b"bookie_SERVER_STATUS 1.0\n"
SIZE = "dbStorage_writeCacheMaxSizeMb"
TOLD = {"zkServers": "zk:2181", "tlsKeyStorePassword": "secret", SIZE: "2048", "journalSyncData": "true"}


@pytest.mark.parametrize(
    ("told", "size"),
    [
        (answer(TOLD), 2048.0),
        (answer({"zkServers": "zk:2181"}), None),
        (answer({SIZE: ""}), None),
        (answer({SIZE: "2048MB"}), None),
        (answer({SIZE: "9" * 16}), None),
        (answer([SIZE]), None),
        (answer(b"<html>"), None),
        (answer(status=404), None),
    ],
    ids=["told", "not set", "empty", "no number", "too large", "no object", "no JSON", "no HTTP server of its own"],
)
@pytest.mark.parametrize("path", ["/metrics", "/metrics/", "/bookie-1/metrics"])
def test_a_bookie_tells_one_of_its_settings(told: Reply, size: float | None, path: str) -> None:
    """Where its HTTP server is on; nothing else of its settings is kept, and its metrics do not depend on that."""
    with scripted_brokers() as make:
        bookie = make()
        bookie.on(path, answer(METRICS))
        bookie.on(f"{path.rstrip('/').removesuffix('/metrics')}/api/v1/config/server_config", told)
        settings = AdminSettings(urls=("https://broker:8443",), token=SecretStr("a-made-up-token"))
        pieces = list(read_endpoint(settings, f"bookie={bookie.url}{path}", 10))
        rows = [(row["series"], row["value"]) for piece in pieces for row in piece.rows.to_pylist()]
        assert rows == [("bookie_SERVER_STATUS", 1.0), *([] if size is None else [(SIZE, size)])]
        assert [each.authorization for each in bookie.asked] == [None, None]


@pytest.mark.parametrize(
    ("told", "version"),
    [
        (answer({"version": "3.9.3-c26634f, built on 2024-10-17"}), "3.9.3"),
        (answer({"version": "<b>"}), None),
        (answer({}), None),
        (answer(status=404), None),
    ],
    ids=["told", "no version", "not told", "no admin server"],
)
def test_an_admin_server_of_zookeeper_tells_its_version(told: Reply, version: str | None) -> None:
    """And nothing else is asked or kept; its address may be given with or without a path."""
    with scripted_brokers() as make:
        server = make()
        server.on("/commands/srvr", told)
        settings = AdminSettings(urls=("https://broker:8443",), token=SecretStr("a-made-up-token"))
        for path in ("", "/", "/commands/srvr"):
            pieces = list(read_endpoint(settings, f"zookeeper_admin={server.url}{path}", 10))
            rows = [row for piece in pieces for row in piece.rows.to_pylist()]
            told_there = [(row["source_kind"], row["series"], row["labels_json"]) for row in rows]
            labels = f'{{"version":"{version}"}}'
            assert told_there == ([("zookeeper", "zookeeper_version", labels)] if version else [])
        assert {(each.path, each.authorization) for each in server.asked} == {("/commands/srvr", None)}


def test_only_bookies_are_asked_for_settings() -> None:
    """ZooKeeper has no such address."""
    with scripted_brokers() as make:
        server = make()
        server.on("/metrics", answer(b"znode_count 5.0\n"))
        settings = AdminSettings(urls=("http://broker:8080",))
        list(read_endpoint(settings, f"zookeeper={server.url}/metrics", 10))
        assert [each.path for each in server.asked] == ["/metrics"]
