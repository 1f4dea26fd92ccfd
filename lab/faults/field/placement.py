"""Reports about transactions, and about where bundles are and may be."""

from typing import Any

from lab.faults.fault import Expected
from lab.faults.field.clients import ago_ms, reader
from lab.faults.field.reported import moves, reported
from lab.faults.simulated._clusters import EIGHT_GIB, at, cluster, loads, spread, strained
from lab.simulator import ClusterSpec, CoordinatorSpec, LoadSpec, NamespaceSpec, SubscriptionSpec, TopicSpec

SNAPSHOTS = "__transaction_buffer_snapshot"
STUCK_PART, STUCK_COORDINATOR = 4, 10


def _recovering() -> ClusterSpec:
    """Ten topics, the fifth of which has lost its producers, and gives its consumers nothing."""
    worker = SubscriptionSpec("worker", consumers=2, backlog=10, rate_out=20.0, consumed_ms=ago_ms(0))
    well = (
        TopicSpec(f"p-{part}", producers=3, subscriptions=(worker,), rate_in=20.0)
        for part in range(10)
        if part != STUCK_PART
    )
    stuck = TopicSpec(
        f"p-{STUCK_PART}",
        subscriptions=(SubscriptionSpec("worker", consumers=2, backlog=12_000, consumed_ms=ago_ms(45)),),
    )
    snapshots = TopicSpec(SNAPSHOTS, producers=3, subscriptions=(reader("reader-3c55d01e9f", backlog=40),))
    return cluster(NamespaceSpec("t/ns", topics=(*well, stuck, snapshots)), version="2.9.3")


def _never_ended(look: int) -> ClusterSpec:
    """Coordinator 10 opens nothing and has seven open; all others go on."""
    backlog = (100, 1_333_400, 2_666_700, 4_000_000)[look]
    booking = SubscriptionSpec("booking", consumers=3, backlog=backlog, consumed_ms=ago_ms(185))
    moves = TopicSpec(
        "moves",
        producers=4,
        subscriptions=(booking,),
        message_bytes=200,
        rate_in=370.0,
        told=(("ongoingTxnCount", 7), ("committedTxnCount", 40_000 + 20_000 * look)),
    )
    others = {
        number: CoordinatorSpec(opened=10_000 + 1_300 * look, still_open=3)
        for number in range(16)
        if number != STUCK_COORDINATOR
    }
    return cluster(
        NamespaceSpec("bank/ledger", topics=(moves,)),
        transactions={**others, STUCK_COORDINATOR: CoordinatorSpec(opened=326_034, still_open=7)},
        version="2.9.4",
    )


def _policy(namespace: str, primary: list[str], secondary: list[str]) -> dict[str, object]:
    failover = {"policy_type": "min_available", "parameters": {"min_limit": "1", "usage_threshold": "80"}}
    return {"namespaces": [namespace], "primary": primary, "secondary": secondary, "auto_failover_policy": failover}


def _assigned_before() -> ClusterSpec:
    """Three brokers, two of which are a namespace's; the one between them still has its second bundle."""
    calls = TopicSpec(
        "calls",
        partitions=12,
        producers=1,
        subscriptions=(SubscriptionSpec("app", consumers=1, backlog=5, rate_out=5.0),),
        rate_in=5.0,
    )
    return ClusterSpec(
        hosts="distinct",
        tc_loaded=False,
        namespaces=(NamespaceSpec("zcola_qos/test", topics=(calls,), owners=(0, 1, 0, 0)),),
        loads=(EIGHT_GIB,) * 3,
        isolation_policies={
            "policy-public_qos": _policy("zcola_qos/test", [r"127\.0\.0\.1", r"127\.0\.0\.3"], []),
        },
        version="2.9.2",
    )


def _cut_off(*, isolated: bool) -> ClusterSpec:
    """Twelve topics, which nobody owns once the policy is there."""
    store = SubscriptionSpec("store", consumers=1, backlog=5, rate_out=10.0)
    isly = TopicSpec("isly", partitions=12, producers=2, subscriptions=(store,), storage_bytes=2_000_000, rate_in=10.0)
    policies = {"ly": _policy("app/ly", ["127.0.0.1:8080"], ["127.0.0.2:8080"])}
    return cluster(
        NamespaceSpec("app/ly", topics=(isly,), loaded=not isolated),
        isolation_policies=policies if isolated else None,
        version="3.0.0",
    )


