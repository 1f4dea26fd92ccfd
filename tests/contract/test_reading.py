"""A cluster's answers: paths, status codes, wordings and shapes of documents."""

import json
import zlib
from typing import Any

import pytest

from pulsar_steward.errors import ServerError
from pulsar_steward.model.broker_defaults import default_in
from pulsar_steward.model.pulsar_versions import may_have_scalable_topics
from pulsar_steward.pulsar.reader import Reader
from tests.contract.api import Api

NAMESPACES = "/admin/v2/namespaces"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/admin/v2/clusters", ["local"]),
        ("/admin/v2/persistent/pulsar/system", []),
        ("/admin/v2/persistent/pulsar/system/partitioned", []),
        (
            "/admin/v2/persistent/pulsar/system/transaction_coordinator_assign/partitions",
            {"partitions": 16, "deleted": False},
        ),
        ("/admin/v2/tenants/public", {"adminRoles": [], "allowedClusters": ["local"]}),
        (f"{NAMESPACES}/pulsar", ["pulsar/system"]),
    ],
)
def test_facts_that_every_fresh_cluster_states(api: Api, path: str, expected: object) -> None:
    assert api.get(path) == expected


@pytest.mark.parametrize(
    ("path", "status", "reason"),
    [
        ("/admin/v2/tenants/nobody", 404, "Tenant does not exist"),
        (f"{NAMESPACES}/nobody", 404, "Tenant not found"),
        (f"{NAMESPACES}/public/nothing", 404, "Namespace does not exist"),
        (f"{NAMESPACES}/public/nothing/bundles", 404, "Namespace does not exist"),
        (f"{NAMESPACES}/public/nothing/retention", 404, "Namespace does not exist"),
        (f"{NAMESPACES}/public/default/rubbish/topicHashPositions", 412, "Invalid bundle range: rubbish"),
        ("/admin/v2/persistent/public/nothing", 404, "Namespace does not exist"),
        ("/admin/v2/persistent/public/nothing/topic/partitions", 404, "Namespace not found"),
        ("/admin/v2/persistent/public/nothing/topic/stats", 404, "Namespace not found"),
        ("/lookup/v2/topic/persistent/public/nothing/topic", 404, "Namespace not found"),
        ("/admin/v2/clusters/nowhere", 404, "Cluster does not exist"),
        ("/admin/v2/clusters/nowhere/namespaceIsolationPolicies", 404, "Cluster nowhere does not exist."),
        (
            "/admin/v2/brokers/local/127.0.0.1:1/ownedNamespaces",
            404,
            "Broker id '127.0.0.1:1' not found in available brokers.",
        ),
    ],
)
def test_what_is_not_there_is_refused_in_words(api: Api, path: str, status: int, reason: str) -> None:
    """A request for a missing object is refused with a JSON object that has the reason."""
    answer = api.call("GET", path)
    assert (answer.status_code, answer.json()) == (status, {"reason": reason})


@pytest.mark.parametrize(
    ("clusters", "reason"),
    [(["local", "nowhere"], "Clusters do not exist"), ([], "Clusters ca")],  # "cannot be empty or blank" in 4.0.7
)
def test_a_tenant_of_clusters_that_are_not_known_is_refused(api: Api, clusters: list[str], reason: str) -> None:
    document = {"adminRoles": [], "allowedClusters": clusters}
    for tenant in ("strangers", "public"):
        answer = api.call("PUT", f"/admin/v2/tenants/{tenant}", json=document)
        assert (answer.status_code, answer.json()["reason"].startswith(reason)) == (412, True)


def test_positions_in_a_namespace_that_is_not_there_are_refused(api: Api) -> None:
    bundle = "public/nothing/0x00000000_0x10000000"
    answer = api.call("GET", f"{NAMESPACES}/{bundle}/topicHashPositions")
    whole = "public/nothing/0x00000000_0xffffffff"
    refused = (404, "Namespace does not exist")
    if api.since_4_2:
        refused = (412, f"Invalid upper boundary for bundle {bundle}. Expected upper boundary of {whole}")
    assert (answer.status_code, answer.json()["reason"]) == refused


def test_the_metadata_store_tells_of_a_topic_that_nobody_loaded(api: Api, namespace: str) -> None:
    topic = f"{api.new_partitioned(namespace, 1)}-partition-0"
    path = f"/admin/v2/persistent/{topic}/internal-info"
    answers = [api.call("GET", path, at) for at in range(len(api.ids))]
    assert [answer.status_code for answer in answers] == [200] * len(api.ids)
    assert all({"ledgers", "cursors", "creationDate"} <= answer.json().keys() for answer in answers)
    # A real topic that nobody ever loaded has no ledger at all; one that was has a last one without a size.
    assert all("size" not in ledger for answer in answers for ledger in answer.json()["ledgers"][-1:])


