"""Answers that only a topic's owner gives, as Steward asks: right there, never sent on; and what is not there."""

import httpx
import pytest

from benchmarks.observing import settings_of
from lab.waiting import wait_until
from pulsar_steward.apply.live_reader import LiveReader
from pulsar_steward.policy.schema import Policy
from tests.contract.api import SYSTEM, Api

TOPIC = "/admin/v2/persistent/{topic}"
FIRST = f"{TOPIC}-partition-0"
COORDINATOR = 12
OF_ITS_OWNER = [
    f"{FIRST}/stats?getPreciseBacklog=false&subscriptionBacklogSize=false",
    f"{FIRST}/internalStats",
    f"{TOPIC}/backlogQuotaMap?applied=false",
    f"{TOPIC}/retention?applied=false",
    f"{TOPIC}/messageTTL?applied=false",
]


@pytest.mark.parametrize("path", OF_ITS_OWNER)
def test_the_owner_answers_and_the_others_send_on(api: Api, namespace: str, path: str) -> None:
    topic = api.new_partitioned(namespace, 1)
    owner = api.look_up(f"{topic}-partition-0")
    asked = path.format(topic=topic)
    there = f"http://{api.ids[owner]}{asked.partition('?')[0]}?"
    assert api.call("GET", asked, owner).status_code == 200
    others = {*range(len(api.ids))} - {owner}

    def all_send_there() -> bool:
        answers = [api.call("GET", asked, other) for other in others]
        assert {answer.status_code for answer in answers} == {307}
        return all(answer.headers["Location"].startswith(there) for answer in answers)

    # One that has not heard of the owner yet, as a busy machine makes them, sends on to the leader first.
    wait_until(all_send_there, "all brokers know the owner", 10)


def test_metrics_tell_of_a_topic_at_once(api: Api, namespace: str) -> None:
    """An owner's metrics count and name a topic that it has just loaded, which its statistics of all show later."""
    topic = f"{namespace}/new"
    owner = api.look_up(topic)
    assert api.final("PUT", f"/admin/v2/persistent/{topic}").status_code == httpx.codes.NO_CONTENT
    api.call("GET", f"/admin/v2/persistent/{topic}/stats", owner)
    with LiveReader(settings_of(api.target, Policy())) as reader:
        names, loaded = reader.loaded_now(api.ids[owner], namespace)
    assert f"persistent://{topic}" in names
    assert loaded == len(names)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("other/stats", "Topic persistent://{0}/other not found"),
        ("other/internalStats", "Topic persistent://{0}/other not found"),
        ("other/retention", "Topic persistent://{0}/other not found"),
        ("other/messageTTL", "Topic persistent://{0}/other not found"),
        ("other/backlogQuotaMap", "Topic persistent://{0}/other not found"),
    ],
)
def test_a_topic_that_is_not_there_is_not_found_at_its_owner(api: Api, namespace: str, path: str, reason: str) -> None:
    answer = api.call("GET", f"/admin/v2/persistent/{namespace}/{path}", api.look_up(f"{namespace}/other"))
    assert (answer.status_code, answer.json()["reason"]) == (404, reason.format(namespace))
    assert f"persistent://{namespace}/other" not in api.get(f"/admin/v2/persistent/{namespace}")


@pytest.mark.parametrize("what", ["internalStats", "retention", "messageTTL", "backlogQuotaMap"])
def test_a_topic_of_no_namespace_is_not_found(api: Api, what: str) -> None:
    """A request about a topic is answered with 404 when its namespace does not exist."""
    answer = api.final("GET", f"/admin/v2/persistent/public/nothing/topic/{what}")
    assert (answer.status_code, answer.json()["reason"]) == (404, "Namespace not found")


def test_every_tenant_is_listed(api: Api) -> None:
    assert sorted(api.get("/admin/v2/tenants")) == ["public", "pulsar"]


def test_a_topic_without_partitions_has_none(api: Api, namespace: str) -> None:
    assert api.final("PUT", f"/admin/v2/persistent/{namespace}/whole").status_code == httpx.codes.NO_CONTENT
    told = api.call("GET", f"/admin/v2/persistent/{namespace}/whole/partitions")
    assert (told.status_code, told.json()) == (200, {"partitions": 0, "deleted": False})


def test_a_coordinator_that_nobody_uses_is_not_found_at_its_owner(api: Api) -> None:
    """The owner answers 404 for the stats of an unused coordinator, and the other brokers redirect to it."""
    owner = api.look_up(f"{SYSTEM}/transaction_coordinator_assign-partition-{COORDINATOR}")
    path = f"/admin/v3/transactions/coordinatorStats?coordinatorId={COORDINATOR}"
    answers = {at: api.call("GET", path, at) for at in range(len(api.ids))}
    told = answers.pop(owner)
    assert (told.status_code, told.json()["reason"]) == (
        404,
        f"Transaction coordinator not found! coordinator id : {COORDINATOR}",
    )
    for answer in answers.values():
        assert answer.status_code == 307
        assert answer.headers["Location"].startswith(f"http://{api.ids[owner]}/admin/v3/transactions/coordinatorStats?")
