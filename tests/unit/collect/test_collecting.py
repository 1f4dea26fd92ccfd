"""From a made-up cluster to a finished, diagnosed snapshot."""

from __future__ import annotations

import os
import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import msgspec
import pyarrow.parquet as pq
import pytest
from pydantic import SecretStr

from lab.simulator import Answer, ClusterSpec, Fault, NamespaceSpec, Simulator, SubscriptionSpec, TopicSpec
from lab.simulator import running_simulator as running
from pulsar_steward.collect import collecting
from pulsar_steward.collect.collecting import CollectParameters, collect
from pulsar_steward.collect.metrics import Metrics
from pulsar_steward.collect.overview import Overview, look_over
from pulsar_steward.collect.reading import TaskDivision, WrittenByTasks
from pulsar_steward.diagnose.diagnosing import diagnose
from pulsar_steward.errors import ConfigurationError, NobodyAnswered, NotAllowed
from pulsar_steward.model.bundles import BundleRange, position_of
from pulsar_steward.model.finding import Outlook, Severity
from pulsar_steward.model.tables import CLIENTS, CONFIGURATION, DRILLED, METRICS, SUBSCRIPTIONS, TOPICS
from pulsar_steward.planners.from_snapshot import Moves, planning_facts_of
from pulsar_steward.policy.schema import AdminPolicy, CollectPolicy, Policy
from pulsar_steward.pulsar.metrics import Sample
from pulsar_steward.pulsar.settings import AdminSettings
from pulsar_steward.runtime.parallel import OnThreads
from pulsar_steward.snapshots.folder import STAGING, LocalFiles, SnapshotFolder, snapshot_uri
from pulsar_steward.snapshots.read import Snapshot, open_snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pulsar_steward.pulsar.reader import Reader

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
    r"|/admin/v2/broker-stats/(topics|load-report)|/admin/v2/bookies/all"
    r"|/admin/v2/clusters/[^/]+/namespaceIsolationPolicies"
    r"|/admin/v2/namespaces/pulsar/system/[^/]+/topicHashPositions"
    r"|/admin/v2/persistent/pulsar/system/transaction_coordinator_assign/partitions"
)
"""What loads nothing, as measured on real clusters; all else needs its bundle to be owned."""
OF_OWNERS = re.compile(
    r"/admin/v2/persistent/acme/orders/([^/]+)/(stats|internalStats|internal-info|backlogQuotaMap|retention)"
)


@pytest.fixture
def cluster() -> Iterator[Simulator]:
    """Three brokers behind a token; the second one holds all transaction coordinators."""
    with running(SPEC, token=TOKEN) as simulator:
        yield simulator


def settings_of(cluster: Simulator, token: str = TOKEN) -> AdminSettings:
    """Settings to reach the cluster, with one attempt for each read."""
    return AdminSettings(urls=cluster.admin_urls, token=SecretStr(token), limits=AdminPolicy(read_attempts=1))


ORDER = CollectParameters(cluster="lab", taken_at=datetime(2026, 1, 31, 23, 59, 59, tzinfo=UTC))


def collected(settings: AdminSettings, out: Path, order: CollectParameters = ORDER) -> SnapshotFolder:
    """A snapshot below that folder, taken on threads."""
    folder = SnapshotFolder(LocalFiles(), snapshot_uri(str(out), order.cluster, order.taken_at))
    threads = OnThreads(2)
    collect(settings, order, folder, WrittenByTasks(settings, folder, threads, TaskDivision(2, 2)), threads)
    return folder


def opened(settings: AdminSettings, out: Path, order: CollectParameters = ORDER) -> Snapshot:
    """The same, as readers see it."""
    return open_snapshot(collected(settings, out, order).uri)


def diagnosed(settings: AdminSettings, out: Path, order: CollectParameters = ORDER) -> Snapshot:
    """The same, and what was found in it."""
    folder = collected(settings, out, order)
    diagnose(folder, Policy(), OnThreads(2))
    return open_snapshot(folder.uri)