def test_topics_are_listed_whether_or_not_they_are_loaded(api: Api, namespace: str, reader: Reader) -> None:
    topic = f"persistent://{api.new_partitioned(namespace, 2)}"
    assert {f"{topic}-partition-0", f"{topic}-partition-1"} <= set(reader.topics(namespace))
    assert reader.stored_topic(f"{topic}-partition-1").cursors == {}
    with pytest.raises(ServerError):
        reader.stored_topic(f"persistent://{namespace}/nothing")


@pytest.mark.parametrize("path", ["health", "ready", "version"])
def test_bare_words_are_called_json_and_are_not(api: Api, path: str) -> None:
    answer = api.call("GET", f"/admin/v2/brokers/{path}")
    word = api.version if path == "version" else "ok"
    assert (answer.text, answer.headers["Content-Type"]) == (word, "application/json")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/admin/v2/nothing", 404), ("GET", "/admin/broker-stats/topics", 404), ("POST", "/admin/v2/brokers", 405)],
)
def test_unknown_paths_get_the_web_servers_page(api: Api, method: str, path: str, status: int) -> None:
    answer = api.call(method, path)
    assert (answer.status_code, answer.headers["Content-Type"]) == (status, "text/html;charset=iso-8859-1")


@pytest.mark.parametrize("path", ["", "/local"])
def test_every_broker_lists_all_brokers(api: Api, path: str) -> None:
    for at in range(len(api.ids)):
        assert sorted(api.call("GET", f"/admin/v2/brokers{path}", at).json()) == sorted(api.ids)


def test_all_brokers_name_the_same_leader(api: Api) -> None:
    answers = [api.call("GET", "/admin/v2/brokers/leaderBroker", at).json() for at in range(len(api.ids))]
    assert answers[0]["brokerId"] in api.ids
    assert answers == [{"serviceUrl": f"http://{answers[0]['brokerId']}", "brokerId": answers[0]["brokerId"]}] * 3


def test_every_setting_is_a_string(api: Api, reader: Reader) -> None:
    settings = api.get("/admin/v2/brokers/configuration/runtime")
    assert {type(value) for value in settings.values()} == {str}
    wanted = {
        "backlogQuotaCheckEnabled": "true",
        "clusterName": "local",
        "managedLedgerMaxUnackedRangesToPersist": default_in("managedLedgerMaxUnackedRangesToPersist", api.line),
        "numIOThreads": "2",
        "ttlDurationDefaultInSeconds": "0",
    }
    assert wanted.items() <= settings.items()
    assert wanted.items() <= reader.runtime_configuration().items()


def test_the_policies_document_holds_bounds_and_leaves_out_what_is_unset(api: Api, namespace: str) -> None:
    document = api.get(f"{NAMESPACES}/{namespace}")
    assert document["bundles"] == api.get(f"{NAMESPACES}/{namespace}/bundles")
    assert document["bundles"]["boundaries"] == ["0x00000000", "0x40000000", "0x80000000", "0xc0000000", "0xffffffff"]
    assert document["backlog_quota_map"] == {}
    assert not {"retention_policies", "message_ttl_in_seconds"} & set(document)


def test_set_policies_stand_in_the_policies_document(api: Api, namespace: str) -> None:
    """Retention and time to live appear in the namespace's policies document under the names of the model."""
    posted = {"retentionTimeInMinutes": 60, "retentionSizeInMB": 10}
    api.call("POST", f"{NAMESPACES}/{namespace}/retention", json=posted)
    api.call("POST", f"{NAMESPACES}/{namespace}/messageTTL", json=3600)
    document = api.get(f"{NAMESPACES}/{namespace}")
    assert (document["retention_policies"], document["message_ttl_in_seconds"]) == (posted, 3600)


def test_owned_bundles_are_told_by_their_owner_only(api: Api) -> None:
    """A broker lists its bundles, heartbeats among them, and other brokers redirect to it with 307 and no body.

    Pulsar 4.2.4 and later no longer have the heartbeat namespace with the cluster in its name.
    """
    owner = api.ids[1]
    path = f"/admin/v2/brokers/local/{owner}/ownedNamespaces"
    elsewhere = api.call("GET", path, at=0)
    assert (elsewhere.status_code, elsewhere.content) == (307, b"")
    assert elsewhere.headers["Location"] == f"http://{owner}{path}"
    told = api.call("GET", path, at=1).json()
    assert f"pulsar/{owner}/0x00000000_0xffffffff" in told
    assert (f"pulsar/local/{owner}/0x00000000_0xffffffff" in told) is not api.since_4_2
    assert told[f"pulsar/{owner}/0x00000000_0xffffffff"] == {
        "broker_assignment": "shared",
        "is_controlled": False,
        "is_active": True,
    }


