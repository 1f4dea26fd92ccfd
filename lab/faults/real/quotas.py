"""Backlogs near and over their quotas in size: what each policy makes of it, and quotas that nobody checks."""

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from lab.cluster import Lab
from lab.faults.fault import Expected, RealFault
from lab.faults.real.ground import Ground, ground
from lab.faults.real.operator import EVICTION, EXCEPTION, HOLD, SIZE
from lab.faults.real.traffic import publish, steady

QUOTA_BYTES = 1_000_000
MESSAGE_BYTES = 1000
# What a message takes on disk besides its content, in batches of some hundred.
ENVELOPE_BYTES = 12

NEAR = Expected("backlog-near-quota")
RISK = Expected("producer-hold-restart-risk")
UNCHECKED = (("backlogQuotaCheckEnabled", "false"),)
TOO_FULL = {"producer-hold-restart-risk": "a backlog that near to a quota which holds producers is both"}


def _filled(name: str, policy: str, percent: int) -> Callable[[Lab], AbstractContextManager[None]]:
    """A backlog of that share of its quota, and a producer that is still connected where its policy lets it be."""

    @contextlib.contextmanager
    def made(lab: Lab) -> Iterator[None]:
        with ground(lab, name) as here:
            here.admin.set_quota(here.namespace, SIZE, QUOTA_BYTES, policy)
            fill(here, QUOTA_BYTES * percent // 100)
            yield

    return made


def fill(here: Ground, size: int) -> str:
    """Publishes a backlog of about that many bytes which nobody consumes, and waits until brokers show it."""
    topic = here.topic()
    here.subscription(topic)
    publish(here.producer(topic), size // (MESSAGE_BYTES + ENVELOPE_BYTES) + 1, MESSAGE_BYTES)
    here.until(topic, lambda shown: shown["backlogSize"] >= 0.98 * size, f"{size:,} bytes of backlog")
    return topic


@contextlib.contextmanager
def _evicted_again_and_again(lab: Lab) -> Iterator[None]:
    with ground(lab, "size-evicted-again") as here:
        here.admin.set_quota(here.namespace, SIZE, QUOTA_BYTES, EVICTION)
        topic = fill(here, QUOTA_BYTES * 90 // 100)
        with steady([here.producer(topic)], rate=10, size=MESSAGE_BYTES):
            here.until(topic, _was_evicted, "something was evicted and more came")
            yield


def _was_evicted(shown: dict[str, int]) -> bool:
    return shown["bytesInCount"] > 1.05 * QUOTA_BYTES and shown["backlogSize"] < QUOTA_BYTES


@contextlib.contextmanager
def _one_gap_in_front(lab: Lab) -> Iterator[None]:
    """One message that is never acknowledged, in front of 16 MB that are: the quota counts them all."""
    messages, size = 1000, 16_000
    with ground(lab, "quota-stuck") as here:
        topic = here.topic()
        consumer = here.shared(topic)
        publish(here.producer(topic, batched=False), messages, size)
        for _ in range(messages):
            message = consumer.receive(timeout_millis=10_000)
            if message.message_id().entry_id():
                consumer.acknowledge(message)
        here.admin.set_quota(here.namespace, SIZE, messages * size // 2, HOLD)
        here.until(
            topic,
            lambda shown: shown["subscriptions"]["s"]["msgBacklog"] == 1 and not shown["publishers"],
            "one message is left and its quota cut the producer off",
        )
        yield


FAULTS = (
    RealFault(
        name="size-near-hold",
        about="A backlog of 86 % of a size quota that holds producers.",
        expected=(NEAR,),
        made=_filled("size-near-hold", HOLD, 86),
    ),
    RealFault(
        name="size-near-exception",
        about="A backlog of 86 % of a size quota that refuses producers.",
        expected=(NEAR,),
        made=_filled("size-near-exception", EXCEPTION, 86),
    ),
    RealFault(
        name="size-near-eviction",
        about="A backlog of 86 % of a size quota that evicts.",
        expected=(NEAR,),
        made=_filled("size-near-eviction", EVICTION, 86),
    ),
    RealFault(
        name="restart-risk",
        about="A backlog of 94 % of a size quota that holds producers: a restart may find it exceeded.",
        expected=(NEAR, RISK),
        made=_filled("restart-risk", HOLD, 94),
    ),
    RealFault(
        name="size-over-hold",
        about="A backlog over a size quota that holds producers.",
        expected=(NEAR, RISK),
        quick=True,
        made=_filled("size-over-hold", HOLD, 110),
    ),
    RealFault(
        name="size-over-exception",
        about="A backlog over a size quota that refuses producers.",
        expected=(NEAR, RISK),
        made=_filled("size-over-exception", EXCEPTION, 110),
    ),
    RealFault(
        name="size-evicted-again",
        about="A producer that nobody consumes from, whose backlog is evicted whenever the brokers look at its quota.",
        expected=(NEAR,),
        made=_evicted_again_and_again,
    ),
    RealFault(
        name="quota-stuck",
        about="One message that nobody acknowledges in front of many that are: producers are cut off by no backlog.",
        expected=(Expected("quota-stuck"), NEAR, RISK),
        made=_one_gap_in_front,
    ),
    RealFault(
        name="unchecked-quota-half-full",
        about="Brokers that check no quota, and a namespace that has one.",
        expected=(Expected("quota-check-disabled"),),
        settings=UNCHECKED,
        made=_filled("unchecked-quota-half-full", HOLD, 50),
    ),
    RealFault(
        name="unchecked-quota-exceeded",
        about="Brokers that check no quota, and a backlog over one: the producer goes on until it has to come back.",
        expected=(Expected("quota-check-disabled"), NEAR, RISK),
        settings=UNCHECKED,
        made=_filled("unchecked-quota-exceeded", HOLD, 130),
    ),
)
