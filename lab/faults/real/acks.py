"""Acknowledgements that do not come, or come out of order."""

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pulsar

from lab.cluster import Lab
from lab.faults.fault import Expected, RealFault
from lab.faults.real.ground import Ground, ground
from lab.faults.real.traffic import publish, receive

MOST_UNACKED = 50_000
"""``maxUnackedMessagesPerConsumer`` of Pulsar."""


def _holes(name: str, messages: int) -> Callable[[Lab], AbstractContextManager[None]]:
    """Every other message is acknowledged."""

    @contextlib.contextmanager
    def made(lab: Lab) -> Iterator[None]:
        with ground(lab, name) as here:
            topic = here.topic()
            consumer = here.shared(topic)
            publish(here.producer(topic, batched=False), messages, 20)
            for number, message in enumerate(receive(consumer, messages)):
                if number % 2:
                    consumer.acknowledge(message)
            here.until(
                topic,
                lambda shown: shown["subscriptions"]["s"]["totalNonContiguousDeletedMessagesRange"] > 0.49 * messages,
                f"every other of {messages:,} messages is acknowledged",
            )
            yield

    return made


@contextlib.contextmanager
def _never_acknowledged(lab: Lab) -> Iterator[None]:
    with ground(lab, "never-acknowledged") as here:
        topic = here.topic()
        consumer = here.shared(topic)
        publish(here.producer(topic), MOST_UNACKED + 10_000, 20)
        _take(consumer, MOST_UNACKED)
        _until_blocked(here, topic, 1)
        yield


@contextlib.contextmanager
def _subscription_blocked(lab: Lab) -> Iterator[None]:
    with ground(lab, "subscription-full") as here:
        here.admin.set_policy(here.namespace, "maxUnackedMessagesPerSubscription", 5_000)
        topic = here.topic()
        consumers = [here.shared(topic, receiver_queue_size=10) for _ in range(3)]
        publish(here.producer(topic), 20_000, 20)
        for consumer in consumers:
            _take(consumer, 1_600)
        here.until(
            topic,
            lambda shown: shown["subscriptions"]["s"]["blockedSubscriptionOnUnackedMsgs"],
            "the subscription is blocked",
        )
        yield


@contextlib.contextmanager
def _one_of_four_blocked(lab: Lab) -> Iterator[None]:
    with ground(lab, "one-of-four-blocked") as here:
        here.admin.set_policy(here.namespace, "maxUnackedMessagesPerConsumer", 500)
        topic = here.topic()
        slow, *others = [here.shared(topic, receiver_queue_size=100, consumer_name=f"c{n}") for n in range(4)]
        publish(here.producer(topic, batched=False), 4_000, 20)
        _take(slow, 500)
        for consumer in others:
            _acknowledge_what_comes(consumer)
        _until_blocked(here, topic, 1)
        yield


def _take(consumer: pulsar.Consumer, messages: int) -> None:
    """Takes messages and says nothing of them."""
    for _ in receive(consumer, messages):
        pass


def _acknowledge_what_comes(consumer: pulsar.Consumer) -> None:
    with contextlib.suppress(pulsar.Timeout):
        while True:
            consumer.acknowledge(consumer.receive(timeout_millis=500))


def _until_blocked(here: Ground, topic: str, consumers: int) -> None:
    here.until(
        topic,
        lambda shown: (
            consumers == sum(each["blockedConsumerOnUnackedMsgs"] for each in shown["subscriptions"]["s"]["consumers"])
        ),
        f"{consumers} consumers are blocked",
    )


FAULTS = (
    RealFault(
        name="ack-holes-near-limit",
        about="7,000 ack holes, of 10,000 that a broker persists.",
        expected=(Expected("ack-holes", r"public/ack-holes-near-limit"),),
        quick=True,
        made=_holes("ack-holes-near-limit", 14_000),
    ),
    RealFault(
        name="ack-holes-beyond-limit",
        about="12,000 ack holes, of 10,000 that a broker persists: the rest comes again after a restart.",
        expected=(Expected("ack-holes", r"public/ack-holes-beyond-limit"),),
        made=_holes("ack-holes-beyond-limit", 24_000),
    ),
    RealFault(
        name="few-ack-holes",
        about="Healthy: 500 ack holes.",
        made=_holes("few-ack-holes", 1_000),
    ),
    RealFault(
        name="never-acknowledged",
        about="The only consumer of a subscription took 50,000 messages and acknowledged none: it gets no more.",
        expected=(Expected("subscription-blocked", r"public/never-acknowledged"),),
        made=_never_acknowledged,
    ),
    RealFault(
        name="subscription-full",
        about="Three consumers hold as many messages as their namespace lets a subscription have: nobody gets more.",
        expected=(Expected("subscription-blocked", r"public/subscription-full"),),
        made=_subscription_blocked,
    ),
    RealFault(
        name="one-of-four-blocked",
        about="Healthy enough: one of four consumers is blocked, the others work.",
        made=_one_of_four_blocked,
    ),
)