def _in_circles() -> ClusterSpec:
    """Two brokers of 10 MB/s each; the first has the topics with transactions, and eight times the CPU."""
    tail = SubscriptionSpec("sub", kind="Exclusive", consumers=1, backlog=50, rate_out=50.0)

    def topic(name: str, **more: Any) -> TopicSpec:
        return TopicSpec(
            name, partitions=200, producers=1, subscriptions=(tail,), message_bytes=1_024, rate_in=50.0, **more
        )

    ongoing = topic("moves", told=(("ongoingTxnCount", 2), ("committedTxnCount", 40_000)))
    busy = {"cpu_limit_percent": 400.0, "network_percent": 4.0}
    return cluster(
        NamespaceSpec("bank/txn", bundles=32, topics=(ongoing,), owner=0),
        NamespaceSpec("bank/plain", bundles=32, topics=(topic("moves"),), owner=1),
        brokers=2,
        broker_0=strained(cpu_percent=310.0, **busy),
        broker_1=strained(cpu_percent=40.0, **busy),
        transactions={number: CoordinatorSpec(opened=90_000, still_open=25) for number in range(16)},
        version="3.0.5",
    )


MUSIC = "MusicUserService/MusicUserTopicService"
MUSIC_TOPICS = (
    "artists",
    "badges",
    "badges-log",
    "friends-log",
    "gifts-events",
    "history",
    "lives-v2",
    "ratings-events",
    "rooms-events",
    "votes-v2",
)
HOT = {1: 2, 5: 1, 8: 1, 13: 1, 26: 1, 33: 1, 51: 3, 57: 1, 58: 2, 62: 1, 65: 1, 68: 2, 78: 1, 86: 2, 109: 2}
HOT |= {114: 1, 117: 1, 118: 2, 122: 1, 127: 3}
"""Partitions by the number of their bundle: those 30 are in 20 of 128."""


def _dealt() -> tuple[int, ...]:
    """Bundles given to three brokers so that each has ten partitions."""
    owners, held = [*spread(128, 3)], [0, 0, 0]
    for bundle in sorted(HOT, key=lambda each: -HOT[each]):
        owners[bundle] = held.index(min(held))
        held[owners[bundle]] += HOT[bundle]
    return tuple(owners)


def _at_the_ceiling() -> ClusterSpec:
    sink = SubscriptionSpec("sink", consumers=4, backlog=300, unacked=200, rate_out=30_000.0)
    topics = tuple(
        TopicSpec(name, partitions=3, producers=4, subscriptions=(sink,), rate_in=30_000.0) for name in MUSIC_TOPICS
    )
    return cluster(
        NamespaceSpec(MUSIC, bundles=128, topics=topics, owners=_dealt()),
        usual=strained(cpu_percent=60.0),
        broker_0=strained(cpu_percent=50.0),
        broker_2=strained(cpu_percent=70.0),
        configuration={
            "loadBalancerNamespaceMaximumBundles": "128",
            "loadBalancerAutoBundleSplitEnabled": "true",
            "loadBalancerNamespaceBundleMaxMsgRate": "30000",
            "managedLedgerCacheSizeMB": "1024",
        },
    )


def _hardly_any_traffic() -> ClusterSpec:
    """A namespace for each broker, with its messages a second and their size."""
    rates = {0: (320.0, 969), 1: (90.0, 1_000), 2: (15.0, 800)}
    namespaces = tuple(
        NamespaceSpec(
            f"shop/part-{number}",
            topics=(
                TopicSpec(
                    "log",
                    partitions=10,
                    producers=1,
                    subscriptions=(SubscriptionSpec("app", consumers=1, backlog=3, rate_out=rate / 10),),
                    message_bytes=size,
                    rate_in=rate / 10,
                ),
            ),
            owner=number,
        )
        for number, (rate, size) in rates.items()
    )
    return ClusterSpec(
        hosts="distinct",
        namespaces=namespaces,
        loads=loads(3, _quiet(6), broker_1=_quiet(4), broker_2=_quiet(3)),
        configuration={
            "loadBalancerSheddingEnabled": "true",
            "loadBalancerLoadSheddingStrategy": "org.apache.pulsar.broker.loadbalance.impl.UniformLoadShedder",
            "minUnloadMessage": "1000",
            "minUnloadMessageThroughput": "1048576",
            "loadBalancerMsgRateDifferenceShedderThreshold": "50.0",
        },
    )


def _quiet(percent: float) -> LoadSpec:
    return strained(cpu_percent=percent * 2)  # of two processors


