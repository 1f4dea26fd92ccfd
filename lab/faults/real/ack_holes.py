"""Acknowledgements that come out of order."""

from typing import Any

from lab.faults.real.acks import Arrange
from lab.faults.real.ground import Ground, fault_of_namespace


def _holes(holes: int, **sending: Any) -> Arrange:
    """Every other message is acknowledged; ``sending`` is of `Sending`."""

    def arrange(here: Ground) -> None:
        topic = here.topic()
        here.take(topic, acknowledge="every-other", queue=5000)
        here.send(topic, 2 * holes, 20, **sending)
        here.until(
            topic,
            lambda shown: shown["subscriptions"]["s"]["totalNonContiguousDeletedMessagesRange"] > 0.98 * holes,
            f"{holes:,} ack holes",
        )

    return arrange


def _batches_in_turn(holes: int) -> Arrange:
    """Messages in batches of two, of which every other batch is acknowledged as a whole."""

    def arrange(here: Ground) -> None:
        topic = here.topic()
        consumer = here.shared(topic, receiver_queue_size=5000)
        here.send(topic, 4 * holes, 20, batch_messages=2)
        for _ in range(4 * holes):
            message = consumer.receive(timeout_millis=20_000)
            if message.message_id().entry_id() % 2:
                consumer.acknowledge(message)
        here.until(
            topic,
            lambda shown: shown["subscriptions"]["s"]["totalNonContiguousDeletedMessagesRange"] > 0.9 * holes,
            f"{holes:,} ack holes",
        )

    return arrange


def _closed_again(here: Ground) -> None:
    """Holes that were there and are gone: another consumer acknowledges what the first one left."""
    topic, messages = here.topic(), 12_000
    consumer = here.shared(topic, receiver_queue_size=5000)
    here.send(topic, messages, 20)
    left = []
    for number in range(messages):
        message = consumer.receive(timeout_millis=20_000)
        if number % 2:
            consumer.acknowledge(message)
        else:
            left.append(message)
    for message in left:
        consumer.acknowledge(message)
    here.until(
        topic,
        lambda shown: shown["msgInCount"] >= messages and shown["subscriptions"]["s"]["msgBacklog"] == 0,
        "all is acknowledged",
    )


FAULTS = (
    fault_of_namespace(
        "ack-holes-near-limit",
        "7,000 ack holes, of 10,000 that a broker persists.",
        _holes(7_000),
        "ack-holes",
        quick=True,
    ),
    fault_of_namespace(
        "ack-holes-near-limit-batched",
        "6,000 ack holes, of 10,000 that a broker persists, each a batch of two messages.",
        _batches_in_turn(6_000),
        "ack-holes",
        batched=True,
    ),
    fault_of_namespace(
        "ack-holes-near-limit-java",
        "9,000 ack holes, of 10,000 that a broker persists.",
        _holes(9_000),
        "ack-holes",
        client="java",
        batched=False,
    ),
    fault_of_namespace(
        "ack-holes-beyond-limit",
        "12,000 ack holes, of 10,000 that a broker persists: the rest comes again after a restart.",
        _holes(12_000),
        "ack-holes",
    ),
    fault_of_namespace(
        "ack-holes-beyond-limit-go",
        "11,000 ack holes, of 10,000 that a broker persists.",
        _holes(11_000),
        "ack-holes",
        client="go",
        batched=False,
    ),
    fault_of_namespace(
        "few-ack-holes",
        "Healthy: 500 ack holes.",
        _holes(500),
        twin_of=("ack-holes-near-limit", "ack-holes-near-limit-java", "ack-holes-beyond-limit-go"),
        quick=True,
    ),
    fault_of_namespace(
        "ack-holes-closed-again",
        "Healthy: 6,000 ack holes that were there and are acknowledged by now.",
        _closed_again,
        twin_of=("ack-holes-beyond-limit", "ack-holes-near-limit-batched"),
    ),
)