def test_a_whole_cluster_is_collected_and_judged(cluster: Simulator, tmp_path: Path) -> None:
    """A snapshot of a whole cluster yields the findings and planning facts that its brokers show."""
    before, began = cluster.owned_bundles(), datetime.now(UTC)

    snapshot = diagnosed(settings_of(cluster), tmp_path)

    span = snapshot.meta()
    assert began <= (span.read_from or began) < (span.read_until or began) <= datetime.now(UTC)
    assert [path.name for path in (tmp_path / "cluster=lab").iterdir()] == ["taken_at=20260131T235959Z"]
    scene = planning_facts_of(snapshot, Policy(), Moves())
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


def test_looking_changes_nothing(cluster: Simulator, tmp_path: Path) -> None:
    """A snapshot sends only GETs that load no bundle, and asks each active broker for its statistics once."""
    collected(settings_of(cluster), tmp_path)

    records = cluster.requests.all()
    assert {record.method for record in records} == {"GET"}
    assert [record.path for record in records if not HARMLESS.fullmatch(record.path)] == []
    for path in ("/admin/v2/broker-stats/topics", "/metrics/"):
        asked = [record.broker_id for record in records if record.path == path]
        assert sorted(asked) == sorted(cluster.active_brokers())


NAMES: dict[str, tuple[dict[str, str], str | None]] = {
    "a partition's name": ({"topic": "persistent://t/n/t-partition-3"}, "persistent://t/n/t-partition-3"),
    "a partition's number apart": ({"topic": "persistent://t/n/t", "partition": "3"}, "persistent://t/n/t-partition-3"),
    "no partition": ({"topic": "persistent://t/n/t", "partition": "-1"}, "persistent://t/n/t"),
    "no topic": ({"partition": "3"}, None),
}


@pytest.mark.parametrize(("labels", "topic"), NAMES.values(), ids=NAMES)
def test_samples_have_the_full_names_of_their_topics(labels: dict[str, str], topic: str | None) -> None:
    """A row of `metrics` names its partition also where brokers tell that apart, and keeps all labels as they were."""
    (batch,) = Metrics(whole=True, samples=[Sample("s", labels, 1.0)]).rows("a:1", "broker")

    (row,) = batch.rows.to_pylist()
    assert (row["topic"], msgspec.json.decode(row["labels_json"])) == (topic, labels)


def test_looking_closer_changes_nothing(tmp_path: Path) -> None:
    """Only the owner of a suspect's bundle is asked about the suspect, and the owned bundles stay the same."""
    with running(TROUBLED, token=TOKEN) as cluster:
        before = cluster.owned_bundles()
        collected(settings_of(cluster), tmp_path)
        records = cluster.requests.all()
        assert cluster.owned_bundles() == before

    assert {record.method for record in records} == {"GET"}
    closer = [record for record in records if not HARMLESS.fullmatch(record.path)]
    assert len(closer) == 3 + 2 + 2
    for record in closer:
        match = OF_OWNERS.fullmatch(record.path)
        assert match, record.path
        name = match[1] if "-partition-" in match[1] else f"{match[1]}-partition-0"
        position = position_of(f"persistent://acme/orders/{name}")
        mine = [bundle.rpartition("/") for bundle in before[record.broker_id]]
        assert any(space == "acme/orders" and position in BundleRange.parse(text) for space, _, text in mine)


def test_suspects_are_looked_at_closer(tmp_path: Path) -> None:
    """Loaded topics with trouble are read in detail, with their own policies; a healthy topic is not."""
    with running(TROUBLED, token=TOKEN) as cluster:
        url = f"{cluster.admin_urls[0]}/admin/v2/persistent/acme/orders/t/retention"
        retention = {"retentionTimeInMinutes": 60, "retentionSizeInMB": 100}
        headers = {"Authorization": f"Bearer {TOKEN}"}
        target = httpx.post(url, json=retention, headers=headers).headers.get("Location", url)
        assert httpx.post(target, json=retention, headers=headers).is_success
        snapshot = opened(settings_of(cluster), tmp_path)

    rows = sorted(snapshot.table(DRILLED).to_pylist(), key=lambda row: str(row["topic"]))
    assert [row["topic"] for row in rows] == [f"persistent://acme/orders/t-partition-{n}" for n in range(3)]
    assert {row["topic_quota_json"] for row in rows} == {"{}"}
    assert {row["topic_retention_json"] for row in rows} == {'{"retentionSizeInMB":100,"retentionTimeInMinutes":60}'}
    assert {row["delayed_messages"] for row in rows} == {2}
    assert [row["ledgers"] for row in rows].count(2) == 1
    assert snapshot.table(CLIENTS).num_rows == 3
    assert set(snapshot.table(METRICS)["source_kind"].to_pylist()) == {"broker"}
    settings = Counter(snapshot.table(CONFIGURATION, ["broker"])["broker"].to_pylist())
    assert (len(settings), len(set(settings.values()))) == (3, 1)


