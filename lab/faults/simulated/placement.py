"""Brokers and bundles that carry too much or nothing, and bundles that do not stay."""

from lab.faults.fault import Expected, SimulatedFault
from lab.faults.simulated._clusters import EIGHT_GIB, at, busy_topic, cluster, spread, strained
from lab.simulator import ClusterSpec, NamespaceSpec, SubscriptionSpec, TopicSpec

SET_ONCE = "the number of a lab's coordinators is set before its brokers first start, and is the same for all labs"
FEW_OR_MANY = "hashes put so few or so many coordinators unevenly into the bundles that place them"
NO_ROOM = "more topics and traffic than the lab's machine has room for"


def _uneven(topics: dict[int, int]) -> tuple[NamespaceSpec, ...]:
    """For each broker so many topics, in a namespace of its own of eight bundles."""
    return tuple(
        NamespaceSpec(f"shop/part-{number}", bundles=8, topics=(busy_topic("log", count, rate=1.0),), owner=number)
        for number, count in topics.items()
    )


def _one_hot(rate: float = 30_000.0) -> tuple[NamespaceSpec, ...]:
    """60 MB/s in and out of one topic, and as much for each other broker in many bundles."""
    out = SubscriptionSpec("index", consumers=4, backlog=100, unacked=80, rate_out=rate)
    hot = TopicSpec("clicks", producers=8, subscriptions=(out,), message_bytes=1_000, rate_in=rate)
    usual = busy_topic("views", 200, rate=560.0)
    return (
        NamespaceSpec("shop/search", bundles=4, topics=(hot,), owner=0),
        NamespaceSpec("shop/web", bundles=64, topics=(usual,), owners=tuple(1 + each for each in spread(64, 2))),
    )


def _flapping(owner: int) -> ClusterSpec:
    """A namespace whose first bundle is with that broker, and all others where they always are."""
    topic = busy_topic("visits", 16)
    return cluster(NamespaceSpec("shop/news", bundles=4, topics=(topic,), owners=(owner, 1, 2, 2)))


FAULTS = (
    SimulatedFault(
        name="one-full-broker",
        about="One of three brokers holds 1,500 topics and their clients, the others 200 each.",
        expected=(Expected("broker-load-skew", at(0)),),
        specs=(cluster(*_uneven({0: 1_500, 1: 200, 2: 200})),),
        why=NO_ROOM,
    ),
    SimulatedFault(
        name="new-broker-stays-empty",
        about="A fourth broker joined, and nothing moved to it.",
        expected=(Expected("broker-load-skew", at(3)),),
        specs=(ClusterSpec(brokers=4, hosts="distinct", namespaces=_uneven({0: 700, 1: 700, 2: 700})),),
        why=NO_ROOM,
    ),
    SimulatedFault(
        name="one-hot-bundle",
        about="A single topic carries 60 MB/s, thirty times what other bundles do; its broker's CPU is at 90 %.",
        expected=(Expected("hot-bundle", "^shop/search/"),),
        allowed={
            "cpu-busy": "its broker has 90 % of its CPU in use",
            "broker-load-skew": "and that is far more than the others have",
        },
        specs=(cluster(*_one_hot(), broker_0=strained(cpu_percent=180.0)),),
        why=NO_ROOM,
    ),
    SimulatedFault(
        name="bundle-goes-to-and-fro",
        about="A bundle is with one broker, then with another, then with the first again, and so on.",
        expected=(Expected("bundle-flapping", "^shop/news/0x00000000_"),),
        specs=tuple(_flapping(owner) for owner in (0, 1, 0, 1, 0)),
        observations=5,
        why="a broker's own shedder takes hours to go in circles",
    ),
    SimulatedFault(
        name="too-few-coordinators",
        about="Five brokers share two transaction coordinators: a restart of one stalls half of all transactions.",
        expected=(Expected("tc-count"),),
        allowed={"tc-skew": FEW_OR_MANY},
        specs=(cluster(brokers=5, coordinators=2),),
        why=SET_ONCE,
    ),
    SimulatedFault(
        name="too-many-coordinators",
        about="Three brokers hold 600 transaction coordinators.",
        expected=(Expected("tc-count"),),
        allowed={"tc-skew": FEW_OR_MANY},
        specs=(cluster(coordinators=600),),
        why=SET_ONCE,
    ),
    SimulatedFault(
        name="as-many-coordinators-as-usual",
        about="Healthy: three brokers hold 16 transaction coordinators, as many as Pulsar makes by itself.",
        specs=(cluster(coordinators=16),),
        why=SET_ONCE,
        twin_of=("too-few-coordinators", "too-many-coordinators"),
    ),
    SimulatedFault(
        name="drain-of-a-broker-that-is-not-there",
        about="A broker is marked as draining by a name that no broker has.",
        expected=(Expected("broker-draining", "^broker-7:8080$"),),
        specs=(cluster(),),
        policy={"brokers": {"draining": ["broker-7:8080"]}},
        why="the policy alone makes it, whatever the brokers are",
    ),
    SimulatedFault(
        name="group-without-its-policy",
        about="A group of brokers is wanted for some namespaces, and the cluster has no isolation policy.",
        expected=(Expected("broker-groups", "^shop$"),),
        specs=(cluster(),),
        policy={"brokers": {"groups": [{"name": "shop", "namespaces": ["shop/.*"], "primary": ["127.*"]}]}},
        why="the policy alone makes it, whatever the brokers are",
    ),
    SimulatedFault(
        name="equally-full-brokers",
        about="Healthy: four brokers hold 500 topics each, give or take some.",
        specs=(
            ClusterSpec(
                brokers=4,
                hosts="distinct",
                namespaces=_uneven({0: 520, 1: 480, 2: 500, 3: 450}),
                loads=(EIGHT_GIB,) * 4,
            ),
        ),
        why=NO_ROOM,
        twin_of=(
            "one-full-broker",
            "new-broker-stays-empty",
            "drain-of-a-broker-that-is-not-there",
            "group-without-its-policy",
        ),
    ),
    SimulatedFault(
        name="one-hot-topic-with-room",
        about="Healthy enough: a single topic makes its bundle carry 60 MB/s, and its broker has room for it.",
        specs=(cluster(*_one_hot()),),
        why=NO_ROOM,
        twin_of=("one-hot-bundle",),
    ),
    SimulatedFault(
        name="busy-bundles",
        about="Healthy: a topic carries 2 MB/s, and so do many bundles.",
        specs=(cluster(*_one_hot(rate=1_000.0)),),
        why=NO_ROOM,
        twin_of=("one-hot-bundle",),
    ),
    SimulatedFault(
        name="bundle-that-moved-once",
        about="Healthy: a bundle went from one broker to another, and stays there.",
        specs=tuple(_flapping(owner) for owner in (0, 0, 1, 1, 1)),
        observations=5,
        why="a broker's own shedder takes hours to go in circles",
        twin_of=("bundle-goes-to-and-fro",),
    ),
)
