"""What a move is approved with of messages in flight."""

from __future__ import annotations

import msgspec
import pytest

from pulsar_steward.guards.in_flight import with_messages_in_flight
from pulsar_steward.model.bundles import TC_NAMESPACE
from pulsar_steward.model.step import Touched
from tests.builders import a_look, a_move, a_policy, a_step


@pytest.mark.parametrize(
    ("namespace", "consumers", "largest_batch", "room"),
    [
        ("shop/orders", 3, 1_000, 10_000),
        ("shop/orders", 0, 1_000, 0),
        ("shop/orders", 3, 1, 0),
        (TC_NAMESPACE, 3, 1_000, 0),
    ],
    ids=["consumers", "nobody", "nobody batches", "coordinators"],
)
def test_room_is_left_where_a_batch_may_be_open_at_another_moment(
    namespace: str, consumers: int, largest_batch: int, room: int
) -> None:
    facts, policy = a_look(a_policy(guards={"largest_batch_messages": largest_batch}))
    touched = Touched(producers=0, consumers=consumers, topics=1, coordinators=0)
    step = msgspec.structs.replace(a_step(a_move(namespace=namespace)), touched=touched)
    assert with_messages_in_flight(step, facts, policy).moving_messages.again == room
