"""The reader: what it makes of brokers' documents, and that it cannot write."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.errors import AdminError, BrokenAnswer, NotFound, Precondition, RedirectRefused, ServerError
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, Retention, SettingName, TimeToLive
from pulsar_steward.pulsar.reader import ClusterAddress, ClusterMigration, Reader
from tests.unit.pulsar.scripted import MEMBERS, Reply, ScriptedBroker, answer, raw, redirect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.unit.pulsar.conftest import MakeBroker, MakeSettings

CONTRACT = Path(__file__).resolve().parents[2] / "contract"
BUNDLE = "0x00000000_0x80000000"
POSITIONS = f"/admin/v2/namespaces/pulsar/system/{BUNDLE}/topicHashPositions"
TC = "persistent://pulsar/system/transaction_coordinator_assign-partition-0"
VERSION = "/admin/v2/brokers/version"
SCALABLE = "/admin/v2/scalable/a/x"
GROUP = "/admin/v2/namespaces/a/x/antiAffinity"
ISOLATION = "/admin/v2/clusters/local/namespaceIsolationPolicies"
POLICIES = b'{"bundles":{"boundaries":["0x00000000","0xffffffff"],"numBundles":1},"deleted":false}'
ISOLATED = {"gold": {"namespaces": ["t/.*"], "primary": ["broker-1.*"], "secondary": []}}

LEADER, RUNNING = f"{MEMBERS}/leaderBroker", f"{MEMBERS}/configuration/runtime"
NAMESPACE, BUNDLES = "/admin/v2/namespaces/a/x", "/admin/v2/namespaces/a/x/bundles"
OWNED, PARTITIONS = f"{MEMBERS}/local/a%3A8080/ownedNamespaces", "/admin/v2/persistent/a/x/t/partitions"
SETTINGS_OF_BROKER = {"transactionCoordinatorEnabled": "true", "brokerDeleteInactiveTopicsMaxInactive": ""}
LOAD = {"cpu": {"usage": 12.5, "limit": 200.0}}
OWN_SETTINGS = {
    "backlog_quota_map": {"message_age": {"limitTime": 60, "policy": "producer_exception"}},
    "retention_policies": {"retentionTimeInMinutes": 5, "retentionSizeInMB": -1},
    "message_ttl_in_seconds": 0,
}
AS_OWN = {
    SettingName.AGE_QUOTA: BacklogQuota(limit_seconds=60, policy=QuotaPolicy.REFUSE),
    SettingName.RETENTION: Retention(minutes=5, megabytes=-1),
    SettingName.TTL: TimeToLive(seconds=0),
}
EDGES = ["0x00000000", "0x80000000", "0xffffffff"]
SHARED = {"broker_assignment": "shared", "is_active": True}
UPPER = "pulsar/system/0x80000000_0xffffffff"
NOT_OWNED = answer({"reason": f"Failed to find ownership for ServiceUnit:pulsar/system/{BUNDLE}"}, status=412)
WRONG_EDGE = answer({"reason": f"Invalid upper boundary for bundle {BUNDLE}"}, status=412)
CLUSTERS = answer({"replication_clusters": ["local", "west"], "allowed_clusters": ["east"]})
AT = ("pulsar/system", BUNDLE)
A = ("local", "a:8080")
PLACED = {TC: 1103633926}
EAST = "/admin/v2/clusters/east"
RACKS = "/admin/v2/bookies/racks-info"
SPACED = "/admin/v2/persistent/a/x/t%201%2F2/partitions"
ANSWERS: list[tuple[str, tuple[Any, ...], str, Reply, Any]] = [
    ("brokers", (), MEMBERS, answer(["b:2", "a:1"]), ("a:1", "b:2")),
    ("leader", (), LEADER, answer({"brokerId": "a:8080", "serviceUrl": "http://a:8080"}), "a:8080"),
    ("leader", (), LEADER, answer({"serviceUrl": "http://a:8080"}), "a:8080"),
    ("leader", (), LEADER, answer({}), None),
    ("leader", (), LEADER, answer({"reason": "none"}, status=404), None),
    ("version", (), VERSION, answer(b"4.0.7"), "4.0.7"),
    ("version", (), VERSION, answer(b'"4.0.7"\n'), "4.0.7"),
    ("runtime_configuration", (), RUNNING, answer(SETTINGS_OF_BROKER), SETTINGS_OF_BROKER),
    ("tenants", (), "/admin/v2/tenants", answer(["pulsar", "a"]), ("a", "pulsar")),
    ("tenants", (), "/admin/v2/tenants", answer([]), ()),
    ("namespaces", ("a",), "/admin/v2/namespaces/a", answer(["a/y", "a/x"]), ("a/x", "a/y")),
    ("namespace_policies", ("a/x",), NAMESPACE, answer(POLICIES), POLICIES),
    ("remotes_of", ("a/x",), NAMESPACE, answer({"replication_clusters": ["b", "a", "a"]}), {"a", "b"}),
    ("remotes_of", ("a/x",), NAMESPACE, answer({}), None),
    ("allowed_clusters", ("a",), "/admin/v2/tenants/a", answer({"allowedClusters": ["b", "a"]}), {"a", "b"}),
    ("allowed_clusters", ("a",), "/admin/v2/tenants/a", answer({"reason": "none"}, status=404), None),
    ("clusters", (), "/admin/v2/clusters", answer(["east", "global"]), ("east", "global")),
    ("address_of", ("east",), EAST, answer({"serviceUrl": "http://e:8080"}), ClusterAddress("http://e:8080")),
    ("partitioned", ("a/x",), "/admin/v2/persistent/a/x/partitioned", answer(["p/b", "p/a"]), ("p/a", "p/b")),
    ("own_settings", ("a/x",), NAMESPACE, answer(OWN_SETTINGS), AS_OWN),
    ("own_settings", ("a/x",), NAMESPACE, answer({"backlog_quota_map": {}}), {}),
    ("boundaries", ("a/x",), BUNDLES, answer({"boundaries": EDGES, "numBundles": 2}), tuple(EDGES)),
    ("owned_bundles", A, OWNED, answer({UPPER: SHARED, f"a/x/{BUNDLE}": SHARED}), (f"a/x/{BUNDLE}", UPPER)),
    ("owned_bundles", A, OWNED, answer({}), ()),
    ("topic_positions", AT, POSITIONS, answer({"bundle": BUNDLE, "topicHashPositions": PLACED}), PLACED),
    ("topic_positions", AT, POSITIONS, NOT_OWNED, None),
    ("partitions", ("persistent://a/x/t 1/2",), SPACED, answer({"partitions": 16}), 16),
    ("partitions", ("persistent://a/x/t",), PARTITIONS, answer({"reason": "Topic not found"}, status=404), 0),
    ("topic_statistics", (), "/admin/v2/broker-stats/topics", answer(b'{"a/x":{}}'), b'{"a/x":{}}'),
    ("load_report", (), "/admin/v2/broker-stats/load-report", answer(LOAD), LOAD),
    ("metrics", (), "/metrics/", answer(b"up 1\n"), b"up 1\n"),
    ("clock_skew_milliseconds", (), VERSION, raw(b"HTTP/1.1 200 OK\r\n\r\n4.0.7"), None),
    ("version_and_clock", (), VERSION, raw(b"HTTP/1.1 200 OK\r\n\r\n4.0.7"), ("4.0.7", None)),
    ("isolation_policies", ("local",), ISOLATION, answer(ISOLATED), ISOLATED),
    ("isolation_policies", ("local",), ISOLATION, answer(), {}),
    ("isolation_policies", ("local",), ISOLATION, answer({"reason": "none"}, status=404), {}),
    ("bookies_in", (("gold",),), RACKS, answer({"gold": {"a:1": {}}, "default": {"b:1": {}}}), frozenset({"a:1"})),
    ("anti_affinity_group", ("a/x",), GROUP, answer(b"apart"), "apart"),
    ("anti_affinity_group", ("a/x",), GROUP, answer(status=204), None),
    (
        "scalable_topics",
        ("a/x",),
        SCALABLE,
        answer(["topic://a/x/u", "topic://a/x/t"]),
        ("topic://a/x/t", "topic://a/x/u"),
    ),
    ("scalable_topics", ("a/x",), SCALABLE, answer(status=404), None),
    ("clusters_of", ("a/x",), NAMESPACE, CLUSTERS, frozenset({"local", "west", "east"})),
    ("clusters_of", ("a/x",), NAMESPACE, answer({}), frozenset()),
    ("own_compaction_bytes", ("a/x",), NAMESPACE, answer({"compaction_threshold": 1 << 20}), 1 << 20),
    ("own_compaction_bytes", ("a/x",), NAMESPACE, answer({}), None),
    ("own_most_topics", ("a/x",), NAMESPACE, answer({"max_topics_per_namespace": 9}), 9),
]
FAILURES: list[tuple[str, tuple[str, ...], str, Reply, type[AdminError]]] = [
    ("brokers", (), MEMBERS, answer(), BrokenAnswer),
    ("boundaries", ("a/x",), BUNDLES, answer({}), BrokenAnswer),
    ("boundaries", ("a/x",), BUNDLES, answer(), BrokenAnswer),
    ("boundaries", ("a/x",), BUNDLES, answer(status=404), NotFound),
    ("topic_positions", AT, POSITIONS, answer({}), BrokenAnswer),
    ("topic_positions", AT, POSITIONS, answer({"topicHashPositions": {TC: "far"}}), BrokenAnswer),
    ("topic_positions", AT, POSITIONS, WRONG_EDGE, Precondition),
    ("partitions", ("persistent://a/x/t",), PARTITIONS, answer([]), BrokenAnswer),
    ("metrics", (), "/metrics/", redirect("/metrics/elsewhere"), RedirectRefused),
    ("metrics", (), "/metrics/", answer(status=404), NotFound),
    ("isolation_policies", ("local",), ISOLATION, answer([]), BrokenAnswer),
    ("load_report", (), "/admin/v2/broker-stats/load-report", answer(b"null"), BrokenAnswer),
]


def asked_of(reader: Reader, method: str, given: tuple[str, ...]) -> Any:
    """What a method of the reader gives back; metrics, which come in pieces, as a whole."""
    found = getattr(reader, method)(*given)
    return b"".join(found) if method == "metrics" else found


@pytest.fixture
def reader(broker: ScriptedBroker, settings: MakeSettings) -> Iterator[Reader]:
    with Reader(settings(broker.url, read_attempts=1)) as reader:
        yield reader


@pytest.mark.parametrize(("method", "given", "path", "reply", "expected"), ANSWERS)
def test_a_document_is_read(
    method: str, given: tuple[str, ...], path: str, reply: Reply, expected: Any, reader: Reader, broker: ScriptedBroker
) -> None:
    """Each method asks one path, by GET, and gives back what the document says."""
    broker.on(path, reply)
    assert asked_of(reader, method, given) == expected
    assert [(asked.method, asked.target) for asked in broker.asked] == [("GET", path)]


def test_a_clock_is_compared_with_this_machines(reader: Reader, broker: ScriptedBroker) -> None:
    broker.on(VERSION, answer(b"4.0.7"))
    skew = reader.clock_skew_milliseconds()
    assert skew is not None
    assert abs(skew) <= 2000


@pytest.mark.parametrize(("method", "given", "path", "reply", "expected"), FAILURES)
def test_a_document_of_another_kind_is_an_error(
    method: str, given: tuple[str, ...], path: str, reply: Reply, expected: type[AdminError], reader: Reader,
    broker: ScriptedBroker,
) -> None:  # fmt: skip
    """An answer that is not as documented, or has an error status, raises the expected kind of `AdminError`."""
    broker.on(path, reply)
    with pytest.raises(expected):
        asked_of(reader, method, given)


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (answer(status=404), ((), set())),
        (answer(b"", status=204), ((), set())),
        (answer(b"null"), ((), set())),
        (answer({"bookkeeperAffinityGroupPrimary": "", "bookkeeperAffinityGroupSecondary": ""}), ((), set())),
        (answer({"bookkeeperAffinityGroupPrimary": "gold,silver"}), (("gold", "silver"), {"a:1", "b:1", "c:1"})),
        (
            answer({"bookkeeperAffinityGroupPrimary": "gold", "bookkeeperAffinityGroupSecondary": "none"}),
            (("gold", "none"), {"a:1", "b:1"}),
        ),
    ],
    ids=["older brokers: none", "none", "null", "empty", "two groups", "a second one without bookies"],
)
def test_bookies_of_a_namespace_are_those_of_its_groups(
    told: Reply, expected: Any, reader: Reader, broker: ScriptedBroker
) -> None:
    """Where a namespace has an affinity group, the racks tell which bookies are in it."""
    broker.on("/admin/v2/namespaces/a/x/persistence/bookieAffinity", told)
    racks: dict[str, dict[str, Any]] = {
        "gold": {"a:1": {}, "b:1": {}},
        "silver": {"b:1": {}, "c:1": {}},
        "default": {"d:1": {}},
    }
    broker.on(RACKS, answer(racks))
    groups = reader.bookie_groups("a/x")
    assert (groups, reader.bookies_in(groups)) == expected


def test_metrics_of_a_broker_that_moves_a_bundle_are_asked_for_again(
    broker: ScriptedBroker, settings: MakeSettings
) -> None:
    """It answers with 500 for a moment; one that goes on so is told."""
    with Reader(settings(broker.url, read_attempts=2)) as reader:
        broker.on("/metrics/", answer(status=500), answer(b"up 1\n"))
        assert b"".join(reader.metrics()) == b"up 1\n"
        broker.on("/metrics/", answer(status=500))
        with pytest.raises(ServerError):
            next(iter(reader.metrics()))
    assert len(broker.asked_for("/metrics/")) == 4


@pytest.mark.parametrize(("own_path", "path"), [(True, f"{EAST}/migrate"), (False, EAST)])
def test_migration_has_a_path_of_its_own_since_3_2(
    own_path: bool, path: str, reader: Reader, broker: ScriptedBroker
) -> None:
    """Without a document of it, nobody ever began one."""
    assert reader.migration_of("east", own_path=own_path) == ClusterMigration()
    broker.on(path, answer({"migrated": True, "migratedClusterUrl": {"brokerServiceUrl": "pulsar://w:6650"}}))
    begun = ClusterMigration(migrated=True, migrated_cluster_url=ClusterAddress(service="pulsar://w:6650"))
    assert reader.migration_of("east", own_path=own_path) == begun


def test_every_method_is_tried() -> None:
    """Every method of the reader that asks a broker is in the table, another test here or one of the contract."""
    methods = {name for name, _ in inspect.getmembers(Reader, inspect.isfunction) if not name.startswith("_")}
    tried = {name for name, *_ in ANSWERS}
    contract = [file.read_text(encoding="utf-8") for file in (*CONTRACT.glob("test_*.py"), Path(__file__))]
    asked = {name for text in contract for name in re.findall(r"\breader\.(\w+)\(", text)}
    assert methods - {"at", "close", "url_of"} <= tried | asked


def test_a_reader_cannot_write(reader: Reader) -> None:
    """The reader's transport may send only GET, and no public method has the name of a change, such as `unload`."""
    assert reader._transport._methods == {"GET"}
    public = {name for name in dir(Reader) if not name.startswith("_")}
    assert not public & {"send", "put", "post", "delete", "unload", "split", "look_up"}
    assert not [name for name in public if name.startswith(("set", "create", "delete", "update", "remove", "write"))]


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE"])
def test_even_its_transport_refuses_to_write(method: Any, reader: Reader, broker: ScriptedBroker) -> None:
    """The reader's transport raises `PermissionError` for methods that write, and sends no request."""
    with pytest.raises(PermissionError):
        reader._transport.send(method, "/admin/v2/tenants/t")
    assert broker.asked == []


