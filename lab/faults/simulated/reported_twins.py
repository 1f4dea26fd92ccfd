"""Clusters that look like what was reported of quotas, offloading, storage, compaction and limits, and are well."""

from lab.faults.fault import SimulatedFault
from lab.faults.field.clients import ago_ms, compacted, compaction, offloading, reader
from lab.faults.simulated._clusters import DAY_S, GIB, cluster, held, retained
from lab.simulator import ClusterSpec, NamespaceSpec, SubscriptionSpec, TopicSpec

CHANGES = "__change_events"
WHY = "the twin of a reported cluster, which is made up as well"


def _app(rate: float) -> SubscriptionSpec:
    """An application that consumes what comes in."""
    return SubscriptionSpec("app", consumers=2, backlog=25, rate_out=rate, consumed_ms=ago_ms(0))


def _kept(days: int) -> dict[str, object]:
    """Retention of a namespace; 0: none, under 0: for ever."""
    minutes = days * DAY_S // 60 if days > 0 else days
    return retained(minutes, -1 if days else 0)


def _compacted_before_its_quota() -> ClusterSpec:
    """900 MB wait for compaction, of 1 GiB at which it begins, under a quota of 10 GiB."""
    orders = TopicSpec(
        "orders",
        producers=4,
        subscriptions=(_app(50.0), compaction(900_000)),
        message_bytes=1_000,
        rate_in=50.0,
        told=(compacted(succeeded_min=300),),
    )
    policies = {**held(10 * GIB), "compaction_threshold": GIB}
    return cluster(NamespaceSpec("shop/geo", topics=(orders,), policies=policies))


def _offloaded(**policies: object) -> ClusterSpec:
    """3 TiB that are consumed and kept for ever, most of it offloaded; the last failure is older than the success."""
    told = (
        ("offloadedStorageSize", 140 * GIB),
        ("lastOffloadLedgerId", 6_197_907),
        ("lastOffloadSuccessTimeStamp", ago_ms(60)),
        ("lastOffloadFailureTimeStamp", ago_ms(175)),
    )
    sales = TopicSpec(
        "sales",
        partitions=20,
        producers=2,
        subscriptions=(_app(100.0),),
        storage_bytes=150 * GIB,
        rate_in=100.0,
        stored_ago_s=30 * DAY_S,
        told=told,
    )
    return cluster(
        NamespaceSpec("shop/history", topics=(sales,), policies={**_kept(-1), **policies}),
        configuration={} if "offload_policies" in policies else {"managedLedgerOffloadDriver": "aws-s3"},
    )


def _retained(closed_days: int, days: int) -> ClusterSpec:
    """Ten partitions of 100 GiB that are consumed, closed and kept so long."""
    scans = TopicSpec(
        "scans",
        partitions=10,
        producers=1,
        subscriptions=(_app(5.0),),
        message_bytes=100_000,
        storage_bytes=100 * GIB,
        rate_in=5.0,
        stored_ago_s=closed_days * DAY_S,
    )
    return cluster(NamespaceSpec("shop/archive", topics=(scans,), policies=_kept(days)))


def _deduplicated() -> ClusterSpec:
    """The cursor of deduplication is 900 entries behind, less than there are between two of its snapshots."""
    orders = TopicSpec(
        "orders",
        producers=2,
        subscriptions=(_app(250.0),),
        message_bytes=1_000,
        storage_bytes=43_000_000_000,
        rate_in=250.0,
        dedup_behind=900,
    )
    policies: dict[str, object] = {**_kept(0), "deduplicationEnabled": True}
    return cluster(NamespaceSpec("shop/exact", topics=(orders,), policies=policies))


def _compacted_after_a_failure() -> ClusterSpec:
    """A topic of 70 MB to compact, and a topic of policies, whose compactions failed once and succeeded since."""
    since = (compacted(failed_min=12, succeeded_min=2),)
    devices = TopicSpec(
        "devices",
        producers=4,
        subscriptions=(compaction(20_000), reader("reader-0b7d2e4411", rate_out=66.7)),
        message_bytes=3_500,
        rate_in=66.7,
        told=since,
    )
    changes = TopicSpec(
        CHANGES,
        producers=1,
        subscriptions=(compaction(1_500), reader("reader-4c1d0a7b32", rate_out=0.5)),
        message_bytes=600,
        rate_in=0.5,
        told=since,
    )
    policies: dict[str, object] = {"compaction_threshold": 104_857_600}
    return cluster(NamespaceSpec("iot/state", topics=(devices, changes), policies=policies))


