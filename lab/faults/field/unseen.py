"""Twelve reports chosen by somebody who does not know the checks."""

from typing import Any

from lab.faults.fault import Expected, SimulatedFault
from lab.faults.field.bookies import quorums
from lab.faults.field.clients import Members, ago_ms, compacted, offloading, reader
from lab.faults.field.reported import reported
from lab.faults.simulated._clusters import EIGHT_GIB, GIB, at, busy_topic, cluster, loads, server, spread, strained
from lab.simulator import (
    BookieSpec,
    ClusterSpec,
    NamespaceSpec,
    ReplicatorSpec,
    SubscriptionSpec,
    TopicSpec,
    ZooKeeperSpec,
)
from lab.simulator.ranges import position

CHANGES = "__change_events"
STALLED = 2
SNAPSHOTS = "__transaction_buffer_snapshot"
READERS = tuple(f"reader-{0x4C1D0A7B32 + 0x1357BD91F * number:010x}" for number in range(9))


FIRST = {
    "repl-one-partition-stalled": "missed",
    "policy-topic-compaction-never-succeeds": "missed",
    "policy-readers-hit-subscription-limit": "missed",
    "txn-buffer-never-ready": "half",
    "backlog-on-two-dead-bookies": "found",
    "keyshared-new-consumer-behind-delay": "half",
    "slow-bookie-eats-direct-memory": "found",
    "reader-jumps-over-retained-history": "missed",
    "zookeeper-disk-too-small-for-topics": "found",
    "readers-only-topic-large-storage": "found",
    "offload-lost-the-race-with-trimming": "wrong",
    "hot-bundle-with-one-topic": "wrong",
}
"""Verdicts of the first run, on 2026-11-28, before anything was mended for these."""


def _unseen(name: str, address: str, about: str, right: str, *specs: ClusterSpec, **label: Any) -> SimulatedFault:
    return reported(name, address, about, right, *specs, unseen=FIRST[name], **label)


def _held(limit: int) -> dict[str, object]:
    quota = {"limit": limit, "limitSize": limit, "limitTime": -1, "policy": "producer_request_hold"}
    return {"backlog_quota_map": {"destination_storage": quota}}


def _persistence(ensemble: int, write: int, ack: int) -> dict[str, object]:
    kept = {"bookkeeperEnsemble": ensemble, "bookkeeperWriteQuorum": write, "bookkeeperAckQuorum": ack}
    return {"persistence": {**kept, "managedLedgerMaxMarkDeleteRate": 0.0}}


def _replicated(backlog: int) -> ClusterSpec:
    """Four partitions, of which the third sends nothing to the other cluster."""
    billing = SubscriptionSpec("billing", consumers=2, backlog=30, rate_out=5.0)
    events = tuple(
        TopicSpec(
            f"events-partition-{part}",
            producers=1,
            subscriptions=(billing,),
            message_bytes=1_000,
            rate_in=5.0,
            replicators=(
                ReplicatorSpec("west", backlog) if part == STALLED else ReplicatorSpec("west", 0, rate_out=5.0),
            ),
        )
        for part in range(4)
    )
    policies = {**_held(50 * GIB), "replication_clusters": ["east", "west"], "message_ttl_in_seconds": 0}
    return cluster(NamespaceSpec("pay/orders", topics=events, policies=policies), cluster="east")


def _policy_topic(backlog: int, failed_min: float) -> ClusterSpec:
    compactor = SubscriptionSpec("__compaction", kind="Exclusive", backlog=backlog)
    changes = TopicSpec(
        CHANGES,
        producers=1,
        subscriptions=(compactor, *(reader(name, rate_out=0.5) for name in READERS)),
        message_bytes=600,
        rate_in=0.5,
        told=(compacted(failed_min=failed_min),),
    )
    bids = NamespaceSpec("ads/bidding", bundles=9, topics=(changes, busy_topic("bids", 40)), owners=spread(9, 9))
    return cluster(bids, brokers=9, version="4.0.8")


def _policy_readers() -> ClusterSpec:
    compactor = SubscriptionSpec("__compaction", kind="None")
    changes = TopicSpec(CHANGES, subscriptions=(compactor, *(reader(name) for name in READERS)), storage_bytes=50_000)
    clicks = TopicSpec(
        "clicks",
        partitions=24,
        producers=2,
        subscriptions=(SubscriptionSpec("sink", consumers=2, backlog=10, rate_out=20.0),),
        storage_bytes=10_000,
        rate_in=20.0,
    )
    kept: dict[str, object] = {"retention_policies": {"retentionTimeInMinutes": 0, "retentionSizeInMB": 0}}
    return cluster(
        NamespaceSpec("shop/retail", bundles=12, topics=(changes, clicks), policies=kept, owners=spread(12, 12)),
        brokers=14,
        configuration={
            "topicLevelPoliciesEnabled": "true",
            "systemTopicEnabled": "true",
            "maxSubscriptionsPerTopic": "10",
        },
        version="2.9.3",
    )


