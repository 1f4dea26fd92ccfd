"""Too many clients at one place, and clients that come and go."""

import contextlib
import time
from collections.abc import Iterator

from lab.cluster import Lab
from lab.faults.fault import Expected, RealFault
from lab.faults.real.ground import Ground, connected, ground
from lab.faults.real.operator import operators_of
from lab.waiting import wait_until

CHURN_WITHIN_S = 400.0
REPLACED_PER_MINUTE = 120
UP_MINUTES = 2.5
CONSUMERS = 2_000
PRODUCERS = 1_000
ONE_PLACE = {
    "hot-bundle": "the bundle has as many clients as the topic",
    "broker-load-skew": "the broker has as many clients as the topic, and the others have none",
}


@contextlib.contextmanager
def _consumers(lab: Lab) -> Iterator[None]:
    with ground(lab, "consumer-fanout") as here:
        topic = here.topic()
        for _ in range(CONSUMERS):
            here.shared(topic, receiver_queue_size=1)
        here.until(
            topic,
            lambda shown: len(shown["subscriptions"]["s"]["consumers"]) == CONSUMERS,
            f"{CONSUMERS:,} consumers are connected",
        )
        yield


@contextlib.contextmanager
def _producers(lab: Lab) -> Iterator[None]:
    with ground(lab, "producer-fanout") as here:
        topic = here.topic()
        for _ in range(PRODUCERS):
            here.client.create_producer(topic)
        here.until(
            topic,
            lambda shown: len(shown["publishers"]) == PRODUCERS,
            f"{PRODUCERS:,} producers are connected",
        )
        yield


@contextlib.contextmanager
def _coming_and_going(lab: Lab) -> Iterator[None]:
    """A client made for each message, as some applications do, until each minute of a broker's life had its share."""
    with ground(lab, "connection-churn") as here:
        topic = here.topic()
        here.producer(topic)
        wait_until(lambda: _one_more(here, topic), "connections were replaced often enough", CHURN_WITHIN_S, 1.0)
        yield


def _one_more(here: Ground, topic: str) -> bool:
    """Sends some messages with a client each; tells whether a broker has seen enough of that."""
    for _ in range(20):
        client = connected(here.lab)
        client.create_producer(topic).send(b"one more")
        client.close()
    return any(_churned(dict(operator.metrics())) for operator in operators_of(here.lab))


def _churned(metrics: dict[str, float]) -> bool:
    """Whether a broker that is no longer young lost so many connections for each minute of its life."""

    def total(series: str) -> float:
        return sum(value for name, value in metrics.items() if name.partition("{")[0] == series)

    minutes = (time.time() - total("process_start_time_seconds")) / 60
    replaced = total("pulsar_connection_create_success_count") - total("pulsar_active_connections")
    return minutes > UP_MINUTES and replaced / minutes > REPLACED_PER_MINUTE


FAULTS = (
    RealFault(
        name="consumer-fanout",
        about="2,000 consumers of one subscription on one partition.",
        expected=(Expected("consumer-fanout", r"public/consumer-fanout"),),
        allowed=ONE_PLACE,
        made=_consumers,
    ),
    RealFault(
        name="producer-fanout",
        about="1,000 producers on one partition.",
        expected=(Expected("producer-fanout", r"public/producer-fanout"),),
        allowed=ONE_PLACE,
        made=_producers,
    ),
    RealFault(
        name="connection-churn",
        about="A client that is made anew for each message. Brokers are judged once they are twice as old as what"
        " counts as recent, ten minutes; that is lowered to one, as a benchmark cannot wait for them.",
        expected=(Expected("connection-churn"),),
        own_lab=True,
        policy={"collect": {"recent_minutes": 1}},
        made=_coming_and_going,
    ),
)
