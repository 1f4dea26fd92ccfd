"""Settings as Steward writes them: set and removed at either level, each by itself, and refused where nothing is."""

from typing import Any

import pytest

from pulsar_steward.model.setting import DelayedDelivery, Persistence, SettingName
from pulsar_steward.pulsar.calls import set_to
from pulsar_steward.pulsar.reader import Reader
from tests.contract.api import Api

MB = 1024 * 1024
NAMESPACE, TOPIC = "/admin/v2/namespaces/{0}", "/admin/v2/persistent/{0}/topic"
SIZE, AGE = ({"backlogQuotaType": kind} for kind in ("destination_storage", "message_age"))
KEPT = {"retentionTimeInMinutes": 60, "retentionSizeInMB": 10}
STORED = {
    "bookkeeperEnsemble": 1,
    "bookkeeperWriteQuorum": 1,
    "bookkeeperAckQuorum": 1,
    "managedLedgerMaxMarkDeleteRate": 0.1,
}
DELAYS = {"active": True, "tickTime": 2000, "maxDeliveryDelayInMillis": 3_600_000}
BY_SIZE = {"limitSize": 9 * MB, "limitTime": -1, "policy": "producer_request_hold"}
BY_AGE = {"limitSize": -1, "limitTime": 3600, "policy": "producer_exception"}


@pytest.mark.parametrize("holder", [NAMESPACE, TOPIC])
def test_the_two_quotas_are_set_and_removed_apart(api: Api, namespace: str, holder: str) -> None:
    api.new_partitioned(namespace, 1)
    path = holder.format(namespace)
    for kind, quota in ((SIZE, BY_SIZE), (AGE, BY_AGE)):
        assert api.final("POST", f"{path}/backlogQuota", params=kind, json=quota).status_code == 204
    by_age = {**BY_AGE, "limit": -1}
    assert api.get(f"{path}/backlogQuotaMap") == {
        "destination_storage": {**BY_SIZE, "limit": 9 * MB},
        "message_age": by_age,
    }
    assert api.final("DELETE", f"{path}/backlogQuota", params=SIZE).status_code == 204
    assert api.get(f"{path}/backlogQuotaMap") == {"message_age": by_age}


def test_a_topic_gets_its_ttl_by_the_query(api: Api, namespace: str) -> None:
    """A topic's time to live is set by the query, may be 0, and can be removed."""
    api.new_partitioned(namespace, 1)
    path = f"{TOPIC.format(namespace)}/messageTTL"
    for seconds in ("600", "0"):
        assert api.final("POST", path, params={"messageTTL": seconds}).status_code == 204
        assert api.final("GET", f"{path}?applied=false").text == seconds
    assert [api.final("DELETE", path).status_code for _ in range(2)] == [204, 204]
    assert api.final("GET", f"{path}?applied=false").content == b""


@pytest.mark.parametrize(
    ("policy", "body", "empty"),
    [
        ("retention", KEPT, b""),
        ("messageTTL", 600, b""),
        ("backlogQuota", BY_SIZE, b"{}"),
        ("delayedDelivery", DELAYS, b""),
        ("persistence", STORED, b""),
    ],
)
def test_a_topic_does_not_tell_its_namespaces_settings_as_its_own(
    api: Api, namespace: str, policy: str, body: object, empty: bytes
) -> None:
    api.new_partitioned(namespace, 1)
    assert api.final("POST", f"{NAMESPACE.format(namespace)}/{policy}", json=body).status_code == 204
    told = policy.replace("Quota", "QuotaMap")
    answer = api.final("GET", f"{TOPIC.format(namespace)}/{told}?applied=false")
    assert (answer.status_code, answer.content) == (200, empty)


@pytest.mark.parametrize("holder", [NAMESPACE, TOPIC])
def test_delayed_delivery_is_set_and_removed_whole(api: Api, namespace: str, holder: str) -> None:
    """Delayed delivery is read back exactly as posted, and deleting it a second time succeeds as well."""
    api.new_partitioned(namespace, 1)
    path = f"{holder.format(namespace)}/delayedDelivery"
    for posted in (DELAYS, {"active": False, "tickTime": 1, "maxDeliveryDelayInMillis": 0}):
        assert api.final("POST", path, json=posted).status_code == 204
        assert api.final("GET", f"{path}?applied=false").json() == posted
    assert [api.final("DELETE", path).status_code for _ in range(2)] == [204, 204]
    assert api.final("GET", f"{path}?applied=false").content == b""


def test_what_steward_sends_is_what_it_reads(api: Api, reader: Reader, namespace: str) -> None:
    bounded = DelayedDelivery(active=True, tick_milliseconds=2000, longest_milliseconds=3_600_000)
    stored = Persistence.of((2, 1, 1), 1 / 120)
    for name, each in ((SettingName.DELAYED_DELIVERY, bounded), (SettingName.PERSISTENCE, stored)):
        for value in (each, None):
            call = set_to(namespace, name, value)
            assert api.call(call.method, call.path, json=call.body).status_code == 204
            assert reader.own_settings(namespace).get(name) == value