def _never_ready(backlog: int) -> ClusterSpec:
    """Forty topics of each of three brokers; those of the second give nobody anything."""
    namespaces = []
    for number, name in enumerate(("shop/east", "shop/north", "shop/west")):
        stuck = number == 1
        waiting = backlog if stuck else 40
        clients: dict[str, Any] = {"consumers": 2, "new_consumers": 2, "backlog": waiting}
        clients |= {"rate_out": 0.0 if stuck else 100.0, "consumed_ms": 0 if stuck else ago_ms(0)}
        shared = SubscriptionSpec("billing", **clients)
        failover = SubscriptionSpec("audit", kind="Failover", **clients)
        orders = TopicSpec(
            "orders",
            partitions=40,
            producers=2,
            subscriptions=(shared, failover),
            storage_bytes=20_000_000,
            rate_in=100.0,
            new_clients_ago_s=27 * 60,
        )
        left = tuple(reader(each, backlog=25 if stuck and not place else 0) for place, each in enumerate(READERS[:3]))
        snapshots = TopicSpec(SNAPSHOTS, subscriptions=(*left, SubscriptionSpec("__compaction", kind="None")))
        namespaces.append(NamespaceSpec(name, topics=(orders, snapshots), owner=number))
    return ClusterSpec(
        hosts="distinct",
        namespaces=tuple(namespaces),
        loads=loads(3, strained(uptime_s=1_800.0)),
        configuration={"transactionCoordinatorEnabled": "true"},
    )


def _two_bookies_down(backlog: int) -> ClusterSpec:
    indexer = SubscriptionSpec("indexer", consumers=3, backlog=backlog)
    audit = SubscriptionSpec("audit", consumers=1, backlog=40, rate_out=500.0)
    lines = TopicSpec("lines", producers=5, subscriptions=(indexer, audit), message_bytes=500, rate_in=500.0)
    policies = _persistence(3, 2, 2)
    return cluster(
        NamespaceSpec("log/app", topics=(lines,), policies=policies, owner=1),
        broker_1=strained(uptime_s=1_500.0),
        bookies=4,
        configuration={"autoSkipNonRecoverableData": "true"},
    )


def _behind_a_delay(backlog: int) -> ClusterSpec:
    """Six partitions; consumers of the first that came last get nothing before what is older is acknowledged."""
    held_back = Members({f"order_sms-{number}": "5120:9100" for number in range(1, 8)})
    plain = SubscriptionSpec("plain", consumers=2, backlog=20, rate_out=99.3)
    stuck = SubscriptionSpec(
        "order_sms",
        kind="Key_Shared",
        consumers=8,
        new_consumers=8,
        backlog=backlog,
        delayed=136,
        told=(("consumersAfterMarkDeletePosition", held_back),),
    )
    well = SubscriptionSpec("order_sms", kind="Key_Shared", consumers=8, new_consumers=8, backlog=30, rate_out=99.3)
    coupons = tuple(
        TopicSpec(
            f"coupon-partition-{part}",
            producers=2,
            subscriptions=(well if part else stuck, plain),
            message_bytes=817,
            storage_bytes=max(28_423_651, backlog * 817),
            rate_in=99.3,
            new_clients_ago_s=13 * 60,
        )
        for part in range(6)
    )
    policies = {**_held(10 * GIB), "message_ttl_in_seconds": 0}
    return cluster(NamespaceSpec("infra/es-channel", topics=coupons, policies=policies), version="2.7.3")


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
        NamespaceSpec("iot/raw", topics=(metrics,), policies=_persistence(2, 2, 1), owner=0),
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


