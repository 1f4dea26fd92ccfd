"""Clusters that are too full, or that could not carry the loss of a broker."""

from lab.faults.fault import Expected, SimulatedFault
from lab.faults.simulated._clusters import EIGHT_GIB, IN_MEMORY, at, busy_topic, cluster, spread, strained
from lab.simulator import ClusterSpec, NamespaceSpec, SubscriptionSpec, TopicSpec

NO_ROOM = "more topics than the lab's machine has memory for"


def _many(topics: int, bundles: int, brokers: int) -> NamespaceSpec:
    """Idle partitions with a subscription each, in bundles that all brokers have alike."""
    topic = TopicSpec("readings", partitions=topics, subscriptions=(SubscriptionSpec("store"),))
    return NamespaceSpec("factory/sensors", bundles=bundles, topics=(topic,), owners=spread(bundles, brokers))


def _isolated_on(host: str) -> dict[str, dict[str, object]]:
    failover = {"policy_type": "min_available", "parameters": {"min_limit": "1", "usage_threshold": "80"}}
    return {"paying": {"namespaces": ["bank/.*"], "primary": [host], "secondary": [], "auto_failover_policy": failover}}


def _isolated() -> ClusterSpec:
    """A broker for the bank alone, two for all others, and one bundle of the bank's with these."""
    transfers = TopicSpec("transfers", partitions=12, producers=1, rate_in=5.0)
    bank = NamespaceSpec("bank/money", topics=(transfers,), owners=(0, 0, 2, 0))
    views = NamespaceSpec("shop/web", bundles=8, topics=(busy_topic("views", 40),), owners=(1, 2) * 4)
    return ClusterSpec(
        hosts="distinct",
        namespaces=(bank, views),
        loads=(EIGHT_GIB,) * 3,
        isolation_policies=_isolated_on(r"127\.0\.0\.1"),
    )


def _isolated_with_room() -> ClusterSpec:
    """Two brokers for the bank alone, and two for all others."""
    transfers = TopicSpec("transfers", partitions=12, producers=1, rate_in=5.0)
    bank = NamespaceSpec("bank/money", topics=(transfers,), owners=(0, 1, 0, 1))
    views = NamespaceSpec("shop/web", bundles=8, topics=(busy_topic("views", 40),), owners=(2, 3) * 4)
    return ClusterSpec(
        brokers=4,
        hosts="distinct",
        namespaces=(bank, views),
        loads=(EIGHT_GIB,) * 4,
        isolation_policies=_isolated_on(r"127\.0\.0\.[12]"),
    )


def _waits_for_long(messages: int = 8_000_000) -> NamespaceSpec:
    mail = SubscriptionSpec("mail", consumers=2, backlog=messages, delayed=messages, rate_out=10.0)
    topic = TopicSpec("campaign", producers=1, subscriptions=(mail,), rate_in=10.0)
    return NamespaceSpec("shop/reminders", topics=(topic,), owner=1)


FAULTS = (
    SimulatedFault(
        name="too-many-topics-on-a-broker",
        about="The only broker of a cluster has 42,000 topics loaded.",
        expected=(Expected("partition-ceiling", at(0)),),
        allowed={"failover-time": "so many topics take minutes to load again, whoever loads them"},
        specs=(ClusterSpec(brokers=1, hosts="distinct", namespaces=(_many(42_000, 128, 1),), loads=(EIGHT_GIB,)),),
        why=NO_ROOM,
    ),
    SimulatedFault(
        name="over-the-configured-ceiling",
        about="Each broker has 3,600 topics loaded where its configuration says 3,500 at most.",
        expected=tuple(Expected("partition-ceiling", at(number)) for number in range(3)),
        specs=(cluster(_many(10_800, 48, 3), configuration={"loadBalancerBrokerMaxTopics": "3500"}),),
        why=NO_ROOM,
    ),
    SimulatedFault(
        name="long-failover-for-topics",
        about="Each of two brokers would have to load 14,000 topics of the other.",
        expected=(Expected("failover-time", at(0)), Expected("failover-time", at(1))),
        specs=(cluster(_many(28_000, 64, 2), brokers=2),),
        why=NO_ROOM,
    ),
    SimulatedFault(
        name="long-failover-for-delayed-messages",
        about="Eight million delayed messages of one subscription would be read anew by whoever takes it over.",
        expected=(Expected("failover-time", at(1)),),
        specs=(cluster(_waits_for_long(), configuration=IN_MEMORY),),
        why="millions of delayed messages take longer to write than the lab may run",
    ),
    SimulatedFault(
        name="no-room-to-lose-a-broker",
        about="Three brokers on hosts of their own use 80 % of their CPUs: two could not do their work.",
        expected=(Expected("cluster-placement"),),
        specs=(cluster(usual=strained(cpu_percent=160.0)),),
        why="brokers of the lab share one host's CPUs",
        quick=True,
    ),
    SimulatedFault(
        name="isolated-on-one-broker",
        about="A namespace's isolation policy leaves it one broker; some of its bundles are on another one.",
        expected=(Expected("cluster-placement", "^bank/money$"),),
        specs=(_isolated(),),
        why="setting a policy unloads at once what it matches: a real cluster is in this state for a moment only",
    ),
    SimulatedFault(
        name="many-topics-with-room",
        about="Healthy: each of three brokers has 2,000 topics loaded where its configuration says 3,500 at most.",
        specs=(cluster(_many(6_000, 48, 3), configuration={"loadBalancerBrokerMaxTopics": "3500"}),),
        why=NO_ROOM,
        twin_of=("too-many-topics-on-a-broker", "over-the-configured-ceiling", "long-failover-for-topics"),
    ),
    SimulatedFault(
        name="short-failover-for-delayed-messages",
        about="Healthy: 300,000 delayed messages of one subscription would be read anew by whoever takes it over.",
        specs=(cluster(_waits_for_long(300_000), configuration=IN_MEMORY),),
        why="hundreds of thousands of delayed messages take longer to write than the lab may run",
        twin_of=("long-failover-for-delayed-messages",),
    ),
    SimulatedFault(
        name="room-to-lose-a-broker",
        about="Healthy: three brokers on hosts of their own use 40 % of their CPUs.",
        specs=(cluster(usual=strained(cpu_percent=80.0)),),
        why="brokers of the lab share one host's CPUs",
        twin_of=("no-room-to-lose-a-broker",),
    ),
    SimulatedFault(
        name="isolated-on-two-brokers",
        about="Healthy: a namespace's isolation policy leaves it two brokers, and all of its bundles are there.",
        specs=(_isolated_with_room(),),
        why="setting a policy unloads at once what it matches: a real cluster is in this state for a moment only",
        twin_of=("isolated-on-one-broker", "nowhere-to-be"),
    ),
)
