"""Topics, clients and namespaces in the wrong place."""

import contextlib
import itertools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from lab import placement
from lab.cluster import Lab
from lab.faults.fault import Expected, RealFault
from lab.faults.real.ground import SHOWN_WITHIN_S, Ground, ground
from lab.faults.real.operator import operator_of, shown_topics
from lab.waiting import wait_until

CROWD = 500
FULL, PARTITIONS = 1800, 30
HOT, CONSUMERS = 25, 50
BUNDLES = 16
NOWHERE = r"192\.0\.2\.1"
"""An address that is reserved for documentation: no broker is there."""


def crowd(here: Ground, count: int) -> list[str]:
    """Names of topics that all fall into the namespace's first bundle."""
    first = here.admin.bundles(here.namespace)[0]
    names = (here.topic(f"t{number}") for number in itertools.count())
    return list(itertools.islice((name for name in names if placement.holds(first, name)), count))


def place_evenly(here: Ground) -> None:
    """Names a broker for each bundle, in turn; by itself the leader goes by load reports that are a minute old."""
    brokers = here.lab.active_brokers()
    for number, bundle in enumerate(here.admin.bundles(here.namespace)):
        here.admin.unload(here.namespace, bundle, brokers[number % len(brokers)])


def _topics(name: str, bundles: int, crowded: int) -> Callable[[Lab], AbstractContextManager[None]]:
    @contextlib.contextmanager
    def made(lab: Lab) -> Iterator[None]:
        with ground(lab, name, bundles) as here:
            place_evenly(here)
            names = crowd(here, crowded) if crowded else [here.topic(f"t{number}") for number in range(CROWD)]
            for topic in names:
                here.shared(topic, receiver_queue_size=1)  # without a subscription brokers delete it after a minute
            wait_until(
                lambda: set(names) <= shown_topics(lab).keys(), f"{len(names)} topics are loaded", SHOWN_WITHIN_S, 1.0
            )
            yield

    return made


@contextlib.contextmanager
def _hot(lab: Lab) -> Iterator[None]:
    """1,250 consumers on 25 topics of one bundle, while the topics of the others have one each."""
    with ground(lab, "hot-bundle", BUNDLES) as here:
        busy = crowd(here, HOT)
        others = [name for name in (here.topic(f"quiet{number}") for number in range(60)) if name not in busy]
        for topic in others:
            here.shared(topic, receiver_queue_size=1)
        for topic in busy:
            for _ in range(CONSUMERS):
                here.shared(topic, receiver_queue_size=1)
        wait_until(lambda: _all_have(lab, busy, CONSUMERS), "all consumers are connected", SHOWN_WITHIN_S, 1.0)
        yield


def _all_have(lab: Lab, topics: list[str], consumers: int) -> bool:
    shown = shown_topics(lab)
    return all(topic in shown and len(shown[topic]["subscriptions"]["s"]["consumers"]) == consumers for topic in topics)


@contextlib.contextmanager
def _newcomer(lab: Lab) -> Iterator[None]:
    """A fourth broker beside three that are full: nothing moves to it by itself."""
    with ground(lab, "newcomer", 3 * BUNDLES) as here:
        place_evenly(here)
        # A few at a time: all at once keep the metadata store busy for seconds.
        for number in range(FULL // PARTITIONS):
            topic = here.topic(f"t{number}")
            here.admin.create_partitions(topic, PARTITIONS)
            here.shared(topic, receiver_queue_size=1)
        for number in range(here.admin.coordinators()):
            here.admin.look_up(placement.coordinator_topic(number))
        wait_until(lambda: len(_of(here, lab)) == FULL, f"{FULL:,} topics are loaded", SHOWN_WITHIN_S, 1.0)
        lab.add_broker()
        yield


def _of(here: Ground, lab: Lab) -> list[str]:
    return [topic for topic in shown_topics(lab) if topic.startswith(here.topic("t"))]


@contextlib.contextmanager
def _nowhere_to_be(lab: Lab) -> Iterator[None]:
    admin = operator_of(lab)
    with ground(lab, "nowhere") as here:
        try:
            admin.set_isolation("nowhere", here.namespace, NOWHERE)
            yield
        finally:
            admin.drop_isolation("nowhere")


FAULTS = (
    RealFault(
        name="crowded-bundle",
        about="500 topics in one of a namespace's 16 bundles.",
        expected=(Expected("bundle-topic-skew", r"public/crowded-bundle"),),
        allowed={"broker-load-skew": "the bundle's broker has 500 topics and the others none"},
        made=_topics("crowded-bundle", BUNDLES, CROWD),
    ),
    RealFault(
        name="even-bundles",
        about="Healthy: 500 topics all over a namespace's 16 bundles.",
        made=_topics("even-bundles", BUNDLES, 0),
    ),
    RealFault(
        name="newcomer",
        about="A fourth broker has joined three that have 600 topics each, and nothing moved to it.",
        expected=(Expected("broker-load-skew"), Expected("tc-skew")),
        own_lab=True,
        made=_newcomer,
    ),
    RealFault(
        name="hot-bundle",
        about="1,250 consumers on 25 topics in one of 16 bundles; each other bundle has a few.",
        expected=(Expected("hot-bundle", r"public/hot-bundle"),),
        allowed={"broker-load-skew": "the bundle's broker has most of the clients"},
        made=_hot,
    ),
    RealFault(
        name="nowhere-to-be",
        about="An isolation policy that lets a namespace be on no broker that there is.",
        expected=(Expected("cluster-placement"),),
        made=_nowhere_to_be,
    ),
)