def _limits(**policies: object) -> NamespaceSpec:
    """One client less than each limit, and a rate that is not reached; brokers' readers of policies among them."""
    readers = tuple(reader(f"reader-{0x3FA91C + number:x}") for number in range(8))
    changes = TopicSpec(CHANGES, subscriptions=(*readers, compaction()), message_bytes=700, storage_bytes=70_000)
    tickets = TopicSpec(
        "tickets",
        partitions=12,
        producers=3,
        subscriptions=(SubscriptionSpec("sink", consumers=3, backlog=2, rate_out=9.0, consumed_ms=ago_ms(0)),),
        rate_in=9.0,
        told=(("publishRateLimitedTimes", 0),),
    )
    return NamespaceSpec("shop/retail", topics=(changes, tickets), policies=policies)


PUBLISHING = {"publishThrottlingRateInMsg": 10, "publishThrottlingRateInByte": -1}


def _limited_for_each() -> ClusterSpec:
    limit = {"publishThrottlingRateInMsg": 900, "publishThrottlingRateInByte": 0}
    policies: dict[str, object] = {
        "publishMaxMessageRate": {"standalone": limit, "west": limit},
        "replication_clusters": ["standalone", "west"],
    }
    topic = TopicSpec("t", producers=3, subscriptions=(_app(50.0),), rate_in=50.0)
    return cluster(NamespaceSpec("t/ns", topics=(topic,), policies=policies), cluster="standalone")


FAULTS = (
    SimulatedFault(
        name="publish-limit-for-each-cluster",
        about="Healthy: a replicated namespace has a publish limit for each of its two clusters.",
        specs=(_limited_for_each(),),
        why=WHY,
        twin_of=("field-publish-limit-for-another-cluster",),
    ),
    SimulatedFault(
        name="compacted-before-its-quota-is-full",
        about="Healthy: a topic is compacted from 1 GiB on, and its quota is 10 GiB.",
        specs=(_compacted_before_its_quota(),),
        why=WHY,
        twin_of=("field-quota-full-of-what-is-not-compacted",),
    ),
    SimulatedFault(
        name="offloading-with-a-driver",
        about="Healthy: a namespace has an offload threshold, brokers have a driver, and topics show offloaded bytes.",
        specs=(_offloaded(offload_threshold=10 * GIB),),
        why=WHY,
        twin_of=("field-offloading-without-a-driver",),
    ),
    SimulatedFault(
        name="offloading-that-failed-once",
        about="Healthy: an offload failed three hours ago, and one succeeded since.",
        specs=(_offloaded(**offloading(10 * GIB)),),
        why=WHY,
        twin_of=("field-offloaded-and-gone",),
    ),
    SimulatedFault(
        name="stored-as-retention-has-it",
        about="Healthy: ten partitions store what was closed three days ago and consumed; a week is retained.",
        specs=(_retained(closed_days=3, days=7),),
        why=WHY,
        twin_of=("field-stored-though-nothing-keeps-it",),
    ),
    SimulatedFault(
        name="deduplication-that-keeps-up",
        about="Healthy: deduplication is on, and its cursor is 900 entries behind; 43 GB were closed this moment.",
        specs=(_deduplicated(),),
        why=WHY,
        twin_of=("field-dedup-cursor-left-behind",),
    ),
    SimulatedFault(
        name="compaction-that-failed-once",
        about="Healthy: compaction of a topic, and of a topic of policies, failed 12 minutes ago and succeeded since.",
        specs=(_compacted_after_a_failure(),),
        why=WHY,
        twin_of=("field-compaction-fails-in-silence", "field-policy-topic-compaction-never-succeeds"),
    ),
    SimulatedFault(
        name="one-below-each-limit-of-a-namespace",
        about="Healthy: a namespace has one client and one message a second less than its limits allow.",
        specs=(
            cluster(
                _limits(
                    max_producers_per_topic=4,
                    max_consumers_per_topic=9,
                    max_consumers_per_subscription=4,
                    max_subscriptions_per_topic=10,
                    publishMaxMessageRate={"local": PUBLISHING},
                )
            ),
        ),
        why=WHY,
        twin_of=(
            "field-change-events-topic-full-of-readers",
            "field-a-publish-rate-makes-producers-wait",
            "publishing-slow-at-a-publish-rate",
            "below-a-publish-rate",
        ),
    ),
    SimulatedFault(
        name="one-below-each-limit-of-the-brokers",
        about="Healthy: a topic of policies has nine of the ten subscriptions that brokers allow it.",
        specs=(
            cluster(
                _limits(),
                configuration={
                    "maxProducersPerTopic": "4",
                    "maxConsumersPerSubscription": "4",
                    "maxSubscriptionsPerTopic": "10",
                },
            ),
        ),
        why=WHY,
        twin_of=("field-policy-readers-hit-subscription-limit",),
    ),
)
