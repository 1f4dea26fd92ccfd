"""Backlog quota, retention and message TTL: what is empty, what is kept, what is refused."""

import httpx
import pytest

from tests.contract.api import Api

MB = 1024 * 1024
NAMESPACE, TOPIC = "/admin/v2/namespaces/{0}", "/admin/v2/persistent/{0}/topic"


@pytest.mark.parametrize(
    "policy", ["retention", "messageTTL", "deduplication", "delayedDelivery", "persistence", "maxConsumersPerTopic"]
)
def test_an_unset_policy_is_an_empty_answer(api: Api, namespace: str, policy: str) -> None:
    answer = api.call("GET", f"{NAMESPACE.format(namespace)}/{policy}")
    assert (answer.status_code, answer.content, answer.headers.get("Content-Type")) == (200, b"", None)


@pytest.mark.parametrize("holder", [NAMESPACE, TOPIC])
def test_retention_is_kept_and_deleted(api: Api, namespace: str, holder: str) -> None:
    """A retention is read back as it was posted, and deleting it a second time succeeds as well."""
    api.new_partitioned(namespace, 1)
    path = f"{holder.format(namespace)}/retention"
    posted = {"retentionTimeInMinutes": 60, "retentionSizeInMB": 10}
    assert api.final("POST", path, json=posted).status_code == 204
    assert api.get(path) == posted
    assert [api.final("DELETE", path).status_code for _ in range(2)] == [204, 204]
    assert api.final("GET", path).content == b""


@pytest.mark.parametrize("holder", [NAMESPACE, TOPIC])
def test_what_a_quota_leaves_out_is_zero(api: Api, namespace: str, holder: str) -> None:
    api.new_partitioned(namespace, 1)
    path = holder.format(namespace)
    assert api.get(f"{path}/backlogQuotaMap") == {}
    quota = {"limitSize": 9 * MB, "policy": "producer_request_hold"}
    assert api.final("POST", f"{path}/backlogQuota", json=quota).status_code == 204
    assert api.get(f"{path}/backlogQuotaMap") == {"destination_storage": {**quota, "limit": 9 * MB, "limitTime": 0}}
    kind = {"backlogQuotaType": "destination_storage"}
    assert [api.final("DELETE", f"{path}/backlogQuota", params=kind).status_code for _ in range(2)] == [204, 204]
    assert api.get(f"{path}/backlogQuotaMap") == {}


@pytest.mark.parametrize(
    ("minutes", "size_mb", "kind", "limit_size", "limit_time", "status"),
    [
        (60, 10, "destination_storage", 10 * MB - 1, -1, 204),
        (60, 10, "destination_storage", 10 * MB, -1, 412),
        (60, 10, "destination_storage", -1, 3599, 204),
        (60, 10, "destination_storage", -1, 3600, 412),
        (60, -1, "destination_storage", 1 << 40, -1, 204),
        (-1, 10, "destination_storage", 1, 1 << 30, 204),
        (0, 0, "destination_storage", 1 << 40, 1 << 30, 204),
        (60, 10, "message_age", 100 * MB, 3600, 204),
    ],
)
def test_a_storage_quota_stays_under_the_retention(
    api: Api, namespace: str, minutes: int, size_mb: int, kind: str, limit_size: int, limit_time: int, status: int
) -> None:
    path = NAMESPACE.format(namespace)
    retention = {"retentionTimeInMinutes": minutes, "retentionSizeInMB": size_mb}
    quota = {"limitSize": limit_size, "limitTime": limit_time, "policy": "producer_exception"}
    kinds = {"backlogQuotaType": kind}
    assert api.call("POST", f"{path}/retention", json=retention).status_code == 204
    answer = api.call("POST", f"{path}/backlogQuota", params=kinds, json=quota)
    assert answer.status_code == status
    if status == httpx.codes.PRECONDITION_FAILED:
        assert answer.json()["reason"].startswith("Backlog Quota exceeds configured retention quota for namespace.")
    api.call("DELETE", f"{path}/retention")
    assert api.call("POST", f"{path}/backlogQuota", params=kinds, json=quota).status_code == 204
    turned_round = api.call("POST", f"{path}/retention", json=retention)
    assert turned_round.status_code == status
    if status == httpx.codes.PRECONDITION_FAILED:
        assert turned_round.json()["reason"] == "Retention Quota must exceed configured backlog quota for namespace."


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("retention", {"retentionTimeInMinutes": 0, "retentionSizeInMB": 10}, 400),
        ("retention", {"retentionTimeInMinutes": -2, "retentionSizeInMB": -1}, 400),
        ("backlogQuota", {"limitSize": 9, "policy": "guess"}, 400),
        ("backlogQuota?backlogQuotaType=guess", {"limitSize": 9, "policy": "producer_exception"}, 404),
        ("messageTTL", -1, 412),
    ],
)
def test_values_out_of_range_are_refused(api: Api, namespace: str, path: str, body: object, status: int) -> None:
    """Each kind of invalid value is refused with its own status, and no policy is kept."""
    assert api.call("POST", f"{NAMESPACE.format(namespace)}/{path}", json=body).status_code == status
    document = api.get(NAMESPACE.format(namespace))
    assert document["backlog_quota_map"] == {}
    assert not {"retention_policies", "message_ttl_in_seconds"} & set(document)


@pytest.mark.parametrize(("content_type", "status"), [("application/json", 400), ("text/plain", 415)])
def test_a_body_that_is_not_json_is_refused(api: Api, namespace: str, content_type: str, status: int) -> None:
    path = f"{NAMESPACE.format(namespace)}/retention"
    assert api.call("POST", path, content=b"{broken", headers={"Content-Type": content_type}).status_code == status


def test_zero_is_a_ttl_and_differs_from_none(api: Api, namespace: str) -> None:
    """A TTL of 0 is answered as 0, and a deleted one with an empty body."""
    path = f"{NAMESPACE.format(namespace)}/messageTTL"
    assert api.call("POST", path, json=0).status_code == 204
    assert api.call("GET", path).text == "0"
    assert api.call("DELETE", path).status_code == 204
    assert api.call("GET", path).content == b""


def test_a_partition_has_no_policies_of_its_own(api: Api, namespace: str) -> None:
    topic = api.new_partitioned(namespace, 1)
    answer = api.final("GET", f"/admin/v2/persistent/{topic}-partition-0/retention")
    assert (answer.status_code, answer.json()) == (
        412,
        {"reason": "Not allowed to set/get topic policy for a partition"},
    )


def test_a_topic_quota_stays_under_the_topic_retention(api: Api, namespace: str) -> None:
    api.new_partitioned(namespace, 1)
    path = TOPIC.format(namespace)
    api.final("POST", f"{path}/retention", json={"retentionTimeInMinutes": 60, "retentionSizeInMB": 10})
    quota = {"limitSize": 10 * MB, "limitTime": -1, "policy": "producer_exception"}
    answer = api.final("POST", f"{path}/backlogQuota", json=quota)
    assert answer.status_code == 412
    assert answer.json()["reason"].startswith("Backlog Quota exceeds configured retention quota for topic.")