@pytest.mark.parametrize("holder", [NAMESPACE, TOPIC])
def test_persistence_is_set_and_removed_whole(api: Api, namespace: str, holder: str) -> None:
    """Persistence is read back as posted, what is left out is 2 and no limit, and it is removed twice."""
    api.new_partitioned(namespace, 1)
    path = f"{holder.format(namespace)}/persistence"
    usual = dict.fromkeys(("bookkeeperEnsemble", "bookkeeperWriteQuorum", "bookkeeperAckQuorum"), 2)
    for posted, kept in ((STORED, STORED), ({}, {**usual, "managedLedgerMaxMarkDeleteRate": 0.0})):
        assert api.final("POST", path, json=posted).status_code == 204
        assert api.final("GET", f"{path}?applied=false").json() == kept
    assert [api.final("DELETE", path).status_code for _ in range(2)] == [204, 204]
    assert api.final("GET", f"{path}?applied=false").content == b""


@pytest.mark.parametrize(("ensemble", "write", "ack"), [(1, 2, 1), (2, 1, 2), (0, 0, 0), (6, 1, 1)])
def test_quorums_that_do_not_fit_are_refused(api: Api, namespace: str, ensemble: int, write: int, ack: int) -> None:
    """E has to be at least Qw, Qw at least Qa, all of them above 0 and at most 5; nothing is kept."""
    posted = {"bookkeeperEnsemble": ensemble, "bookkeeperWriteQuorum": write, "bookkeeperAckQuorum": ack}
    path = f"{NAMESPACE.format(namespace)}/persistence"
    assert api.call("POST", path, json=posted).status_code == 400
    assert "persistence" not in api.get(NAMESPACE.format(namespace))


def test_what_delayed_delivery_leaves_out_is_off(api: Api, namespace: str) -> None:
    path = NAMESPACE.format(namespace)
    assert api.call("POST", f"{path}/delayedDelivery", json={"maxDeliveryDelayInMillis": 5000}).status_code == 204
    kept = {"active": False, "tickTime": 0, "maxDeliveryDelayInMillis": 5000}
    assert api.get(path)["delayed_delivery_policies"] == kept
    assert api.call("DELETE", f"{path}/delayedDelivery").status_code == 204
    assert "delayed_delivery_policies" not in api.get(path)


WRITES: list[tuple[str, str, dict[str, Any]]] = [
    ("POST", "retention", {"json": KEPT}),
    ("DELETE", "retention", {}),
    ("POST", "backlogQuota", {"params": SIZE, "json": BY_SIZE}),
    ("DELETE", "backlogQuota", {"params": SIZE}),
    ("POST", "delayedDelivery", {"json": DELAYS}),
    ("DELETE", "delayedDelivery", {}),
    ("POST", "persistence", {"json": STORED}),
    ("DELETE", "persistence", {}),
]


@pytest.mark.parametrize(
    ("method", "policy", "options"), [*WRITES, ("POST", "messageTTL", {"json": 600}), ("DELETE", "messageTTL", {})]
)
def test_a_namespace_that_is_not_there_takes_no_setting(
    api: Api, method: str, policy: str, options: dict[str, Any]
) -> None:
    assert api.final(method, f"/admin/v2/namespaces/public/nothing/{policy}", **options).status_code == 404
    assert "public/nothing" not in api.get("/admin/v2/namespaces/public")


@pytest.mark.parametrize(
    ("method", "policy", "options"),
    [*WRITES, ("POST", "messageTTL", {"params": {"messageTTL": "600"}}), ("DELETE", "messageTTL", {})],
)
def test_a_topic_that_is_not_there_takes_no_setting(
    api: Api, namespace: str, method: str, policy: str, options: dict[str, Any]
) -> None:
    """A setting of a topic that does not exist is refused with 404 and its name, and the topic is not created."""
    answer = api.final(method, f"/admin/v2/persistent/{namespace}/other/{policy}", **options)
    assert (answer.status_code, answer.json()["reason"]) == (404, f"Topic persistent://{namespace}/other not found")
    assert api.get(f"/admin/v2/persistent/{namespace}") == []


@pytest.mark.parametrize(
    ("policy", "params", "body", "status"),
    [
        ("retention", {}, {"retentionTimeInMinutes": 0, "retentionSizeInMB": 10}, 400),
        ("backlogQuota", SIZE, {"limitSize": 9, "policy": "guess"}, 400),
        ("backlogQuota", {"backlogQuotaType": "guess"}, BY_SIZE, 404),
        ("messageTTL", {"messageTTL": "-1"}, None, 412),
    ],
)
def test_a_topic_refuses_values_out_of_range_as_a_namespace_does(
    api: Api, namespace: str, policy: str, params: dict[str, str], body: object, status: int
) -> None:
    """A topic refuses a setting with an invalid value and keeps no setting afterwards."""
    api.new_partitioned(namespace, 1)
    path = TOPIC.format(namespace)
    assert api.final("POST", f"{path}/{policy}", params=params, json=body).status_code == status
    for each in ("retention", "messageTTL"):
        assert api.final("GET", f"{path}/{each}?applied=false").content == b""
    assert api.get(f"{path}/backlogQuotaMap?applied=false") == {}


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_nobody_sets_anything_without_the_token(api: Api, namespace: str, method: str) -> None:
    path = f"{NAMESPACE.format(namespace)}/retention"
    api.final("POST", path, json=KEPT)
    refused: dict[str, Any] = {"headers": {"Authorization": "Bearer rubbish"}}
    if method == "POST":
        refused["json"] = {"retentionTimeInMinutes": 1, "retentionSizeInMB": 1}
    assert api.call(method, path, **refused).status_code == 401
    assert api.get(path) == KEPT
