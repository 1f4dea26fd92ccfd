"""Producers of a topic over its quota, and what they meet, seen with Pulsar's own client."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pulsar

from lab.faults.clients.publishing import publish
from lab.faults.real.ground import connected
from lab.faults.real.operator import EXCEPTION, HOLD, SIZE
from tests.live.hands import move_of, put_on

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.faults.real.ground import Ground

QUOTA_BYTES = 100_000
MESSAGE_BYTES = 1_000
SEND_WITHIN_S = 4
SENT = "sent"
CONNECTED = "connected"
REFUSED = {HOLD: "ProducerBlockedQuotaExceededError", EXCEPTION: "ProducerBlockedQuotaExceededException"}
"""What the client raises of a new producer, by the policy of the quota."""


@contextmanager
def over_quota(here: Ground, policy: str) -> Iterator[pulsar.Producer]:
    """A producer that has brought a topic to 130 % of a size quota, which its namespace got an instant ago."""
    with filled(here, 1.3) as producer:
        here.admin.set_quota(here.namespace, SIZE, QUOTA_BYTES, policy)
        yield producer


@contextmanager
def filled(here: Ground, share: float) -> Iterator[pulsar.Producer]:
    """A producer that has published a backlog of so much of `QUOTA_BYTES`."""
    topic = here.topic()
    here.subscription(topic)
    producer = here.producer(topic, batched=False, send_timeout_millis=1_000 * SEND_WITHIN_S)
    publish(producer, int(share * QUOTA_BYTES / MESSAGE_BYTES), MESSAGE_BYTES)
    here.until(topic, lambda shown: shown["backlogSize"] >= share * QUOTA_BYTES, "the backlog is there")
    yield producer


def until_cut_off(here: Ground) -> None:
    """Waits until the broker has looked at the quota and the topic has no producer any more."""
    here.until(here.topic(), lambda shown: not shown["publishers"], "its producers were cut off")


def send_by(producer: pulsar.Producer) -> str:
    """Result of one more message: `SENT`, or what the client raises."""
    try:
        producer.send(bytes(MESSAGE_BYTES))
    except pulsar.PulsarException as error:
        return type(error).__name__
    return SENT


def newcomer(here: Ground) -> str:
    """Result of one more producer, of a client that is not patient: `CONNECTED`, or what the client raises."""
    client = connected(here.lab, operation_timeout_seconds=SEND_WITHIN_S)
    try:
        client.create_producer(here.topic())
    except pulsar.PulsarException as error:
        return type(error).__name__
    else:
        return CONNECTED
    finally:
        client.close()


def moved_by_hand(here: Ground) -> None:
    """Moves the topic's bundle to another broker, as an operator would whom no guard warns."""
    move = move_of(here)
    put_on(here, move.bundle, move.target)
