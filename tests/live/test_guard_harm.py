"""Harm that guards prevent, made for real: Steward refuses, then an operator does it by hand and the harm is there."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING, Any

import msgspec
import pulsar
import pytest

from lab.errors import AdminCallError
from lab.faults.clients.publishing import publish, receive
from lab.faults.real.delayed import IN_MEMORY, delay
from lab.faults.real.ground import COMMON_SETTINGS, Ground
from lab.faults.real.operator import EVICTION, EXCEPTION, HOLD, SIZE, Operator
from lab.waiting import wait_until
from pulsar_steward.ledger.rows import Outcome
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting
from tests.live.hands import Hands, move_of
from tests.live.plots import plot
from tests.live.producers import (
    QUOTA_BYTES,
    REFUSED,
    SENT,
    filled,
    moved_by_hand,
    newcomer,
    over_quota,
    send_by,
    until_cut_off,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lab.cluster import Lab
    from lab.pool import LabPool
    from pulsar_steward.model.setting import Setting

pytestmark = [pytest.mark.live]

PERSISTED_HOLES = 100
GIBIBYTE = 1 << 30
DELAYED = 5_000
WITHIN_S = 60.0
UP_TO = re.compile(r"up to ([\d,]+) acknowledged messages")


@pytest.fixture(scope="module")
def forgetful(labs: LabPool) -> Lab:
    """Brokers that persist few ack holes, know of batches, and index delayed messages in memory."""
    holes = ("managedLedgerMaxUnackedRangesToPersist", str(PERSISTED_HOLES))
    by_index = ("acknowledgmentAtBatchIndexLevelEnabled", "true")
    return labs.lab(auth="token", broker_settings=dict((*COMMON_SETTINGS, *IN_MEMORY, holes, by_index)))


@pytest.mark.extended("tests/apply/test_guards_before_calls.py::test_a_move_that_would_do_harm_is_refused")
@pytest.mark.parametrize(("policy", "refused"), REFUSED.items())
def test_producers_of_a_full_topic_do_not_come_back(
    lab: Lab, hands_with: Callable[..., Hands], policy: str, refused: str
) -> None:
    hands = hands_with()
    with plot(lab, f"full-{policy.replace('_', '-')}") as here, over_quota(here, policy) as producer:
        assert newcomer(here) == refused
        until_cut_off(here)
        # One that is held waits; one that gets an exception may have heard already why it may not come back.
        assert send_by(producer) in ({"Timeout"} if policy == HOLD else {"Timeout", refused})
        assert newcomer(here) == refused
        reason = hands.refused_by("producers_return", move_of(here))
        assert "PRODUCERS COULD NOT COME BACK" in reason
        moved_by_hand(here)
        assert send_by(producer) != SENT
        assert newcomer(here) == refused


@pytest.mark.extended("tests/unit/facts/test_risks.py::test_brokers_hold_system_topics_to_no_quota")
def test_brokers_hold_a_system_topic_to_no_quota(lab: Lab, hands_with: Callable[..., Hands]) -> None:
    hands = hands_with()
    with plot(lab, "events", 1) as here:
        here.subscription(here.topic())
        here.admin.set_quota(here.namespace, SIZE, 1, EXCEPTION)
        here.admin.set_policy(here.topic(), "maxProducers", 50)
        events = f"persistent://{here.namespace}/__change_events"
        here.until(events, lambda shown: shown["backlogSize"] > 1, "what was set is a backlog")
        hands.heal(hands.plan_of(move_of(here)))
        here.admin.set_policy(here.topic(), "maxProducers", 60)  # answered when a producer of `events` has written it


@pytest.mark.extended("tests/apply/test_guards_before_calls.py::test_a_move_that_would_do_harm_is_refused")
def test_acknowledged_messages_come_again(forgetful: Lab, hands_with: Callable[..., Hands]) -> None:
    hands, messages = hands_with(lab=forgetful), 1_000
    with plot(forgetful, "holes") as here:
        consumer = here.shared(here.topic())
        publish(here.producer(here.topic(), batched=False), messages, 20)
        acknowledged = {place_of(each) for each in every_other(consumer, messages)}
        here.until(here.topic(), lambda shown: holes_of(shown) >= len(acknowledged) - 1, "every other is acknowledged")
        reason = hands.refused_by("ack_holes", move_of(here))
        assert "how many acknowledged" in reason
        consumer.close()
        moved_by_hand(here)
        again = acknowledged & {place_of(each) for each in what_comes(here.shared(here.topic()))}
        assert len(acknowledged) - PERSISTED_HOLES - 1 <= len(again)


@pytest.mark.extended("tests/attacks/test_moves_bound.py")
@pytest.mark.parametrize("by_index", [True, False], ids=["brokers know of batches", "clients alone know"])
@pytest.mark.parametrize("kind", ["Shared", "KeyShared", "Exclusive", "Failover"])
def test_batches_acknowledged_in_part_come_again_whole(
    lab: Lab, forgetful: Lab, hands_with: Callable[..., Hands], kind: str, *, by_index: bool
) -> None:
    where, batches, size = forgetful if by_index else lab, 10, 100
    hands = hands_with({"guards": {"most_redelivered_messages": 0}}, lab=where)
    with plot(where, f"batches-{kind.lower()}-{by_index}".lower()) as here:
        topic = here.topic()
        consumer = here.client.subscribe(
            topic,
            "s",
            consumer_type=getattr(pulsar.ConsumerType, kind),
            initial_position=pulsar.InitialPosition.Earliest,
            batch_index_ack_enabled=by_index,
        )
        publish(here.producer(topic, batching_max_messages=size, batching_max_publish_delay_ms=2_000), batches * size)
        acknowledged = set(all_but_the_first_of_each(consumer, batches * size))
        here.until(topic, lambda shown: shown["msgOutCount"] >= batches * size, "all of it is given out")
        here.until(topic, lambda shown: shown["subscriptions"]["s"]["msgBacklog"] == batches, "no batch is read whole")
        outcome, reason = hands.refusal_of(move_of(here))
        said = UP_TO.search(reason)
        assert (outcome, bool(said)) == (Outcome.REFUSED, True), reason

        moved_by_hand(here)
        again = acknowledged & {message_of(each) for each in what_comes(consumer)}
        assert said is not None
        assert 0 < len(again) <= int(said[1].replace(",", ""))


@pytest.mark.extended("tests/apply/test_guards_before_calls.py::test_a_move_that_would_do_harm_is_refused")
def test_delayed_messages_are_read_again(forgetful: Lab, hands_with: Callable[..., Hands]) -> None:
    hands = hands_with({"guards": {"most_delayed_index_megabytes": 0}}, lab=forgetful)
    with plot(forgetful, "delayed-index") as here:
        delay(here, DELAYED)
        move = move_of(here)
        hands.refused_by("delayed_index", move)
        there = Operator(forgetful.broker(move.target).admin_url, forgetful.token)
        assert indexed_by(there, here) == 0
        moved_by_hand(here)
        wait_until(lambda: indexed_by(there, here) == DELAYED, "the new owner has indexed all", WITHIN_S, 0.5)


def quota(limit_bytes: int, policy: str = HOLD) -> BacklogQuota:
    return BacklogQuota(limit_bytes=limit_bytes, policy=QuotaPolicy(policy))


TAKERS: dict[SettingName, Setting] = {
    SettingName.SIZE_QUOTA: quota(GIBIBYTE, EVICTION),
    SettingName.TTL: TimeToLive(seconds=86_400),
}
"""Settings that have brokers take messages away."""


@pytest.mark.extended("tests/apply/test_guards_before_calls.py::test_a_setting_that_would_do_harm_is_refused")
def test_delayed_messages_are_destroyed(lab: Lab, hands_with: Callable[..., Hands]) -> None:
    hands = hands_with()
    with plot(lab, "delayed-lost") as here:
        topic = delay(here, 300)
        for name, after in TAKERS.items():
            change = ChangeSetting(namespace=here.namespace, name=name, before=None, after=after)
            reason = hands.refused_by("delayed_kept", change)
            assert f"300 delayed messages of {here.namespace} " in reason
        here.admin.set_quota(here.namespace, SIZE, 1_000, EVICTION)
        here.until(topic, lambda shown: shown["subscriptions"]["s0"]["msgBacklog"] < 30, "they were evicted")


@pytest.mark.extended("tests/apply/test_settings.py::test_a_quota_that_would_act_at_once_is_not_set")
def test_a_quota_that_a_topic_is_over_stops_its_producer(lab: Lab, hands_with: Callable[..., Hands]) -> None:
    hands = hands_with()
    with plot(lab, "no-room") as here, filled(here, 1.3) as producer:
        change = ChangeSetting(
            namespace=here.namespace, name=SettingName.SIZE_QUOTA, before=None, after=quota(QUOTA_BYTES)
        )
        hands.refused_by("quota_room", change)
        assert send_by(producer) == SENT
        here.admin.set_quota(here.namespace, SIZE, QUOTA_BYTES, HOLD)
        until_cut_off(here)
        assert send_by(producer) != SENT


@pytest.mark.extended("tests/apply/test_guards_before_calls.py::test_a_broker_that_cannot_be_read_stops_everything")
def test_nothing_is_moved_while_a_broker_is_down(lab: Lab, hands_with: Callable[..., Hands]) -> None:
    hands = hands_with()
    with plot(lab, "broker-down") as here:
        here.subscription(here.topic())
        move = move_of(here)
        others = [broker for broker in lab.active_brokers() if broker != move.source]
        # The leader is asked where a bundle goes, so what it lets be done is seen only while it lives.
        target, dead = sorted(others, key=lambda each: each != here.admin.leader())
        lab.kill_broker(dead)
        try:
            reason = hands.refused_by("whole_cluster", msgspec.structs.replace(move, target=target))
            assert f"no answer from {dead}" in reason
            alive = Operator(lab.broker(move.source).admin_url, lab.token)
            alive.unload(here.namespace, move.bundle, dead)
            with pytest.raises(AdminCallError, match=dead):  # whoever looks it up is sent there
                alive.look_up(here.topic())
            assert not any(f"{here.namespace}/{move.bundle}" in owned for owned in lab.owned_bundles().values())
        finally:
            lab.start_broker(dead)


def every_other(consumer: pulsar.Consumer, messages: int) -> Iterator[pulsar.Message]:
    """Acknowledges every other message, and yields it."""
    for number, message in enumerate(receive(consumer, messages)):
        if number % 2:
            consumer.acknowledge(message)
            yield message


def all_but_the_first_of_each(consumer: pulsar.Consumer, messages: int) -> Iterator[tuple[int, int, int]]:
    """Acknowledges all messages of batches but the first of each; yields which."""
    for message in receive(consumer, messages):
        if message.message_id().batch_index() > 0:
            consumer.acknowledge(message)
            yield message_of(message)


def what_comes(consumer: pulsar.Consumer) -> Iterator[pulsar.Message]:
    """Takes what is delivered until nothing more comes."""
    with contextlib.suppress(pulsar.Timeout):
        while True:
            yield consumer.receive(timeout_millis=3_000)


def place_of(message: pulsar.Message) -> tuple[int, int]:
    return message.message_id().ledger_id(), message.message_id().entry_id()


def message_of(message: pulsar.Message) -> tuple[int, int, int]:
    """Ledger, entry and place in its batch."""
    return (*place_of(message), message.message_id().batch_index())


def holes_of(shown: dict[str, Any]) -> int:
    return int(shown["subscriptions"]["s"]["totalNonContiguousDeletedMessagesRange"])


def indexed_by(broker: Operator, here: Ground) -> float:
    """Delayed messages of a ground's topic in a broker's index."""
    return sum(
        value
        for name, value in broker.metrics()
        if name.startswith("pulsar_subscription_delayed{") and f'"{here.topic()}"' in name
    )