def test_topics_are_listed_by_full_name(api: Api, namespace: str) -> None:
    topic = api.new_partitioned(namespace, 3)
    names = [f"persistent://{topic}-partition-{index}" for index in range(3)]
    assert sorted(api.get(f"/admin/v2/persistent/{namespace}")) == names
    assert api.get(f"/admin/v2/persistent/{namespace}/partitioned") == [f"persistent://{topic}"]
    assert api.get(f"/admin/v2/persistent/{topic}/partitions") == {"partitions": 3, "deleted": False}
    again = api.call("PUT", f"/admin/v2/persistent/{topic}/partitions", json=3)
    assert (again.status_code, again.json()) == (409, {"reason": "This topic already exists"})
    missing = api.call("GET", f"/admin/v2/persistent/{namespace}/other/partitions")
    assert (missing.status_code, missing.json()) == (404, {"reason": f"Topic persistent://{namespace}/other not found"})


def test_hash_positions_are_the_crc32_of_the_full_names(api: Api, namespace: str) -> None:
    topic = api.new_partitioned(namespace, 8)
    bundle = api.bundle_of(f"{topic}-partition-0")
    owner = api.look_up(f"{topic}-partition-0")
    told = api.call("GET", f"{NAMESPACES}/{namespace}/{bundle}/topicHashPositions", owner).json()
    assert (told["namespace"], told["bundle"]) == (namespace, bundle)
    assert f"persistent://{topic}-partition-0" in told["topicHashPositions"]
    for name, position in told["topicHashPositions"].items():
        assert position == zlib.crc32(name.encode())


def test_bookies_are_told_by_id(api: Api, reader: Reader) -> None:
    """Every broker lists all bookies of the cluster, and the reader returns their ids."""
    answers = [api.call("GET", "/admin/v2/bookies/all", at) for at in range(len(api.ids))]
    assert {answer.status_code for answer in answers} == {200}
    (document,) = [json.loads(text) for text in {answer.text for answer in answers}]
    assert set(document) == {"bookies"}
    assert {type(each["bookieId"]) for each in document["bookies"]} == {str}
    assert reader.bookies() == tuple(sorted(each["bookieId"] for each in document["bookies"]))
    assert reader.bookies()


def test_a_namespace_keeps_to_no_bookies_unless_told(reader: Reader, namespace: str) -> None:
    """Without an affinity group a namespace's ledgers may be on any bookie."""
    assert reader.bookie_groups(namespace) == ()


def test_an_anti_affinity_group_is_told_by_its_bare_name(api: Api, reader: Reader, namespace: str) -> None:
    path = f"{NAMESPACES}/{namespace}/antiAffinity"
    never = api.call("GET", path)
    assert never.status_code in {200, 204}  # 200 from 4.2 on
    assert never.content == b""
    assert reader.anti_affinity_group(namespace) is None
    bare: dict[str, Any] = {
        "content": b"apart",
        "headers": {"Content-Type": "application/json"},
    }  # as Pulsar itself does
    assert api.call("POST", path, **bare).status_code == 204
    told = api.call("GET", path)
    assert (told.status_code, told.text) == (200, "apart")
    assert reader.anti_affinity_group(namespace) == "apart"
    assert all(api.owner(f"{namespace}/{bundle}") is None for bundle in api.bundles(namespace))
    assert api.call("DELETE", path).status_code == 204
    assert reader.anti_affinity_group(namespace) is None


def test_scalable_topics_are_listed_by_pulsar_5(api: Api, reader: Reader, namespace: str) -> None:
    """From the metadata store: nothing is loaded for it. Brokers before 5.0 know no such call."""
    if not may_have_scalable_topics(api.version):
        assert reader.scalable_topics(namespace) is None
        return
    assert reader.scalable_topics(namespace) == ()
    path = f"/admin/v2/scalable/{namespace}/one"
    assert api.final("PUT", path, params={"numInitialSegments": "2"}, json={}).is_success
    for bundle in api.bundles(namespace):
        api.final("PUT", f"{NAMESPACES}/{namespace}/{bundle}/unload")
    owned = {bundle: api.owner(f"{namespace}/{bundle}") for bundle in api.bundles(namespace)}
    assert reader.scalable_topics(namespace) == (f"topic://{namespace}/one",)
    assert {bundle: api.owner(f"{namespace}/{bundle}") for bundle in api.bundles(namespace)} == owned


def test_a_namespace_tells_the_clusters_that_serve_it(reader: Reader, namespace: str) -> None:
    assert reader.clusters_of(namespace) == frozenset({"local"})


@pytest.mark.parametrize("header", [None, "Bearer rubbish", "Basic YTpi"])
@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_nobody_gets_in_without_the_token(api: Api, method: str, header: str | None) -> None:
    """Without the right token the answer is 401, with a page for a reader and nothing for a writer."""
    path = f"{NAMESPACES}/public/default/0x00000000_0x10000000/{'unload' if method == 'PUT' else 'topicHashPositions'}"
    answer = api.call(method, path, headers={"Authorization": header or ""})
    assert answer.status_code == 401
    assert (b"Authentication required" in answer.content) is (method == "GET")
