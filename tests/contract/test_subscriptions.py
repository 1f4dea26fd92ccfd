"""Deletion of a subscription: what brokers answer to it, and what they refuse; as Steward sends it."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING
from urllib.parse import quote

import httpx
import pytest

from benchmarks.observing import settings_of
from lab.cluster import Lab
from lab.faults.real.ground import connected
from lab.simulator import Simulator
from lab.waiting import wait_until
from pulsar_steward.apply.live_reader import LiveReader
from pulsar_steward.errors import InvalidName
from pulsar_steward.policy.schema import Policy
from pulsar_steward.pulsar import calls
from pulsar_steward.pulsar.calls import add_partitions
from tests.builders import a_deletion
from tests.contract.api import AGREED_WITHIN_S, Api

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pulsar_steward.model.subscription import Cursor
    from pulsar_steward.pulsar.reader import Reader

ODD = "audit/2026 ?#:&\u00e9"
"""Pulsar takes any text as the name of a subscription."""
SHOWN_WITHIN_S = 20.0
FIRST = {"ledgerId": -1, "entryId": -1, "partitionIndex": -1}


@contextlib.contextmanager
def consuming(api: Api, topic: str, name: str) -> Iterator[None]:
    """A consumer that is connected to a subscription, and takes nothing."""
    if isinstance(api.target, Simulator):
        api.target.change_subscription(topic, name, consumers=1)
        yield
        api.target.change_subscription(topic, name, consumers=0)
        return
    assert isinstance(api.target, Lab)
    client = connected(api.target)
    try:
        client.subscribe(topic, name, receiver_queue_size=0)
        yield
    finally:
        client.close()


def a_message_waits(api: Api, topic: str, name: str) -> None:
    """Publishes a message, which a subscription is behind with."""
    if isinstance(api.target, Simulator):
        api.target.change_subscription(topic, name, backlog=1)
        return
    assert isinstance(api.target, Lab)
    client = connected(api.target)
    try:
        client.create_producer(topic).send(b"waits")
    finally:
        client.close()


def a_topic(api: Api, namespace: str, *names: str) -> str:
    """The full name of a topic with these subscriptions, loaded."""
    answer = api.final("PUT", f"/admin/v2/persistent/{namespace}/topic")
    assert answer.is_success, answer.text
    for name in names:
        create(api, f"{namespace}/topic", name)
    return f"persistent://{namespace}/topic"


def create(api: Api, topic: str, name: str) -> None:
    """Creates a subscription of a topic, which is loaded first: 2.10.4 creates none of one that nobody owns."""
    api.look_up(topic)
    path = f"/admin/v2/persistent/{topic}/subscription/{quote(name, safe='')}"
    answer = api.final("PUT", path, json=FIRST)
    assert answer.is_success, answer.text


def reset(api: Api, topic: str, position: dict[str, int]) -> None:
    """Sets the cursor of `audit` to a position."""
    path = f"/admin/v2/persistent/{topic.partition('://')[2]}/subscription/audit/resetcursor"
    answer = api.final("POST", path, json=position)
    assert answer.is_success, answer.text


def delete(api: Api, topic: str, name: str) -> httpx.Response:
    """The answer to the call that Steward makes."""
    call = calls.delete_subscription(topic, name)
    return api.final(call.method, call.path, params=call.query)


def subscriptions(api: Api, topic: str) -> set[str]:
    return set(api.get(f"/admin/v2/persistent/{topic.partition('://')[2]}/stats")["subscriptions"])


@pytest.mark.parametrize("name", ["audit", ODD])
def test_a_subscription_is_deleted_and_the_others_stay(api: Api, namespace: str, name: str) -> None:
    topic = a_topic(api, namespace, name, "billing")
    answer = delete(api, topic, name)
    assert (answer.status_code, answer.content) == (204, b"")
    assert subscriptions(api, topic) == {"billing"}


def test_a_name_is_decoded_twice(api: Api, namespace: str) -> None:
    topic = a_topic(api, namespace, "a b", "billing")
    with pytest.raises(InvalidName, match="twice"):
        calls.delete_subscription(topic, "a+b")
    path = f"/admin/v2/persistent/{namespace}/topic/subscription/{quote('a+b', safe='')}"
    assert api.final("DELETE", path).status_code == 204
    assert subscriptions(api, topic) == {"billing"}


def test_one_that_is_not_there_is_not_found(api: Api, namespace: str) -> None:
    """Deleting a subscription that does not exist, or of a missing topic, is answered with 404 and creates nothing."""
    topic = a_topic(api, namespace, "audit")
    answers = [delete(api, topic, "other"), delete(api, f"persistent://{namespace}/other", "audit")]
    assert [(answer.status_code, answer.json()["reason"]) for answer in answers] == [
        (404, f"Subscription other not found for topic {topic}"),
        (404, f"Topic persistent://{namespace}/other not found"),
    ]
    assert subscriptions(api, topic) == {"audit"}
    assert f"persistent://{namespace}/other" not in api.get(f"/admin/v2/persistent/{namespace}")


def test_one_with_a_consumer_stays(api: Api, namespace: str) -> None:
    """Deletion of a subscription with a connected consumer is refused with 412, and succeeds once that is gone."""
    topic = a_topic(api, namespace, "audit")
    with consuming(api, topic, "audit"):
        answer = delete(api, topic, "audit")
        assert (answer.status_code, answer.json()["reason"]) == (412, "Subscription has active connected consumers")
        assert subscriptions(api, topic) == {"audit"}
    wait_until(lambda: delete(api, topic, "audit").status_code == 204, "nobody is connected any more", SHOWN_WITHIN_S)
    assert subscriptions(api, topic) == set()


def test_a_partition_is_deleted_from_by_itself(api: Api, namespace: str) -> None:
    topic = api.new_partitioned(namespace, 2)
    create(api, topic, "audit")
    first, second = (f"persistent://{topic}-partition-{number}" for number in range(2))
    assert delete(api, first, "audit").status_code == 204
    assert (subscriptions(api, first), subscriptions(api, second)) == (set(), {"audit"})


def test_what_is_made_anew_or_reset_has_another_identity(api: Api, namespace: str) -> None:
    topic = a_topic(api, namespace, "audit")
    a_message_waits(api, topic, "audit")  # else the cursor follows the topic's ledger whenever that is loaded
    with LiveReader(settings_of(api.target, Policy())) as reader:

        def identity() -> Cursor:
            api.look_up(f"{namespace}/topic")
            state = reader.subscription(a_deletion(topic))
            assert state is not None
            assert state.cursor is not None
            return state.cursor

        assert api.final("PUT", f"/admin/v2/namespaces/{namespace}/unload").is_success
        first = identity()
        assert api.final("PUT", f"/admin/v2/namespaces/{namespace}/unload").is_success
        assert identity() == first
        reset(api, topic, FIRST)
        after = identity()
        assert (after.created, after.position) == (first.created, first.position)
        assert after.written != first.written
        assert delete(api, topic, "audit").is_success
        create(api, f"{namespace}/topic", "audit")
        assert identity().created > first.created


def test_steward_sees_what_is_there(api: Api, namespace: str) -> None:
    topic = a_topic(api, namespace, "audit", "billing")
    audit, other, nowhere = a_deletion(topic), a_deletion(topic, "other"), a_deletion(f"{topic}-gone")
    api.look_up(f"{namespace}/topic-gone")  # somebody owns its bundle
    with LiveReader(settings_of(api.target, Policy())) as reader:
        state = reader.subscription(audit)
        assert state is not None
        assert (state.consumers, state.entries, state.topic_bytes, state.moved_milliseconds) == (0, 0, 0, 0)
        assert (state.replicated, state.others) == (False, 1)
        assert state.cursor is not None
        assert ":" in state.cursor.position
        assert reader.subscription(other) is None
        assert reader.subscription(nowhere) is None
        with consuming(api, topic, "audit"):
            connected_now = reader.subscription(audit)
            assert connected_now is not None
            assert connected_now.consumers == 1


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
