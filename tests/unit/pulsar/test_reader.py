"""The reader: what it makes of brokers' documents, and that it cannot write."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.errors import BrokenAnswer, NotFound, Precondition, RedirectRefused
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, Retention, SettingName, TimeToLive
from pulsar_steward.pulsar.reader import Reader
from tests.unit.pulsar.scripted import MEMBERS, answer, raw, redirect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pulsar_steward.errors import AdminError
    from pulsar_steward.pulsar.settings import AdminSettings
    from tests.unit.pulsar.scripted import Reply, ScriptedBroker

CONTRACT = Path(__file__).resolve().parents[2] / "contract"
BUNDLE = "0x00000000_0x80000000"
POSITIONS = f"/admin/v2/namespaces/pulsar/system/{BUNDLE}/topicHashPositions"
TC = "persistent://pulsar/system/transaction_coordinator_assign-partition-0"
VERSION = "/admin/v2/brokers/version"
GROUP = "/admin/v2/namespaces/a/x/antiAffinity"
ISOLATION = "/admin/v2/clusters/local/namespaceIsolationPolicies"
POLICIES = b'{"bundles":{"boundaries":["0x00000000","0xffffffff"],"numBundles":1},"deleted":false}'
ISOLATED = {"gold": {"namespaces": ["t/.*"], "primary": ["broker-1.*"], "secondary": []}}

ANSWERS: list[tuple[Callable[[Reader], Any], str, Reply, Any]] = [
    (lambda reader: reader.brokers(), MEMBERS, answer(["b:2", "a:1"]), ("a:1", "b:2")),
    (
        lambda reader: reader.leader(),
        f"{MEMBERS}/leaderBroker",
        answer({"brokerId": "a:8080", "serviceUrl": "http://a:8080"}),
        "a:8080",
    ),
    (lambda reader: reader.leader(), f"{MEMBERS}/leaderBroker", answer({"serviceUrl": "http://a:8080"}), "a:8080"),
    (lambda reader: reader.leader(), f"{MEMBERS}/leaderBroker", answer({}), None),
    (lambda reader: reader.leader(), f"{MEMBERS}/leaderBroker", answer({"reason": "none"}, status=404), None),
    (lambda reader: reader.version(), f"{MEMBERS}/version", answer(b"4.0.7"), "4.0.7"),
    (lambda reader: reader.version(), f"{MEMBERS}/version", answer(b'"4.0.7"\n'), "4.0.7"),
    (
        lambda reader: reader.runtime_configuration(),
        f"{MEMBERS}/configuration/runtime",
        answer({"transactionCoordinatorEnabled": "true", "brokerDeleteInactiveTopicsMaxInactiveDurationSeconds": ""}),
        {"transactionCoordinatorEnabled": "true", "brokerDeleteInactiveTopicsMaxInactiveDurationSeconds": ""},
    ),
    (lambda reader: reader.tenants(), "/admin/v2/tenants", answer(["pulsar", "a"]), ("a", "pulsar")),
    (lambda reader: reader.tenants(), "/admin/v2/tenants", answer([]), ()),
    (lambda reader: reader.namespaces("a"), "/admin/v2/namespaces/a", answer(["a/y", "a/x"]), ("a/x", "a/y")),
    (lambda reader: reader.namespace_policies("a/x"), "/admin/v2/namespaces/a/x", answer(POLICIES), POLICIES),
    (
        lambda reader: reader.own_settings("a/x"),
        "/admin/v2/namespaces/a/x",
        answer(
            {
                "backlog_quota_map": {"message_age": {"limitTime": 60, "policy": "producer_exception"}},
                "retention_policies": {"retentionTimeInMinutes": 5, "retentionSizeInMB": -1},
                "message_ttl_in_seconds": 0,
            }
        ),
        {
            SettingName.AGE_QUOTA: BacklogQuota(limit_seconds=60, policy=QuotaPolicy.REFUSE),
            SettingName.RETENTION: Retention(minutes=5, megabytes=-1),
            SettingName.TTL: TimeToLive(seconds=0),
        },
    ),
    (lambda reader: reader.own_settings("a/x"), "/admin/v2/namespaces/a/x", answer({"backlog_quota_map": {}}), {}),
    (
        lambda reader: reader.boundaries("a/x"),
        "/admin/v2/namespaces/a/x/bundles",
        answer({"boundaries": ["0x00000000", "0x80000000", "0xffffffff"], "numBundles": 2}),
        ("0x00000000", "0x80000000", "0xffffffff"),
    ),
    (
        lambda reader: reader.owned_bundles("local", "a:8080"),
        f"{MEMBERS}/local/a%3A8080/ownedNamespaces",
        answer(
            {
                "pulsar/system/0x80000000_0xffffffff": {"broker_assignment": "shared", "is_active": True},
                f"a/x/{BUNDLE}": {"broker_assignment": "shared", "is_controlled": False, "is_active": True},
            }
        ),
        (f"a/x/{BUNDLE}", "pulsar/system/0x80000000_0xffffffff"),
    ),
    (
        lambda reader: reader.owned_bundles("local", "a:8080"),
        f"{MEMBERS}/local/a%3A8080/ownedNamespaces",
        answer({}),
        (),
    ),
    (
        lambda reader: reader.topic_positions("pulsar/system", BUNDLE),
        POSITIONS,
        answer({"namespace": "pulsar/system", "bundle": BUNDLE, "topicHashPositions": {TC: 1103633926}}),
        {TC: 1103633926},
    ),
    (
        lambda reader: reader.topic_positions("pulsar/system", BUNDLE),
        POSITIONS,
        answer({"reason": f"Failed to find ownership for ServiceUnit:pulsar/system/{BUNDLE}"}, status=412),
        None,
    ),
    (
        lambda reader: reader.partitions("persistent://a/x/t 1/2"),
        "/admin/v2/persistent/a/x/t%201%2F2/partitions",
        answer({"partitions": 16, "deleted": False}),
        16,
    ),
    (
        lambda reader: reader.partitions("persistent://a/x/t"),
        "/admin/v2/persistent/a/x/t/partitions",
        answer({"reason": "Topic not found"}, status=404),
        0,
    ),
    (lambda reader: reader.topic_statistics(), "/admin/v2/broker-stats/topics", answer(b'{"a/x":{}}'), b'{"a/x":{}}'),
    (
        lambda reader: reader.load_report(),
        "/admin/v2/broker-stats/load-report",
        answer({"cpu": {"usage": 12.5, "limit": 200.0}}),
        {"cpu": {"usage": 12.5, "limit": 200.0}},
    ),
    (lambda reader: b"".join(reader.metrics()), "/metrics/", answer(b"up 1\n"), b"up 1\n"),
    (lambda reader: abs(reader.clock_skew_milliseconds() or 0) <= 2000, VERSION, answer(b"4.0.7"), True),
    (lambda reader: reader.clock_skew_milliseconds(), VERSION, raw(b"HTTP/1.1 200 OK\r\n\r\n4.0.7"), None),
    (lambda reader: reader.version_and_clock(), VERSION, raw(b"HTTP/1.1 200 OK\r\n\r\n4.0.7"), ("4.0.7", None)),
    (lambda reader: reader.isolation_policies("local"), ISOLATION, answer(ISOLATED), ISOLATED),
    (lambda reader: reader.isolation_policies("local"), ISOLATION, answer(), {}),
    (lambda reader: reader.anti_affinity_group("a/x"), GROUP, answer(b"apart"), "apart"),
    (lambda reader: reader.anti_affinity_group("a/x"), GROUP, answer(status=204), None),
    (
        lambda reader: reader.clusters_of("a/x"),
        "/admin/v2/namespaces/a/x",
        answer({"replication_clusters": ["local", "west"], "allowed_clusters": ["east"]}),
        frozenset({"local", "west", "east"}),
    ),
    (lambda reader: reader.clusters_of("a/x"), "/admin/v2/namespaces/a/x", answer({}), frozenset()),
    (
        lambda reader: reader.own_compaction_bytes("a/x"),
        "/admin/v2/namespaces/a/x",
        answer({"compaction_threshold": 1 << 20}),
        1 << 20,
    ),
    (lambda reader: reader.own_compaction_bytes("a/x"), "/admin/v2/namespaces/a/x", answer({}), None),
    (
        lambda reader: reader.own_most_topics("a/x"),
        "/admin/v2/namespaces/a/x",
        answer({"max_topics_per_namespace": 9}),
        9,
    ),
    (lambda reader: reader.isolation_policies("local"), ISOLATION, answer({"reason": "none"}, status=404), {}),
]

FAILURES: list[tuple[Callable[[Reader], Any], str, Reply, type[AdminError]]] = [
    (lambda reader: reader.brokers(), MEMBERS, answer(), BrokenAnswer),
    (lambda reader: reader.boundaries("a/x"), "/admin/v2/namespaces/a/x/bundles", answer({}), BrokenAnswer),
    (lambda reader: reader.boundaries("a/x"), "/admin/v2/namespaces/a/x/bundles", answer(), BrokenAnswer),
    (lambda reader: reader.boundaries("a/x"), "/admin/v2/namespaces/a/x/bundles", answer(status=404), NotFound),
    (lambda reader: reader.topic_positions("pulsar/system", BUNDLE), POSITIONS, answer({}), BrokenAnswer),
    (
        lambda reader: reader.topic_positions("pulsar/system", BUNDLE),
        POSITIONS,
        answer({"topicHashPositions": {TC: "far"}}),
        BrokenAnswer,
    ),
    (
        lambda reader: reader.topic_positions("pulsar/system", BUNDLE),
        POSITIONS,
        answer({"reason": "Invalid upper boundary for bundle 0x00000000_0x80000000"}, status=412),
        Precondition,
    ),
    (
        lambda reader: reader.partitions("persistent://a/x/t"),
        "/admin/v2/persistent/a/x/t/partitions",
        answer([]),
        BrokenAnswer,
    ),
    (lambda reader: list(reader.metrics()), "/metrics/", redirect("/metrics/elsewhere"), RedirectRefused),
    (lambda reader: list(reader.metrics()), "/metrics/", answer(status=404), NotFound),
    (lambda reader: reader.isolation_policies("local"), ISOLATION, answer([]), BrokenAnswer),
    (lambda reader: reader.load_report(), "/admin/v2/broker-stats/load-report", answer(b"null"), BrokenAnswer),
]


@pytest.fixture
def reader(broker: ScriptedBroker, settings: Callable[..., AdminSettings]) -> Iterator[Reader]:
    """A reader of the scripted broker that tries once."""
    with Reader(settings(broker.url, read_attempts=1)) as reader:
        yield reader


@pytest.mark.parametrize(("ask", "path", "reply", "expected"), ANSWERS)
def test_a_document_is_read(
    ask: Callable[[Reader], Any], path: str, reply: Reply, expected: Any, reader: Reader, broker: ScriptedBroker
) -> None:
    """Each method asks one path, by GET, and gives back what the document says."""
    broker.on(path, reply)
    assert ask(reader) == expected
    assert [(asked.method, asked.target) for asked in broker.asked] == [("GET", path)]


@pytest.mark.parametrize(("ask", "path", "reply", "expected"), FAILURES)
def test_a_document_of_another_kind_is_an_error(
    ask: Callable[[Reader], Any],
    path: str,
    reply: Reply,
    expected: type[AdminError],
    reader: Reader,
    broker: ScriptedBroker,
) -> None:
    """An answer that is not as documented, or has an error status, raises the expected kind of `AdminError`."""
    broker.on(path, reply)
    with pytest.raises(expected):
        ask(reader)


def test_every_method_is_tried() -> None:
    """Every method of the reader that asks a broker is in the table above or in a test of the contract."""
    methods = {name for name, _ in inspect.getmembers(Reader, inspect.isfunction) if not name.startswith("_")}
    tried = {name for ask, *_ in ANSWERS for name in ask.__code__.co_names}
    contract = [file.read_text(encoding="utf-8") for file in CONTRACT.glob("test_*.py")]
    asked = {name for text in contract for name in re.findall(r"\breader\.(\w+)\(", text)}
    assert methods - {"at", "close", "url_of"} <= tried | asked


def test_a_reader_cannot_write(reader: Reader) -> None:
    """The reader's transport may send only GET, and no public method has the name of a change, such as `unload`."""
    assert reader._transport._methods == {"GET"}
    public = {name for name in dir(Reader) if not name.startswith("_")}
    assert not public & {"send", "put", "post", "delete", "unload", "split", "look_up"}
    assert not [name for name in public if name.startswith(("set", "create", "delete", "update", "remove", "write"))]


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE"])
def test_even_its_transport_refuses_to_write(method: str, reader: Reader, broker: ScriptedBroker) -> None:
    """The reader's transport raises `PermissionError` for methods that write, and sends no request."""
    with pytest.raises(PermissionError):
        reader._transport.send(method, "/admin/v2/tenants/t")  # type: ignore[arg-type]  # a parameter's literal type is lost
    assert broker.asked == []


def test_one_broker_can_be_asked(
    make_broker: Callable[[], ScriptedBroker], settings: Callable[..., AdminSettings]
) -> None:
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