def _jumping(backlog: int, sent: int, expired: int) -> ClusterSpec:
    """A reader of ten months of changes, seven minutes after it connected, and six later."""
    passed = ago_ms(3) if expired else 0
    told = (("msgOutCounter", sent), ("totalMsgExpired", expired), ("lastExpireTimestamp", passed))
    back = SubscriptionSpec(
        "reader-4f1c0a9b2e",
        kind="Exclusive",
        consumers=1,
        new_consumers=1,
        backlog=backlog,
        rate_out=4.2,
        durable=False,
        told=told,
    )
    changes = TopicSpec(
        "changes-partition-0",
        subscriptions=(back,),
        message_bytes=100_000,
        backlog_bytes=0,
        storage_bytes=2_474_700_000,
        new_clients_ago_s=7 * 60,
        stored_ago_s=300 * 86_400,
        told=(("offloadedStorageSize", 2_400_000_000), ("lastOffloadSuccessTimeStamp", ago_ms(4_000))),
    )
    policies = offloading(
        GIB,
        offload_threshold_in_seconds=259_200,
        retention_policies={"retentionTimeInMinutes": 5_300_000, "retentionSizeInMB": -1},
        message_ttl_in_seconds=1_209_600,
    )
    return cluster(
        NamespaceSpec("ref/master", topics=(changes,), policies=policies),
        configuration={"messageExpiryCheckIntervalInMinutes": "5"},
        version="4.0.13",
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


def _readers_only(*readers: SubscriptionSpec) -> ClusterSpec:
    ticks = TopicSpec(
        "ticks", producers=1, subscriptions=readers, message_bytes=95, storage_bytes=68_700_000_000, rate_in=1_200.0
    )
    kept = {"retention_policies": {"retentionTimeInMinutes": 10_080, "retentionSizeInMB": -1}}
    return cluster(
        NamespaceSpec("quotes/feed", topics=(ticks,), policies={**_held(10 * GIB), **kept}),
        configuration={"brokerDeleteInactiveTopicsEnabled": "false"},
    )


TAIL = reader("reader-19ab44c0de", rate_out=1_200.0)


def _lost_the_race(failed_min: float) -> ClusterSpec:
    es = SubscriptionSpec("es", consumers=4, backlog=300, unacked=120, rate_out=9_000.0)
    devices = TopicSpec(
        "app-devices",
        producers=4,
        subscriptions=(es,),
        message_bytes=1_000,
        storage_bytes=2_500_000_000,
        rate_in=9_000.0,
        told=(("lastOffloadFailureTimeStamp", ago_ms(failed_min)),),
    )
    policies = offloading(retention_policies={"retentionTimeInMinutes": 0, "retentionSizeInMB": 0})
    return cluster(NamespaceSpec("public/fluentbit", topics=(devices,), policies=policies))


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
    _unseen(
        "repl-one-partition-stalled",
        "apache/pulsar#25097",
        "One partition of four says that it is connected to west, and sends nothing; 1,480,000 entries wait, and more.",
        "Replication of pay/orders/events-partition-2 to west stands still though connected: see that west takes"
        " writes, then unload this one partition.",
        _replicated(1_480_000),
        _replicated(1_483_000),
        expected=(Expected("replication-stopped", "pay/orders.*west", "events-partition-2"),),
        never=(r"(?i)(delete|clear|skip) .*pulsar\.repl", r"(?i)(TTL|quota) of pay/orders", r"(?i)move .*pay/orders"),
    ),
    _unseen(
        "policy-topic-compaction-never-succeeds",
        "apache/pulsar#25279",
        "Compaction of a namespace's topic of policies fails every few minutes, and never succeeded; 6,500 wait.",
        "Compaction of ads/bidding/__change_events never succeeds, by a fault of this version: upgrade, and set topics'"
        " policies less often.",
        _policy_topic(6_200, 14),
        _policy_topic(6_500, 4),
        expected=(Expected("compaction-failing", f"ads/bidding(/{CHANGES})?"),),
        never=(r"(?i)delete .*(__compaction|__change_events)", r"(?i)threshold of ads/bidding", r"(?i)abandon"),
    ),
    _unseen(
        "policy-readers-hit-subscription-limit",
        "apache/pulsar#18364",
        "A namespace's topic of policies has the ten subscriptions that a topic may have; 12 of 14 brokers need one"
        " each. Policies of single topics are left out.",
        "maxSubscriptionsPerTopic = 10 keeps three brokers from the policies of shop/retail: raise it or set 0, then"
        " unload its bundles there.",
        _policy_readers(),
        _policy_readers(),
        expected=(Expected("limit-reached", f"shop/retail|{CHANGES}", f"maxSubscriptionsPerTopic|{CHANGES}"),),
        never=(r"(?i)delete .*(reader-|__change_events)", r"(?i)abandon"),
    ),
    _unseen(
        "txn-buffer-never-ready",
        "apache/pulsar#14889",
        "For half an hour all 80 subscriptions of one broker of three have got nothing, though their consumers ask."
        " The state of its transaction buffers cannot be made.",
        "Transaction buffers of the second broker never became ready: unload the bundle of the topic of snapshots,"
        " then a topic. One finding for the broker, not one for each subscription.",
        _never_ready(120_000),
        _never_ready(180_000),
        expected=(Expected("subscription-stalled", r"shop/north|^127\.0\.0\.2:", r"127\.0\.0\.2|(?i:all .*broker)"),),
        never=(r"(?i)delete subscription", r"(?i)too slow", r"(?i)restart all"),
    ),
    _unseen(
        "backlog-on-two-dead-bookies",
        "apache/pulsar#9288",
        "A subscription has stood still for 50 minutes, one at the tail of the same topic is well, and four of six"
        " bookies are listed. Which bookies have what it reads cannot be made.",
        "Subscription indexer waits for entries whose two copies are on bookies that are down: bring one of them back."
        " Skip nothing.",
        _two_bookies_down(1_200_000),
        _two_bookies_down(1_500_000),
        servers=((BookieSpec(disks_percent=(45.0,)),) * 4,),
        expected=(Expected("subscription-stalled", "^persistent://log/app/lines subscription indexer$"),),
        never=(r"(?i)(delete|reset|clear) .*indexer", r"(?i)too slow", r"(?i)decommission"),
    ),
    _unseen(
        "keyshared-new-consumer-behind-delay",
        "apache/pulsar#12208",
        "All consumers of a Key_Shared subscription connected a quarter of an hour ago; seven of eight wait for what is"
        " older, 136 delayed messages among it, and nothing is delivered.",
        "New consumers of order_sms are held back behind delayed messages, by the order that Key_Shared keeps: start"
        " all consumers together, and send delayed messages to another topic.",
        _behind_a_delay(31_594),
        _behind_a_delay(91_200),
        expected=(
            Expected(
                "subscription-stalled",
                "^persistent://infra/es-channel/coupon-partition-0 subscription order_sms$",
                r"(?i)key_shared|joined|held back|5120:9100",
            ),
        ),
        never=(r"(?i)delete .*order_sms", r"(?i)(TTL|quota) of infra", r"(?i)too slow", "(?i)more consumers"),
    ),
    _unseen(
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
    _unseen(
        "reader-jumps-over-retained-history",
        "apache/pulsar#26504",
        "A reader of ten months of history is carried over 20,100 messages by a time to live of two weeks.",
        "The time to live of ref/master also moves readers on, over history that is kept for ever: none, or one longer"
        " than the history.",
        _jumping(21_600, 3_100, 0),
        _jumping(40, 4_600, 20_100),
        expected=(Expected("ttl-before-read", "ref/master", "(?i)reader"),),
        never=(r"(?i)retention of ref/master", r"(?i)offload.* fail", "autoSkipNonRecoverableData"),
        minutes_apart=6,
    ),
    _unseen(
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
    _unseen(
        "readers-only-topic-large-storage",
        "apache/pulsar#8204",
        "A topic that only readers read stores seven days of retention, six times its quota; one reader is 37,000,000"
        " behind and catches up.",
        "Nothing: readers have no backlog that counts, and what is stored is the retention.",
        _readers_only(reader("reader-5d0e11b3aa", rate_out=1_200.0)),
        _readers_only(TAIL, reader("reader-77e1f00a53", backlog=41_000_000, rate_out=8_000.0)),
        _readers_only(TAIL, reader("reader-77e1f00a53", backlog=37_000_000, rate_out=8_000.0)),
        servers=((BookieSpec(disks_percent=(55.0,)),) * 3,),
        never=(
            r"(?i)delete .*reader-",
            r"(?i)(retention|quota|TTL) of quotes/feed",
            r"reader-77e1f00a53.*(behind|backlog|lag)",
        ),
    ),
    _unseen(
        "offload-lost-the-race-with-trimming",
        "apache/pulsar#13219",
        "Without retention, ledgers are consumed and deleted before they are offloaded: the last offload failed a few"
        " minutes ago, and none succeeded.",
        "Nothing: each ledger was consumed by all before it was deleted. Whoever wants an archive needs retention.",
        _lost_the_race(11),
        _lost_the_race(3),
        never=(r"(?i)data loss|lost data", "autoSkipNonRecoverableData", r"(?i)retention of public/fluentbit"),
    ),
    _unseen(
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
