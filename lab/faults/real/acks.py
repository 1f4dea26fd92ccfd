"""Acknowledgements that do not come, or come out of order."""

from collections.abc import Callable
from typing import Any

from lab.faults.clients.work import Kind, Language
from lab.faults.fault import Expected, RealFault
from lab.faults.real.ground import Ground, fault_on_ground

MOST_UNACKED = 50_000
"""``maxUnackedMessagesPerConsumer`` of Pulsar."""

Arrange = Callable[[Ground], None]


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
    """Of batches of two messages, every other one is acknowledged as a whole."""

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


def _never_acknowledged(most: int | None = None, kind: Kind = "Shared", consumers: int = 1) -> Arrange:
    """Consumers that take what they can get and acknowledge none of it, up to their limit (None: Pulsar's default)."""

    def arrange(here: Ground) -> None:
        if most is not None:
            here.admin.set_policy(here.namespace, "maxUnackedMessagesPerConsumer", most)
        topic, held = here.topic(), most or MOST_UNACKED
        for _ in range(consumers):
            here.take(topic, kind=kind, acknowledge="never")
        here.send(topic, consumers * held * 6 // 5 + 4000, 20)
        _until_blocked(here, topic, consumers)

    return arrange


def _acknowledged_late(here: Ground) -> None:
    """The limit is reached again and again, and each time all is acknowledged."""
    here.admin.set_policy(here.namespace, "maxUnackedMessagesPerConsumer", 500)
    topic = here.topic()
    here.take(topic, acknowledge="later", every_s=1.0, queue=100)
    here.flow(topic, 100)
    here.until(
        topic,
        lambda shown: shown["msgRateOut"] > 0 and shown["subscriptions"]["s"]["messageAckRate"] > 0,
        "it is consumed",
    )


def _subscription_blocked(here: Ground) -> None:
    here.admin.set_policy(here.namespace, "maxUnackedMessagesPerSubscription", 5_000)
    topic = here.topic()
    for _ in range(3):
        here.take(topic, acknowledge="never", queue=10, most=1_600)
    here.send(topic, 20_000, 20)
    here.until(
        topic,
        lambda shown: shown["subscriptions"]["s"]["blockedSubscriptionOnUnackedMsgs"],
        "the subscription is blocked",
    )


def _one_of_four_blocked(here: Ground) -> None:
    here.admin.set_policy(here.namespace, "maxUnackedMessagesPerConsumer", 500)
    topic = here.topic()
    here.take(topic, acknowledge="never", queue=100, most=500)
    for _ in range(3):
        here.take(topic, queue=100)
    here.send(topic, 4_000, 20)
    _until_blocked(here, topic, 1)


def _until_blocked(here: Ground, topic: str, consumers: int) -> None:
    here.until(
        topic,
        lambda shown: (
            consumers == sum(each["blockedConsumerOnUnackedMsgs"] for each in shown["subscriptions"]["s"]["consumers"])
        ),
        f"{consumers} consumers are blocked",
    )


def _acks(
    name: str,
    about: str,
    arrange: Arrange,
    *checks: str,
    client: Language = "python",
    batched: bool | None = None,
    **label: Any,
) -> RealFault:
    """A fault about acknowledgements."""
    expected = tuple(Expected(check, rf"public/{name}\b") for check in checks)
    return fault_on_ground(name, about, arrange, expected=expected, client=client, batched=batched, **label)


HOLES = (
    _acks(
        "ack-holes-near-limit",
        "7,000 ack holes, of 10,000 that a broker persists.",
        _holes(7_000),
        "ack-holes",
        quick=True,
    ),
    _acks(
        "ack-holes-near-limit-batched",
        "6,000 ack holes, of 10,000 that a broker persists, each a batch of two messages.",
        _batches_in_turn(6_000),
        "ack-holes",
        batched=True,
    ),
    _acks(
        "ack-holes-near-limit-java",
        "9,000 ack holes, of 10,000 that a broker persists.",
        _holes(9_000),
        "ack-holes",
        client="java",
        batched=False,
    ),
    _acks(
        "ack-holes-beyond-limit",
        "12,000 ack holes, of 10,000 that a broker persists: the rest comes again after a restart.",
        _holes(12_000),
        "ack-holes",
    ),
    _acks(
        "ack-holes-beyond-limit-go",
        "11,000 ack holes, of 10,000 that a broker persists.",
        _holes(11_000),
        "ack-holes",
        client="go",
        batched=False,
    ),
    _acks(
        "few-ack-holes",
        "Healthy: 500 ack holes.",
        _holes(500),
        twin_of=("ack-holes-near-limit", "ack-holes-near-limit-java", "ack-holes-beyond-limit-go"),
        quick=True,
    ),
    _acks(
        "ack-holes-closed-again",
        "Healthy: 6,000 ack holes that were there and are acknowledged by now.",
        _closed_again,
        twin_of=("ack-holes-beyond-limit", "ack-holes-near-limit-batched"),
    ),
)

BLOCKED = (
    _acks(
        "never-acknowledged",
        "The only consumer of a subscription took 50,000 messages and acknowledged none: it gets no more.",
        _never_acknowledged(),
        "subscription-blocked",
        batched=True,
    ),
    _acks(
        "never-acknowledged-java",
        "The only consumer of a subscription holds the 2,000 messages that its namespace allows.",
        _never_acknowledged(2_000),
        "subscription-blocked",
        client="java",
    ),
    _acks(
        "never-acknowledged-key-shared",
        "Three consumers of a Key_Shared subscription hold the 1,000 messages each that their namespace allows.",
        _never_acknowledged(1_000, "Key_Shared", 3),
        "subscription-blocked",
        client="go",
        batched=False,
    ),
    _acks(
        "subscription-full",
        "Three consumers hold as many messages as their namespace lets a subscription have: nobody gets more.",
        _subscription_blocked,
        "subscription-blocked",
        batched=True,
    ),
    _acks(
        "one-of-four-blocked",
        "Healthy enough: one of four consumers is blocked, the others work.",
        _one_of_four_blocked,
        twin_of=("subscription-full", "never-acknowledged-key-shared"),
    ),
    _acks(
        "acknowledged-every-second",
        "Healthy: a consumer that acknowledges all it holds once a second.",
        _acknowledged_late,
        twin_of=("never-acknowledged", "never-acknowledged-java"),
        client="java",
    ),
)

FAULTS = (*HOLES, *BLOCKED)
