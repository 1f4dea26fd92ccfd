"""The number of a topic's partitions: raised with the subscriptions of the first one, and never lowered."""

import httpx
import pytest

from lab.waiting import wait_until
from pulsar_steward.pulsar.calls import add_partitions
from pulsar_steward.pulsar.reader import Reader
from tests.contract.api import AGREED_WITHIN_S, Api

NOT_PARTITIONED = "Topic persistent://{} is not the partitioned topic."
FEWER = "Desired partitions 2 can't be less than the current partitions 3."


def raised(api: Api, topic: str, number: int) -> httpx.Response:
    call = add_partitions(f"persistent://{topic}", number)
    return api.final(call.method, call.path, json=call.body)


def test_their_number_is_raised(api: Api, namespace: str, reader: Reader) -> None:
    """A raise is accepted with 204, all brokers report the new number, and the new partitions are topics."""
    topic = api.new_partitioned(namespace, 2)
    answer = raised(api, topic, 5)
    assert (answer.status_code, answer.content) == (httpx.codes.NO_CONTENT, b"")
    wait_until(lambda: reader.partitions(f"persistent://{topic}") == 5, "the new number is read", AGREED_WITHIN_S)
    assert reader.topics(namespace) == tuple(f"persistent://{topic}-partition-{index}" for index in range(5))


def test_new_partitions_get_the_subscriptions_of_the_first(api: Api, namespace: str, reader: Reader) -> None:
    """Each new partition has the subscriptions of the first in the metadata store, so that nothing is missed."""
    topic = api.new_partitioned(namespace, 2)
    made = api.final("PUT", f"/admin/v2/persistent/{topic}/subscription/app")
    assert made.status_code == httpx.codes.NO_CONTENT, made.text
    assert raised(api, topic, 4).status_code == httpx.codes.NO_CONTENT
    for index in range(4):
        assert set(reader.stored_topic(f"persistent://{topic}-partition-{index}").cursors) == {"app"}


@pytest.mark.parametrize("number", [1, 2])
def test_a_lower_number_is_refused(api: Api, namespace: str, number: int) -> None:
    """A number below the present one is refused with 422, and the number stays as it is."""
    topic = api.new_partitioned(namespace, 3)
    answer = raised(api, topic, number)
    reason = FEWER.replace("partitions 2", f"partitions {number}")
    assert (answer.status_code, answer.json()) == (httpx.codes.UNPROCESSABLE_ENTITY, {"reason": reason})
    assert api.get(f"/admin/v2/persistent/{topic}/partitions")["partitions"] == 3


def test_the_same_number_changes_nothing(api: Api, namespace: str) -> None:
    """The present number is accepted, and stays as it is."""
    topic = api.new_partitioned(namespace, 3)
    assert raised(api, topic, 3).status_code == httpx.codes.NO_CONTENT
    assert api.get(f"/admin/v2/persistent/{topic}/partitions")["partitions"] == 3


def test_a_topic_without_partitions_gets_none(api: Api, namespace: str) -> None:
    """A topic that is not partitioned is refused with 409."""
    created = api.final("PUT", f"/admin/v2/persistent/{namespace}/whole")
    assert created.status_code == httpx.codes.NO_CONTENT, created.text
    answer = raised(api, f"{namespace}/whole", 2)
    told = {"reason": NOT_PARTITIONED.format(f"{namespace}/whole")}
    assert (answer.status_code, answer.json()) == (httpx.codes.CONFLICT, told)
