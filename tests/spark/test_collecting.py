"""From a made-up cluster to a finished, diagnosed snapshot."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import httpx
import msgspec
import pytest
from pydantic import SecretStr

from lab.simulator import Answer, ClusterSpec, Fault, NamespaceSpec, Simulator, SubscriptionSpec, TopicSpec
from lab.simulator import running_simulator as running
from pulsar_steward.admin.settings import AdminSettings
from pulsar_steward.errors import ConfigurationError, NotAllowed, SnapshotError
from pulsar_steward.model.bundles import BundleRange, position_of
from pulsar_steward.model.finding import Outlook, Severity
from pulsar_steward.model.tables import CLIENTS, CONFIGURATION, DRILLED, METRICS, SUBSCRIPTIONS, TOPICS
from pulsar_steward.planners.from_snapshot import scene_of
from pulsar_steward.planners.moves import Moves
from pulsar_steward.policy.schema import AdminPolicy, CollectPolicy, Policy
from pulsar_steward.snapshots.read import open_snapshot
from steward_spark.collecting import NobodyAnswered, Order, collect
from steward_spark.diagnosing import diagnose

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TOKEN = "made.up-token_of-a.superuser"
SPEC = ClusterSpec(
    namespaces=(
        NamespaceSpec(
            "acme/orders",
            topics=(TopicSpec("t", partitions=20, producers=1, subscriptions=(SubscriptionSpec("s", consumers=2),)),),
        ),
        NamespaceSpec("acme/idle", topics=(TopicSpec("t"),), loaded=False),
    ),
    tc_owner=1,
)
TROUBLE = SubscriptionSpec("s", consumers=1, backlog=7, unacked=5, ack_holes=3, delayed=2)
TROUBLED = ClusterSpec(
    namespaces=(
        NamespaceSpec("acme/orders", topics=(TopicSpec("t", partitions=3, subscriptions=(TROUBLE,)), TopicSpec("u"))),
        NamespaceSpec("acme/idle", topics=(TopicSpec("t", subscriptions=(TROUBLE,)),), loaded=False),
    ),
    tc_owner=1,
)
HARMLESS = re.compile(
    r"/metrics/"
    r"|/admin/v2/(brokers|tenants|namespaces/[^/]+|namespaces/[^/]+/[^/]+)"
    r"|/admin/v2/brokers/(version|leaderBroker|configuration/runtime|[^/]+/[^/]+/ownedNamespaces)"
    r"|/admin/v2/broker-stats/(topics|load-report)"
    r"|/admin/v2/clusters/[^/]+/namespaceIsolationPolicies"
    r"|/admin/v2/namespaces/pulsar/system/[^/]+/topicHashPositions"
    r"|/admin/v2/persistent/pulsar/system/transaction_coordinator_assign/partitions"
)
"""What loads nothing, as measured on real clusters; all else needs its bundle to be owned."""
OF_OWNERS = re.compile(r"/admin/v2/persistent/acme/orders/([^/]+)/(stats|internalStats|backlogQuotaMap|retention)")


@pytest.fixture
def cluster() -> Iterator[Simulator]:
    """Three brokers behind a token; the second one holds all transaction coordinators."""
    with running(SPEC, token=TOKEN) as simulator:
        yield simulator


def settings_of(cluster: Simulator, token: str = TOKEN) -> AdminSettings:
    """How to reach it; failures are told at once."""
    return AdminSettings(urls=cluster.admin_urls, token=SecretStr(token), limits=AdminPolicy(read_attempts=1))


def order(out: Path) -> Order:
    """A snapshot below that folder."""
    return Order(cluster="lab", out=str(out), taken_at=datetime(2026, 1, 31, 23, 59, 59, tzinfo=UTC))


def test_a_whole_cluster_is_collected_and_judged(spark: SparkSession, cluster: Simulator, tmp_path: Path) -> None:
    """What the cluster shows is what planners are given."""
    before = cluster.owned_bundles()

    uri = diagnose(spark, collect(spark, settings_of(cluster), order(tmp_path)), Policy())

    assert uri == f"{tmp_path}/cluster=lab/taken_at=20260131T235959Z"
    snapshot = open_snapshot(uri)
    scene = scene_of(snapshot, Policy(), Moves())
    assert (scene.snapshot_id, scene.unread) == ("lab-20260131T235959Z", ())
    assert {bundle.owner for bundle in scene.tc_bundles} == {cluster.admin_urls[1].partition("//")[2]}
    assert sum(len(bundle.coordinators) for bundle in scene.tc_bundles) == 16
    assert ("tc-skew", Severity.CRITICAL) in {(finding.check_id, finding.severity) for finding in scene.findings}
    outlooks = {verdict.check_id: verdict.outlook for verdict in snapshot.verdicts()}
    assert (outlooks["tc-skew"], outlooks["bundle-topic-skew"]) == (Outlook.FOUND, Outlook.CLEAR)
    topics = snapshot.table(TOPICS, filters=[("namespace", "=", "acme/orders")])
    assert topics.num_rows == snapshot.table(SUBSCRIPTIONS, filters=[("namespace", "=", "acme/orders")]).num_rows == 20
    assert sum(row.topics or 0 for row in snapshot.brokers()) == snapshot.table(TOPICS).num_rows
    assert cluster.owned_bundles() == before


def test_looking_changes_nothing(spark: SparkSession, cluster: Simulator, tmp_path: Path) -> None:
    """Only GETs are sent, none of them could load a bundle, and each broker is asked for its statistics once."""
    collect(spark, settings_of(cluster), order(tmp_path))

    records = cluster.requests.all()
    assert {record.method for record in records} == {"GET"}
    assert [record.path for record in records if not HARMLESS.fullmatch(record.path)] == []
    for path in ("/admin/v2/broker-stats/topics", "/metrics/"):
        asked = [record.broker_id for record in records if record.path == path]
        assert sorted(asked) == sorted(cluster.active_brokers())


def test_looking_closer_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """What could load a bundle is asked of suspects only, and of their owners only, who have just said they are."""
    with running(TROUBLED, token=TOKEN) as cluster:
        before = cluster.owned_bundles()
        collect(spark, settings_of(cluster), order(tmp_path))
        records = cluster.requests.all()
        assert cluster.owned_bundles() == before

    assert {record.method for record in records} == {"GET"}
    closer = [record for record in records if not HARMLESS.fullmatch(record.path)]
    assert len(closer) == 3 + 1 + 2
    for record in closer:
        match = OF_OWNERS.fullmatch(record.path)
        assert match, record.path
        name = match[1] if "-partition-" in match[1] else f"{match[1]}-partition-0"
        position = position_of(f"persistent://acme/orders/{name}")
        mine = [bundle.rpartition("/") for bundle in before[record.broker_id]]
        assert any(space == "acme/orders" and position in BundleRange.parse(text) for space, _, text in mine)


def test_suspects_are_looked_at_closer(spark: SparkSession, tmp_path: Path) -> None:
    """Those that are loaded: their own figures and policies stand beside each other; a healthy topic is left alone."""
    with running(TROUBLED, token=TOKEN) as cluster:
        url = f"{cluster.admin_urls[0]}/admin/v2/persistent/acme/orders/t/retention"
        retention = {"retentionTimeInMinutes": 60, "retentionSizeInMB": 100}
        headers = {"Authorization": f"Bearer {TOKEN}"}
        target = httpx.post(url, json=retention, headers=headers).headers.get("Location", url)
        assert httpx.post(target, json=retention, headers=headers).is_success
        snapshot = open_snapshot(collect(spark, settings_of(cluster), order(tmp_path)))

    rows = sorted(snapshot.table(DRILLED).to_pylist(), key=lambda row: str(row["topic"]))
    assert [row["topic"] for row in rows] == [f"persistent://acme/orders/t-partition-{n}" for n in range(3)]
    assert {row["topic_quota_json"] for row in rows} == {"{}"}
    assert {row["topic_retention_json"] for row in rows} == {'{"retentionSizeInMB":100,"retentionTimeInMinutes":60}'}
    assert {(row["delayed_messages"], row["ack_hole_ranges"]) for row in rows} == {(2, 3)}
    assert [row["ledgers"] for row in rows].count(1) == 1
    assert snapshot.table(CLIENTS).num_rows == 3
    assert set(snapshot.table(METRICS)["source_kind"].to_pylist()) == {"broker"}
    assert snapshot.table(CONFIGURATION, ["broker"]).num_rows % 3 == 0


def test_nobody_is_looked_at_closer_where_the_policy_says_so(spark: SparkSession, tmp_path: Path) -> None:
    """A budget of none leaves the table empty."""
    with running(TROUBLED, token=TOKEN) as cluster:
        none = msgspec.structs.replace(order(tmp_path), policy=CollectPolicy(drilled_topics=0))
        snapshot = open_snapshot(collect(spark, settings_of(cluster), none))
        assert [record.path for record in cluster.requests.all() if not HARMLESS.fullmatch(record.path)] == []

    assert snapshot.table(DRILLED).num_rows == 0


def test_endpoints_of_the_policy_are_asked_without_the_token(
    spark: SparkSession, cluster: Simulator, tmp_path: Path
) -> None:
    """A bookie's series come beside the brokers'; one that does not answer has none."""
    with running(ClusterSpec(brokers=1)) as other:
        url = f"{other.admin_urls[0]}/metrics/"
        policy = CollectPolicy(metrics_urls=(f"bookie={url}", "zookeeper=http://127.0.0.1:1/metrics"))
        wanted = msgspec.structs.replace(order(tmp_path), policy=policy)
        snapshot = open_snapshot(collect(spark, settings_of(cluster), wanted))
        heard = other.requests.all()

    assert [record.path for record in heard] == ["/metrics/"]
    found = snapshot.table(METRICS, filters=[("source_kind", "=", "bookie")]).to_pylist()
    assert {row["source"] for row in found} == {url.split("/")[2]}
    assert "jvm_memory_bytes_used" in {row["series"] for row in found}
    assert {row["source_kind"] for row in snapshot.table(METRICS).to_pylist()} == {"broker", "bookie"}


def test_a_broker_that_died_makes_the_snapshot_partial(spark: SparkSession, cluster: Simulator, tmp_path: Path) -> None:
    """It stays listed for a while: what it may own is unknown, and nothing is said to be healthy."""
    dead = cluster.admin_urls[1].partition("//")[2]
    cluster.kill_broker(dead)

    snapshot = open_snapshot(diagnose(spark, collect(spark, settings_of(cluster), order(tmp_path)), Policy()))

    assert snapshot.meta().unread_brokers == (dead,)
    assert [row.broker for row in snapshot.brokers() if not row.read] == [dead]
    assert {(row.broker, row.broker_known) for row in snapshot.coordinators()} == {(None, False)}
    assert all(row.positions for row in snapshot.system_bundles() if not row.owner_known and row.positions is not None)
    assert Outlook.CLEAR not in {verdict.outlook for verdict in snapshot.verdicts()}


def test_a_namespace_that_fails_makes_the_snapshot_partial(
    spark: SparkSession, cluster: Simulator, tmp_path: Path
) -> None:
    """The others are there all the same."""
    cluster.faults.add(Fault(Answer(500), path="/namespaces/acme/idle$", times=None))

    snapshot = open_snapshot(collect(spark, settings_of(cluster), order(tmp_path)))

    assert snapshot.meta().unread_namespaces == ("acme/idle",)
    assert "acme/orders" in {row.namespace for row in snapshot.namespaces()}


def test_coordinators_that_nobody_loaded_are_nowhere(spark: SparkSession, tmp_path: Path) -> None:
    """Their bundles carry the positions that can be computed, and looking does not load them."""
    with running(ClusterSpec(tc_loaded=False)) as cluster:
        settings = AdminSettings(urls=cluster.admin_urls)
        snapshot = open_snapshot(collect(spark, settings, order(tmp_path)))
        assert set(cluster.tc_placement().values()) == {0}

    assert {(row.broker, row.broker_known) for row in snapshot.coordinators()} == {(None, True)}
    assert sum(len(row.positions or ()) for row in snapshot.system_bundles()) == 16


def test_a_wrong_token_is_told_at_once(spark: SparkSession, cluster: Simulator, tmp_path: Path) -> None:
    """Without the right one there is no snapshot at all."""
    with pytest.raises(NotAllowed, match="401"):
        collect(spark, settings_of(cluster, "another.token_altogether"), order(tmp_path))

    assert not list(tmp_path.iterdir())


def test_a_cluster_of_which_no_broker_can_be_read_is_an_error(
    spark: SparkSession, cluster: Simulator, tmp_path: Path
) -> None:
    """A snapshot of nothing would look like an empty cluster."""
    cluster.faults.add(Fault(Answer(403, "no superuser"), path="broker-stats/topics", times=None))

    with pytest.raises(NobodyAnswered, match="403 no superuser"):
        collect(spark, settings_of(cluster), order(tmp_path))


def test_collecting_and_judging_again_replaces_what_was_there(
    spark: SparkSession, cluster: Simulator, tmp_path: Path
) -> None:
    """A task that is tried again leaves one snapshot, not two in one."""
    for _ in range(2):
        uri = diagnose(spark, collect(spark, settings_of(cluster), order(tmp_path)), Policy())

    snapshot = open_snapshot(uri)
    assert len(snapshot.brokers()) == 3
    assert [finding.check_id for finding in snapshot.findings()].count("tc-skew") == 1


def test_an_unfinished_snapshot_is_not_judged(spark: SparkSession, tmp_path: Path) -> None:
    """Half of a cluster would pass for all of it."""
    with pytest.raises(SnapshotError, match="holds no _SUCCESS"):
        diagnose(spark, str(tmp_path), Policy())


@pytest.mark.parametrize(
    ("cluster_name", "taken_at", "words"),
    [
        ("../up", datetime(2026, 1, 1, tzinfo=UTC), "cluster name"),
        ("lab", datetime(2026, 1, 1), "time zone"),  # noqa: DTZ001 - what is to be refused
    ],
)
def test_an_order_that_makes_no_path_is_refused(
    spark: SparkSession, tmp_path: Path, cluster_name: str, taken_at: datetime, words: str
) -> None:
    """Nothing is asked of the cluster first."""
    bad = Order(cluster=cluster_name, out=str(tmp_path), taken_at=taken_at)

    with pytest.raises(ConfigurationError, match=words):
        collect(spark, AdminSettings(urls=("http://127.0.0.1:1",)), bad)
