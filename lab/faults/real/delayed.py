"""Messages that are to be delivered later, on both of the brokers' trackers."""

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import timedelta

from lab.cluster import Lab
from lab.faults.fault import Expected, RealFault
from lab.faults.real.ages import PRECISE, until_old
from lab.faults.real.ground import Ground, ground
from lab.faults.real.traffic import publish, receive

INDEXED_WITHIN_S = 120.0
MESSAGES = 50_000
DAY_S = 24 * 3600

IN_MEMORY = (
    (
        "delayedDeliveryTrackerFactoryClassName",
        "org.apache.pulsar.broker.delayed.InMemoryDelayedDeliveryTrackerFactory",
    ),
)
SMALL_BUCKETS = (
    ("delayedDeliveryMinIndexCountPerBucket", "500"),
    ("delayedDeliveryMaxNumBuckets", "10"),
    # A bucket is sealed where a ledger ends, and only there.
    ("managedLedgerMaxEntriesPerLedger", "1000"),
    ("managedLedgerMinLedgerRolloverTimeMinutes", "0"),
)


def _waiting(name: str, subscriptions: int, messages: int = MESSAGES) -> Callable[[Lab], AbstractContextManager[None]]:
    """Messages that are due in an hour and later, a second apart, indexed for every subscription."""

    @contextlib.contextmanager
    def made(lab: Lab) -> Iterator[None]:
        with ground(lab, name) as here:
            delay(here, messages, subscriptions)
            yield

    return made


def delay(here: Ground, messages: int, subscriptions: int = 1) -> str:
    """Publishes messages that are due in an hour and later, and waits until the brokers have indexed them."""
    topic = here.topic()
    for number in range(subscriptions):
        here.shared(topic, f"s{number}", receiver_queue_size=10)
    publish(here.producer(topic, batched=False), messages, 20, lambda number: timedelta(hours=1, seconds=number))
    here.until_metric("pulsar_subscription_delayed", topic, subscriptions * messages, INDEXED_WITHIN_S)
    here.until(topic, lambda shown: _backlog(shown) >= messages, "all of them are in the backlog")
    return topic


def _backlog(shown: dict[str, dict[str, dict[str, int]]]) -> int:
    return min(each["msgBacklog"] for each in shown["subscriptions"].values())


@contextlib.contextmanager
def _delays_beyond_ttl(lab: Lab) -> Iterator[None]:
    with ground(lab, "delays-beyond-ttl") as here:
        here.admin.set_policy(here.namespace, "messageTTL", DAY_S)
        week = {"active": True, "tickTime": 1000, "maxDeliveryDelayInMillis": 7 * DAY_S * 1000}
        here.admin.set_policy(here.namespace, "delayedDelivery", week)
        delay(here, 1000)
        yield


@contextlib.contextmanager
def _about_to_expire(lab: Lab) -> Iterator[None]:
    with ground(lab, "delayed-about-to-expire") as here:
        here.admin.set_policy(here.namespace, "messageTTL", 60)
        until_old(here, delay(here, 1000), 50)
        yield


@contextlib.contextmanager
def _front_of_the_topic(lab: Lab) -> Iterator[None]:
    """One message that is due in a month, and 40 MB behind it that are long consumed."""
    messages = 4000
    with ground(lab, "delayed-holds-ledgers") as here:
        topic = here.topic()
        consumer = here.shared(topic)
        producer = here.producer(topic, batched=False)
        publish(producer, 1, 20, lambda _number: timedelta(days=30))
        publish(producer, messages, 10_000)
        for message in receive(consumer, messages):
            consumer.acknowledge(message)
        here.until(topic, lambda shown: _backlog(shown) == 1, "all else is consumed")
        here.until_quiet(topic)
        here.until_metric("pulsar_subscription_delayed", topic, 1)
        yield


FAULTS = (
    RealFault(
        name="delayed-for-22-in-memory",
        about="50,000 delayed messages that 22 subscriptions wait for, indexed in memory: 1.1 million entries.",
        expected=(Expected("delayed-index-multiplied"), Expected("delayed-index-memory")),
        settings=IN_MEMORY,
        made=_waiting("delayed-for-22-in-memory", 22),
    ),
    RealFault(
        name="delayed-for-3-in-memory",
        about="Healthy: 50,000 delayed messages that three subscriptions wait for, indexed in memory.",
        settings=IN_MEMORY,
        made=_waiting("delayed-for-3-in-memory", 3),
    ),
    RealFault(
        name="delayed-for-22-in-buckets",
        about="50,000 delayed messages that 22 subscriptions wait for, indexed in buckets.",
        expected=(Expected("delayed-index-multiplied"),),
        allowed={"delayed-index-memory": "the buckets that are being filled take their share of a small lab's memory"},
        made=_waiting("delayed-for-22-in-buckets", 22),
    ),
    RealFault(
        name="delayed-for-3-in-buckets",
        about="Healthy: 50,000 delayed messages that three subscriptions wait for, indexed in buckets.",
        made=_waiting("delayed-for-3-in-buckets", 3),
    ),
    RealFault(
        name="too-many-buckets",
        about="10,500 delayed messages in buckets of 1,000, where ten buckets are the limit.",
        expected=(Expected("delayed-bucket-count"),),
        settings=SMALL_BUCKETS,
        made=_waiting("too-many-buckets", 1, 10_500),
    ),
    RealFault(
        name="delays-beyond-ttl",
        about="Delays of a week are allowed where messages live for a day.",
        expected=(Expected("delayed-past-ttl", r"public/delays-beyond-ttl"),),
        made=_delays_beyond_ttl,
    ),
    RealFault(
        name="delayed-about-to-expire",
        about="Messages delayed by an hour and more, which will have lived for their minute before that.",
        expected=(Expected("delayed-past-ttl", r"public/delayed-about-to-expire"),),
        settings=PRECISE,
        made=_about_to_expire,
    ),
    RealFault(
        name="delayed-holds-ledgers",
        about="One message that is delayed by a month, and 40 MB behind it that nobody needs any more. The threshold is"
        " lowered, as a lab's disk is no place for its default.",
        expected=(Expected("delayed-holds-ledgers"),),
        policy={"delayed_holds_ledgers": {"warning_held_mebibytes": 16}},
        made=_front_of_the_topic,
    ),
)
