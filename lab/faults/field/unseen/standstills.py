"""Reports about subscriptions that get nothing though their consumers ask."""

from typing import Any

from lab.faults.fault import Expected
from lab.faults.field.clients import Members, ago_ms, reader
from lab.faults.field.unseen.first import READERS, persistence, unseen
from lab.faults.simulated._clusters import GIB, cluster, held, loads, strained
from lab.simulator import (
    BookieSpec,
    ClusterSpec,
    NamespaceSpec,
    SubscriptionSpec,
    TopicSpec,
)

SNAPSHOTS = "__transaction_buffer_snapshot"


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
    policies = persistence(3, 2, 2)
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
    policies = {**held(10 * GIB), "message_ttl_in_seconds": 0}
    return cluster(NamespaceSpec("infra/es-channel", topics=coupons, policies=policies), version="2.7.3")


FAULTS = (
    unseen(
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
    unseen(
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
    unseen(
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
)
