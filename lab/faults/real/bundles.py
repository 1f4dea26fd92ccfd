"""Topics, clients and namespaces in the wrong place."""

import contextlib
import itertools
from collections.abc import Callable, Iterator

from lab import placement
from lab.cluster import Lab
from lab.faults.fault import Expected, RealFault
from lab.faults.real.ground import SHOWN_WITHIN_S, Ground, fault_on_ground, ground
from lab.faults.real.operator import operator_of, recently_shown, shown_topics
from lab.waiting import wait_until

CROWD = 500
FULL, PARTITIONS = 1800, 30
HOT = 25
BUNDLES = 16
PLACES = "places"
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


def _topics(count: int, *, crowded: bool) -> Callable[[Ground], None]:
    """A number of topics with a consumer each, all in one bundle or wherever their names put them."""

    def arrange(here: Ground) -> None:
        place_evenly(here)
        names = crowd(here, count) if crowded else [here.topic(f"t{number}") for number in range(count)]
        for topic in names:
            here.shared(topic, receiver_queue_size=1)  # without a subscription brokers delete it after a minute
        wait_until(
            lambda: set(names) <= recently_shown(here.lab).keys(),
            f"{len(names)} topics are loaded",
            SHOWN_WITHIN_S,
            1.0,
        )

    return arrange


def _busy_bundle(consumers: int) -> Callable[[Ground], None]:
    """A number of consumers on each of 25 topics of one bundle, while the topics of the others have one each."""

    def arrange(here: Ground) -> None:
        place_evenly(here)
        busy = crowd(here, HOT)
        others = [name for name in (here.topic(f"quiet{number}") for number in range(60)) if name not in busy]
        for topic in others:
            here.shared(topic, receiver_queue_size=1)
        for topic in busy:
            here.crowd(topic, consumers=consumers)
        wait_until(lambda: _all_have(here.lab, busy, consumers), "all consumers are connected", SHOWN_WITHIN_S, 1.0)

    return arrange


def _all_have(lab: Lab, topics: list[str], consumers: int) -> bool:
    shown = recently_shown(lab)
    return all(
        topic in shown
        and "s" in shown[topic]["subscriptions"]
        and len(shown[topic]["subscriptions"]["s"]["consumers"]) == consumers
        for topic in topics
    )


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
    name, admin = "nowhere-to-be", operator_of(lab)
    with ground(lab, name) as here:
        try:
            admin.set_isolation(name, here.namespace, NOWHERE)
            yield
        finally:
            admin.drop_isolation(name)


PLACED = (
    fault_on_ground(
        "crowded-bundle",
        "500 topics in one of a namespace's 16 bundles.",
        _topics(CROWD, crowded=True),
        expected=(Expected("bundle-topic-skew", r"public/crowded-bundle"),),
        allowed={"broker-load-skew": "the bundle's broker has 500 topics more than the others"},
        client=None,
        bundles=BUNDLES,
        among=PLACES,
    ),
    fault_on_ground(
        "crowded-half",
        "150 topics in one of a namespace's two bundles.",
        _topics(150, crowded=True),
        expected=(Expected("bundle-topic-skew", r"public/crowded-half"),),
        client=None,
        bundles=2,
        among=PLACES,
    ),
    fault_on_ground(
        "even-bundles",
        "Healthy: 500 topics all over a namespace's 16 bundles.",
        _topics(CROWD, crowded=False),
        client=None,
        bundles=BUNDLES,
        among=PLACES,
        twin_of=("crowded-bundle", "newcomer"),
    ),
    fault_on_ground(
        "even-halves",
        "Healthy: 150 topics all over a namespace's two bundles.",
        _topics(150, crowded=False),
        client=None,
        bundles=2,
        among=PLACES,
        twin_of=("crowded-half",),
    ),
    fault_on_ground(
        "few-topics-in-one-bundle",
        "Healthy enough: all 40 topics of a namespace in one of its 16 bundles.",
        _topics(40, crowded=True),
        client=None,
        bundles=BUNDLES,
        among=PLACES,
        twin_of=("crowded-bundle",),
    ),
    fault_on_ground(
        "hot-bundle",
        "1,250 consumers on 25 topics in one of 16 bundles; each other bundle has a few.",
        _busy_bundle(50),
        expected=(Expected("hot-bundle", r"public/hot-bundle"),),
        allowed={"broker-load-skew": "the bundle's broker has most of the clients"},
        client="java",
        bundles=BUNDLES,
        among=PLACES,
    ),
    fault_on_ground(
        "warm-bundle",
        "Healthy enough: 750 consumers on 25 topics in one of 16 bundles; each other bundle has a few.",
        _busy_bundle(30),
        client="java",
        bundles=BUNDLES,
        among=PLACES,
        twin_of=("hot-bundle",),
    ),
)

FAULTS = (
    *PLACED,
    RealFault(
        name="nowhere-to-be",
        about="An isolation policy that lets a namespace be on no broker that there is.",
        expected=(Expected("cluster-placement"),),
        alone=True,
        made=_nowhere_to_be,
    ),
    RealFault(
        name="newcomer",
        about="A fourth broker has joined three that have 600 topics each, and nothing moved to it.",
        expected=(Expected("broker-load-skew"), Expected("tc-skew")),
        own_lab=True,
        made=_newcomer,
    ),
)
