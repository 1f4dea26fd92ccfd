"""Too many clients at one place, and clients that come and go."""

import contextlib
import time
from collections.abc import Iterator
from typing import Any

from lab.cluster import Lab
from lab.errors import AdminCallError
from lab.faults.clients.work import Language
from lab.faults.fault import Change, Expected, RealFault
from lab.faults.real.ground import Ground, connected, fault_on_ground, ground
from lab.faults.real.operator import metrics_of, operators_of
from lab.waiting import wait_until

CHURN_WITHIN_S = 400.0
REPLACED_PER_MINUTE = 120
UP_MINUTES = 2.5
CONNECTED_WITHIN_S = 180.0
ONE_PLACE = {
    "hot-bundle": "the bundle has as many clients as the topic",
    "broker-load-skew": "the broker has as many clients as the topic, and the others have none",
}
CROWDS = "crowds"

MINUTE_S = 60
SETTLED = 130
A_MINUTE: dict[str, object] = {"collect": {"recent_minutes": 1}}
SOONER = "What counts as recent, ten minutes, is lowered to one, as a benchmark cannot wait for them."


def _fanout(
    name: str,
    about: str,
    *checks: str,
    producers: int = 0,
    consumers: int = 0,
    partitions: int = 0,
    client: Language = "python",
    **label: Any,
) -> RealFault:
    """A number of clients of one topic, or of each of its partitions."""

    def arrange(here: Ground) -> None:
        topic = here.topic()
        if partitions:
            here.admin.create_partitions(topic, partitions)
        here.crowd(topic, producers=producers, consumers=consumers)
        for part in [f"{topic}-partition-{number}" for number in range(partitions)] or [topic]:
            here.until(
                part,
                lambda shown: (
                    len(shown["publishers"]) == producers
                    and sum(len(each["consumers"]) for each in shown["subscriptions"].values()) == consumers
                ),
                f"{producers:,} producers and {consumers:,} consumers are connected",
                CONNECTED_WITHIN_S,
            )

    expected = tuple(Expected(check, rf"public/{name}/") for check in checks)
    return fault_on_ground(
        name, about, arrange, expected=expected, client=client, among=CROWDS, allowed=ONE_PLACE, **label
    )


def _settled(here: Ground) -> list[Any]:
    """Consumers that are no longer new, of brokers that are no longer young."""
    topic = here.topic()
    consumers = [here.shared(topic, receiver_queue_size=1, consumer_name=f"c{number}") for number in range(SETTLED)]
    until = time.monotonic() + MINUTE_S + 5
    wait_until(
        lambda: time.monotonic() > until and _youngest(here.lab) > 2 * MINUTE_S + 5,
        "clients and brokers are no longer new",
        3 * MINUTE_S,
        1.0,
    )
    return consumers


def _youngest(lab: Lab) -> float:
    """For how long the broker has run that started last, in seconds."""
    starts = [value for name, value in metrics_of(lab) if name.partition("{")[0] == "process_start_time_seconds"]
    return time.time() - max(starts)


def _come_back(share: float) -> Any:
    """Consumers of one connection, a share of which is closed and created again right before the look."""

    def arrange(here: Ground) -> Change:
        consumers = _settled(here)

        def change(_observed: int) -> None:
            count = int(share * SETTLED)
            for number, consumer in enumerate(consumers[:count]):
                consumer.close()
                here.shared(here.topic(), receiver_queue_size=1, consumer_name=f"d{number}")
            here.until(
                here.topic(),
                lambda shown: (
                    count == sum(each["consumerName"][0] == "d" for each in shown["subscriptions"]["s"]["consumers"])
                ),
                f"{count} consumers are new",
            )

        return change

    return arrange


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
    with contextlib.suppress(AdminCallError):  # a broker that is too busy to tell its metrics
        return any(_churned(dict(operator.metrics())) for operator in operators_of(here.lab))
    return False


def _churned(metrics: dict[str, float]) -> bool:
    """True if a broker that is no longer young lost so many connections for each minute of its life."""

    def total(series: str) -> float:
        return sum(value for name, value in metrics.items() if name.partition("{")[0] == series)

    minutes = (time.time() - total("process_start_time_seconds")) / 60
    replaced = total("pulsar_connection_create_success_count") - total("pulsar_active_connections")
    return minutes > UP_MINUTES and replaced / minutes > REPLACED_PER_MINUTE


FANOUTS = (
    _fanout(
        "consumer-fanout", "2,000 consumers of one subscription on one partition.", "consumer-fanout", consumers=2_000
    ),
    _fanout(
        "consumer-fanout-java",
        "2,200 consumers of one subscription on one partition.",
        "consumer-fanout",
        consumers=2_200,
        client="java",
    ),
    _fanout(
        "many-consumers",
        "Healthy enough: 1,900 consumers of one subscription on one partition.",
        consumers=1_900,
        client="java",
        twin_of=("consumer-fanout", "consumer-fanout-java"),
    ),
    _fanout(
        "consumers-over-partitions",
        "Healthy: 500 consumers on each of four partitions.",
        consumers=500,
        partitions=4,
        client="go",
        twin_of=("consumer-fanout",),
    ),
    _fanout("producer-fanout", "1,000 producers on one partition.", "producer-fanout", producers=1_000),
    _fanout("producer-fanout-go", "1,100 producers on one partition.", "producer-fanout", producers=1_100, client="go"),
    _fanout(
        "many-producers",
        "Healthy enough: 950 producers on one partition.",
        producers=950,
        client="java",
        twin_of=("producer-fanout", "producer-fanout-go"),
    ),
)

CHURN = (
    fault_on_ground(
        "consumers-come-back",
        f"90 of 130 consumers of a topic connected anew in the last minute, the others did not. {SOONER}",
        _come_back(0.7),
        expected=(Expected("connection-churn", r"public/consumers-come-back/"),),
        policy=A_MINUTE,
    ),
    fault_on_ground(
        "some-consumers-come-back",
        f"Healthy: 32 of 130 consumers of a topic connected anew in the last minute. {SOONER}",
        _come_back(0.25),
        policy=A_MINUTE,
        twin_of=("consumers-come-back",),
    ),
    fault_on_ground(
        "consumers-stay",
        f"Healthy: 130 consumers of a topic connected more than a minute ago. {SOONER}",
        _come_back(0.0),
        policy=A_MINUTE,
        twin_of=("consumers-come-back", "connection-churn"),
    ),
    RealFault(
        name="connection-churn",
        about="A client that is made anew for each message. Brokers are judged once they are twice as old as what"
        " counts as recent, ten minutes; that is lowered to one, as a benchmark cannot wait for them.",
        expected=(Expected("connection-churn"),),
        own_lab=True,
        policy=A_MINUTE,
        client="python",
        made=_coming_and_going,
    ),
)

FAULTS = (*FANOUTS, *CHURN)
