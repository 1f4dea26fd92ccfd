"""Reports about what brokers, bookies and ZooKeeper carry."""

from typing import Any

from lab.faults.fault import Expected
from lab.faults.field.bookies import quorums
from lab.faults.field.unseen.first import persistence, unseen
from lab.faults.simulated._clusters import EIGHT_GIB, at, busy_topic, cluster, server, spread, strained
from lab.simulator import (
    BookieSpec,
    ClusterSpec,
    NamespaceSpec,
    SubscriptionSpec,
    TopicSpec,
    ZooKeeperSpec,
)
from lab.simulator.ranges import position


def _eaten(direct_mb: float) -> ClusterSpec:
    """90 MB/s to a topic of the first of two brokers, whose direct memory fills up."""
    store = SubscriptionSpec("store", consumers=4, backlog=50, rate_out=9_000.0)
    metrics = TopicSpec(
        "metrics",
        producers=10,
        subscriptions=(store,),
        message_bytes=10_000,
        storage_bytes=200_000_000,
        rate_in=9_000.0,
    )
    usual = strained(direct_limit_mb=4_096.0, direct_mb=800.0, heap_mb=3_277.0, cpu_percent=30.0)
    return cluster(
        NamespaceSpec("iot/raw", topics=(metrics,), policies=persistence(2, 2, 1), owner=0),
        brokers=2,
        bookies=3,
        usual=usual,
        broker_0=strained(direct_limit_mb=4_096.0, direct_mb=direct_mb, heap_mb=3_277.0, cpu_percent=70.0),
        configuration={
            **quorums(2, 2, 1),
            "maxMessagePublishBufferSizeInMB": "512",
            "managedLedgerCacheSizeMB": "512",
        },
    )


def _keepers(look: int) -> tuple[ZooKeeperSpec, ...]:
    """Two servers with 1,950,000 nodes, the first of which takes 180 ms for all that it is asked."""
    znodes = 1_950_000 + 135 * look
    reads, updates = 40_000 + 8_000 * look, 20_000 + 4_000 * look
    slow = ZooKeeperSpec(
        reads=reads,
        reading_ms=reads * 180.0,
        updates=updates,
        updating_ms=updates * 180.0,
        outstanding=900,
        znodes=znodes,
        heap_limit_mb=4_096.0,
        heap_mb=1_800.0,
    )
    quick = ZooKeeperSpec(
        reads=reads,
        reading_ms=reads / 2,
        updates=updates,
        updating_ms=updates * 4.0,
        znodes=znodes,
        heap_limit_mb=4_096.0,
    )
    return slow, quick


def _too_many_topics() -> ClusterSpec:
    calls = TopicSpec("call", partitions=600, storage_bytes=20_000)
    return cluster(
        NamespaceSpec("voice/wav", bundles=64, topics=(calls,), owners=spread(64, 3)),
        configuration={"brokerDeleteInactiveTopicsEnabled": "false"},
        version="2.6.1",
    )


TELEMETRY = "game/telemetry"


ITS_BUNDLE = position(f"persistent://{TELEMETRY}/all") >> 28
"""Where the hash of its name puts the topic, of 16 bundles."""


STAGES = tuple(
    name
    for name in (f"stage-{number}" for number in range(60))
    if position(f"persistent://{TELEMETRY}/{name}") >> 28 != ITS_BUNDLE
)


def _one_topic_of_a_bundle() -> ClusterSpec:
    """The second of four brokers has the busy topic, the others much else."""
    sink = SubscriptionSpec("sink", consumers=30, backlog=1_900, unacked=1_000, rate_out=41_000.0)
    busy = TopicSpec("all", producers=60, subscriptions=(sink,), message_bytes=1_341, rate_in=41_000.0)
    small = tuple(busy_topic(name, 0, rate=50.0) for name in STAGES)
    owners = tuple(1 if number == ITS_BUNDLE else (0, 2, 3)[number % 3] for number in range(16))
    others = NamespaceSpec(
        "game/chat",
        bundles=60,
        topics=(busy_topic("rooms", 192, rate=1_094.0),),
        owners=tuple((0, 2, 3)[number % 3] for number in range(60)),
    )
    percent = {"broker_0": 30.0, "broker_1": 58.0, "broker_2": 34.0, "broker_3": 38.0}
    carried: dict[str, Any] = {
        name: strained(cpu_percent=2 * cpu, direct_mb=3_277.0 if name == "broker_1" else 2_400.0)
        for name, cpu in percent.items()
    }
    return cluster(
        NamespaceSpec(TELEMETRY, bundles=16, topics=(busy, *small), owners=owners),
        others,
        brokers=4,
        usual=EIGHT_GIB,
        configuration={"loadBalancerAutoBundleSplitEnabled": "true", "managedLedgerCacheSizeMB": "1024"},
        **carried,
    )


FAULTS = (
    unseen(
        "slow-bookie-eats-direct-memory",
        "apache/pulsar#14861",
        "Direct memory of a broker grows by 115 MB a minute to 88 % of its limit, with quorums of 2/2/1; how slow the"
        " third bookie is cannot be made.",
        "The first broker is out of direct memory in minutes: it holds copies for a slow bookie, as one answer is"
        " enough. Take that bookie out of the write path.",
        _eaten(2_450.0),
        _eaten(3_600.0),
        servers=((BookieSpec(),) * 3,),
        expected=(Expected("direct-memory-pressure", at(0)),),
        allowed={
            "broker-load-skew": "all that is written heavily is on that broker",
            "hot-bundle": "and in a single topic of it",
        },
        never=(r"(?i)move .*iot/raw", r"(?i)split .*iot/raw", r"(?i)raise .*PublishBuffer"),
    ),
    unseen(
        "zookeeper-disk-too-small-for-topics",
        "apache/pulsar#10891",
        "A ZooKeeper server of 1,950,000 nodes takes 180 ms for each request, and 900 wait; 600 of 298,000 idle topics"
        " are made. The third server, whose disk is full, is not there to be asked.",
        "ZooKeeper holds too many nodes of topics that are never deleted: make room on its disks first, purge old"
        " snapshots, then let idle topics go slowly.",
        _too_many_topics(),
        _too_many_topics(),
        servers=tuple(_keepers(look) for look in range(2)),
        expected=(Expected("zookeeper-slow", server(0)),),
        never=(r"(?i)(move|split|delete) .*voice/wav", r"(?i)restart .*broker"),
    ),
    unseen(
        "hot-bundle-with-one-topic",
        "apache/pulsar#3419",
        "One topic makes its bundle carry 41,000 messages/s, over what brokers split at; its broker's CPU is at 58 %."
        " The hash of its name puts it in another bundle than the report's.",
        "Nothing: a split cannot share out one topic, and no broker has too much.",
        _one_topic_of_a_bundle(),
        _one_topic_of_a_bundle(),
        never=(rf"(?i)split .*{TELEMETRY}", rf"(?i)move .*{TELEMETRY}"),
    ),
)
