"""Reports about a replicator that stands still, and about topics of topic policies."""

from lab.faults.fault import Expected
from lab.faults.field.clients import compacted, reader
from lab.faults.field.unseen.first import READERS, unseen
from lab.faults.simulated._clusters import GIB, busy_topic, cluster, held, retained, spread
from lab.simulator import (
    ClusterSpec,
    NamespaceSpec,
    ReplicatorSpec,
    SubscriptionSpec,
    TopicSpec,
)

CHANGES = "__change_events"


STALLED = 2


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
    policies = {**held(50 * GIB), "replication_clusters": ["east", "west"], "message_ttl_in_seconds": 0}
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
    kept = retained(0, 0)
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


FAULTS = (
    unseen(
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
    unseen(
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
    unseen(
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
)