FAULTS = (
    reported(
        "stuck-in-transaction-recovery",
        "apache/pulsar#17040",
        "For 40 minutes one topic of ten has had no producer, and its consumers, who ask for more, get nothing of"
        " 12,000 messages. The state of its transaction buffer cannot be made.",
        "The transaction buffer of t/ns/p-4 never became ready. Unload this one topic; if that does not help, look at"
        " the topic of snapshots.",
        *(_recovering() for _ in range(5)),
        expected=(Expected("subscription-stalled", "^persistent://t/ns/p-4 ", r"127\.0\.0\.\d"),),
        never=(rf"(?i)delete .*{SNAPSHOTS}", r"(?i)move .*pulsar/system", r"(?i)too slow"),
    ),
    reported(
        "transactions-that-never-end",
        "apache/pulsar#19200",
        "For three hours seven transactions of coordinator 10 have stayed open, and consumers of a topic with as many"
        " open get nothing of 4,000,000 messages.",
        "Seven transactions of coordinator 10 should have been aborted. Unload its bundle or abort them, before the"
        " topic itself is moved.",
        *(_never_ended(look) for look in range(4)),
        expected=(
            Expected("transactions-open", evidence=r"\b10\b"),
            Expected("subscription-stalled", "^persistent://bank/ledger/moves "),
        ),
        allowed={"backlog-growing": "it does, by all that is published"},
        never=(r"(?i)move .*bank/ledger", r"(?i)too slow", r"(?i)delete .*booking"),
        minutes_apart=60,
    ),
    reported(
        "isolation-set-after-assignment",
        "apache/pulsar#14429",
        "Of four bundles of an isolated namespace one is with the broker that its policy leaves out.",
        "Unload this one bundle: it was assigned before the policy was set.",
        _assigned_before(),
        expected=(
            Expected("cluster-placement", r"zcola_qos/test|127\.0\.0\.2", r"0x40000000_0x80000000|zcola_qos/test"),
            Expected("cluster-placement"),  # the policy leaves all other namespaces a single broker, which is so
        ),
        never=(r"(?i)move .*zcola_qos/test.* to 127\.0\.0\.2", r"(?i)unload all"),
    ),
    reported(
        "isolation-that-matches-nobody",
        "apache/pulsar#20886",
        "A policy names a namespace's brokers with a port, which matches none; its 12 topics had clients a day ago.",
        "The namespace is cut off, as its policy matches no broker: write the hosts without a port.",
        _cut_off(isolated=False),
        _cut_off(isolated=True),
        _cut_off(isolated=True),
        expected=(Expected("cluster-placement", "app/ly", r"(?i)broker|polic"),),
        allowed={"bundle-without-owner": "nobody owns its bundles, for that reason"},
        never=(r"(?i)move .*app/ly", r"(?i)restart .*broker"),
        minutes_apart=720,
    ),
    reported(
        "reading-in-circles",
        "apache/pulsar#22943",
        "Of two brokers with 10 MB/s each, one has 77 % of its CPU in use, the other 10 %; all that is published to the"
        " first is in transactions, with consumers at the tail.",
        "Its CPU is not explained by its traffic: consumers at the tail of topics with open transactions have it read"
        " in circles. Upgrade to a version with #23189, or end transactions sooner; moves carry the load on.",
        *(_in_circles(),) * 3,
        expected=(Expected("transactions-open", at(0), "bank/txn"),),
        allowed={"cluster-placement": "one of two brokers could not carry all, with so much CPU in use"},
        never=(moves("bank/txn"), moves("bank/plain"), r"(?i)collection", r"(?i)restart .*broker"),
    ),
    reported(
        "split-forbidden-by-the-ceiling",
        "apache/pulsar#9484",
        "A namespace has as many bundles as it may; 20 of 128 carry 30,000 to 90,000 messages/s each, 45,000 on"
        " average, and all brokers carry the same.",
        "Nothing but a remark: the load is even, and no split is needed.",
        _at_the_ceiling(),
        never=(rf"(?i)split .*{MUSIC}", rf"(?i)move .*{MUSIC}", r"(?i)raise .*MaximumBundles"),
    ),
    reported(
        "too-little-traffic-to-shed",
        "apache/pulsar#21299",
        "Three brokers get 320, 90 and 15 messages/s, and the shedder leaves that alone.",
        "Nothing: the difference is far below what is worth a move.",
        _hardly_any_traffic(),
        never=(r"(?i)move .*shop/", "minUnloadMessage"),
    ),
)
