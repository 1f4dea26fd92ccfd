"""Subscriptions that stand still."""

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta

from lab.cluster import Lab
from lab.faults.fault import Expected, RealFault
from lab.faults.real.ground import ground
from lab.faults.real.traffic import publish
from lab.waiting import wait_until

STANDSTILL = timedelta(seconds=75)
MINUTES: dict[str, object] = {"collect": {"recent_minutes": 1}, "subscription_stalled": {"warning_minutes": 1}}
MESSAGES = 5000


def _standing(name: str, standstill: timedelta) -> Callable[[Lab], AbstractContextManager[None]]:
    """A consumer whose receiver queue is full, as of a client that hangs, and a backlog behind it."""

    @contextlib.contextmanager
    def made(lab: Lab) -> Iterator[None]:
        with ground(lab, name) as here:
            topic = here.topic()
            here.shared(topic, receiver_queue_size=100)
            publish(here.producer(topic, batched=False), MESSAGES, 20)
            until = datetime.now(UTC) + standstill
            here.until(
                topic,
                lambda shown: (
                    not shown["subscriptions"]["s"]["msgRateOut"]
                    and shown["subscriptions"]["s"]["msgBacklog"] >= MESSAGES
                ),
                "nothing is delivered",
            )
            wait_until(lambda: datetime.now(UTC) > until, "it stood still", standstill.total_seconds() + 5, 1.0)
            yield

    return made


FAULTS = (
    RealFault(
        name="stalled",
        about="A consumer that hangs for over a minute, with 5,000 messages behind it. The ages from which clients and"
        " standstills count, ten minutes, are lowered to one, as a benchmark cannot wait for them.",
        expected=(Expected("subscription-stalled", r"public/stalled"),),
        policy=MINUTES,
        made=_standing("stalled", STANDSTILL),
    ),
    RealFault(
        name="pausing",
        about="Healthy enough: a consumer that has not taken anything for some seconds.",
        made=_standing("pausing", timedelta()),
    ),
)