def test_nobody_is_looked_at_closer_where_the_policy_says_so(tmp_path: Path) -> None:
    """A budget of no topics leaves the table of details empty, and no topic is asked about."""
    with running(TROUBLED, token=TOKEN) as cluster:
        none = msgspec.structs.replace(ORDER, policy=CollectPolicy(drilled_topics=0))
        snapshot = opened(settings_of(cluster), tmp_path, none)
        assert [record.path for record in cluster.requests.all() if not HARMLESS.fullmatch(record.path)] == []

    assert snapshot.table(DRILLED).num_rows == 0


def test_endpoints_of_the_policy_are_asked_without_the_token(cluster: Simulator, tmp_path: Path) -> None:
    with running(ClusterSpec(brokers=1)) as other:
        url = f"{other.admin_urls[0]}/metrics/"
        policy = CollectPolicy(metrics_urls=(f"bookie={url}", "zookeeper=http://127.0.0.1:1/metrics"))
        wanted = msgspec.structs.replace(ORDER, policy=policy)
        snapshot = opened(settings_of(cluster), tmp_path, wanted)
        heard = other.requests.all()

    paths = ["/metrics/", "/api/v1/config/server_config"]
    assert [(record.path, record.had_authorization) for record in heard] == [(path, False) for path in paths]
    found = snapshot.table(METRICS, filters=[("source_kind", "=", "bookie")]).to_pylist()
    assert {row["source"] for row in found} == {url.split("/")[2]}
    assert "jvm_memory_direct_bytes_used" in {row["series"] for row in found}
    assert {row["source_kind"] for row in snapshot.table(METRICS).to_pylist()} == {"broker", "bookie"}


def test_a_broker_that_died_makes_the_snapshot_partial(cluster: Simulator, tmp_path: Path) -> None:
    dead = cluster.admin_urls[1].partition("//")[2]
    cluster.kill_broker(dead)

    snapshot = diagnosed(settings_of(cluster), tmp_path)

    assert snapshot.meta().unread_brokers == (dead,)
    assert [row.broker for row in snapshot.brokers() if not row.read] == [dead]
    assert {(row.broker, row.broker_known) for row in snapshot.coordinators()} == {(None, False)}
    bundles = snapshot.system_bundles()
    assert {(row.owner, row.owner_known) for row in bundles} == {(None, False)}
    assert sum(len(row.positions or ()) for row in bundles) == 16
    assert {verdict.outlook for verdict in snapshot.verdicts()} == {Outlook.UNKNOWN}


def test_the_names_of_namespaces_that_only_other_clusters_serve_are_kept(tmp_path: Path) -> None:
    spec = ClusterSpec(namespaces=(NamespaceSpec("acme/there", policies={"replication_clusters": ["west"]}),))
    with running(spec) as cluster:
        snapshot = opened(settings_of(cluster), tmp_path)
    assert snapshot.meta().served_elsewhere == ("acme/there",)


def test_a_namespace_that_fails_makes_the_snapshot_partial(cluster: Simulator, tmp_path: Path) -> None:
    """A namespace that cannot be read makes the snapshot partial, and the others are in it."""
    cluster.faults.add(Fault(Answer(500), path="/namespaces/acme/idle$", times=None))

    snapshot = opened(settings_of(cluster), tmp_path)

    assert snapshot.meta().unread_namespaces == ("acme/idle",)
    assert snapshot.namespaces(["acme/orders"])