def test_one_broker_can_be_asked(make_broker: MakeBroker, settings: MakeSettings) -> None:
    first, second = make_broker(), make_broker()
    second.on("/admin/v2/brokers/version", answer(b"4.2.4"))
    with Reader(settings(first.url)) as reader, reader.at(second.id) as other:
        assert other.version() == "4.2.4"
    assert first.asked == []


def test_a_cluster_is_named_where_brokers_are_listed_by_name_only(reader: Reader, broker: ScriptedBroker) -> None:
    broker.on(MEMBERS, answer(status=404))
    broker.on(f"{MEMBERS}/configuration/runtime", answer({"clusterName": "a b"}))
    broker.on(f"{MEMBERS}/a%20b", answer(["b:2", "a:1"]))
    assert [reader.brokers() for _ in range(2)] == [("a:1", "b:2")] * 2
    assert len(broker.asked_for(f"{MEMBERS}/configuration/runtime")) == 1


@pytest.mark.parametrize("configuration", [answer(status=404), answer({}), answer({"clusterName": ".."})])
def test_who_tells_no_name_lists_no_brokers(reader: Reader, broker: ScriptedBroker, configuration: Reply) -> None:
    """If the brokers cannot be listed without the cluster's name, and it is unknown, the first error is raised."""
    broker.on(MEMBERS, answer(status=404))
    broker.on(f"{MEMBERS}/configuration/runtime", configuration)
    with pytest.raises(NotFound, match=rf"GET {MEMBERS} at"):
        reader.brokers()