def test_coordinators_that_nobody_loaded_are_nowhere(tmp_path: Path) -> None:
    with running(ClusterSpec(tc_loaded=False)) as cluster:
        settings = AdminSettings(urls=cluster.admin_urls)
        snapshot = opened(settings, tmp_path)
        assert set(cluster.tc_placement().values()) == {0}

    assert {(row.broker, row.broker_known) for row in snapshot.coordinators()} == {(None, True)}
    assert sum(len(row.positions or ()) for row in snapshot.system_bundles()) == 16


def test_a_wrong_token_is_told_at_once(cluster: Simulator, tmp_path: Path) -> None:
    """A wrong token ends the collection with a 401, and no file is written."""
    with pytest.raises(NotAllowed, match="401"):
        collected(settings_of(cluster, "another.token_altogether"), tmp_path)

    assert not list(tmp_path.iterdir())


def test_a_cluster_of_which_no_broker_can_be_read_is_an_error(cluster: Simulator, tmp_path: Path) -> None:
    cluster.faults.add(Fault(Answer(403, "no superuser"), path="broker-stats/topics", times=None))

    with pytest.raises(NobodyAnswered, match="403 no superuser"):
        collected(settings_of(cluster), tmp_path)


def test_files_of_tries_that_did_not_end_well_do_not_count(cluster: Simulator, tmp_path: Path) -> None:
    """A second collection replaces the first, and removes files that an unfinished try left in the staging folder."""
    folder = collected(settings_of(cluster), tmp_path)
    count = folder.read(TOPICS).num_rows
    (one, *_) = Path(folder.uri, TOPICS.name).glob("*.parquet")
    staged = Path(folder.uri, STAGING, TOPICS.name)
    staged.mkdir(parents=True)
    os.link(one, staged / "part-of-a-lost-try.parquet")

    collected(settings_of(cluster), tmp_path)

    assert folder.read(TOPICS).num_rows == count
    assert not Path(folder.uri, STAGING).exists()


def test_what_goes_wrong_leaves_no_snapshot_behind(cluster: Simulator, tmp_path: Path) -> None:
    """A collection that fails leaves no staging folder, and a finished snapshot from before stays finished."""
    before = collected(settings_of(cluster), tmp_path)
    cluster.faults.add(Fault(Answer(403, "no superuser"), path="broker-stats/topics", times=None))

    with pytest.raises(NobodyAnswered):
        collected(settings_of(cluster), tmp_path)

    assert before.finished()
    assert not Path(before.uri, STAGING).exists()


def test_the_token_never_travels_unencrypted_to_another_machine(
    cluster: Simulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token that would go unencrypted to another machine ends the collection before statistics are read."""

    def with_one_more(reader: Reader) -> Overview:
        seen = look_over(reader)
        return msgspec.structs.replace(seen, brokers=(*seen.brokers, "broker.elsewhere.example:8080"))

    monkeypatch.setattr(collecting, "look_over", with_one_more)

    with pytest.raises(ConfigurationError, match="unencrypted"):
        collected(settings_of(cluster), tmp_path)

    assert not list(tmp_path.iterdir())
    assert [record for record in cluster.requests.all() if "broker-stats" in record.path] == []


@pytest.mark.parametrize("shards", [1, 2, 7])
def test_brokers_are_divided_into_as_many_shards_as_are_asked_for(
    cluster: Simulator, tmp_path: Path, shards: int
) -> None:
    folder = SnapshotFolder(LocalFiles(), snapshot_uri(str(tmp_path), ORDER.cluster, ORDER.taken_at))
    settings, threads = settings_of(cluster), OnThreads(2)
    collect(settings, ORDER, folder, WrittenByTasks(settings, folder, threads, TaskDivision(shards, 2)), threads)

    found = folder.shards()
    assert len(found) == min(shards, 3)
    owners = [set(pq.read_table(list(shard["topics"]), columns=["broker"])["broker"].to_pylist()) for shard in found]
    assert sum(map(len, owners)) == len(set().union(*owners)) == 3


@pytest.mark.parametrize(("brokers", "tasks"), [(0, 1), (1, 1), (3, 3), (100, 4), (200, 4), (201, 5), (1_000, 20)])
def test_no_shard_holds_too_many_brokers(brokers: int, tasks: int) -> None:
    """The number of tasks grows with the brokers, so that no shard holds more than 50 of them."""
    assert TaskDivision(tasks=4, at_once=8).tasks_for(brokers) == tasks
