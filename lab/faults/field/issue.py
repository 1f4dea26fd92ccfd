"""Reports about cursors that are no application, offloading, and one bundle that carries everything."""

from typing import Any

from lab.faults.fault import Expected
from lab.faults.field.reported import reported
from lab.faults.simulated._clusters import DAY_S, GIB, cluster, held, retained
from lab.simulator import ClusterSpec, NamespaceSpec, ReplicatorSpec, SubscriptionSpec, TopicSpec

TOPIC = "^persistent://shop/geo/orders$"
NEAR, RISK = "backlog-near-quota", "producer-hold-restart-risk"
APP = SubscriptionSpec("app", consumers=2, backlog=0, rate_out=0.0)
NO_CURE = (r"subscription app with 0 entries", r"^.*: Delete subscription", r"Set .*quota")


FIREHOSE = cluster(
    NamespaceSpec(
        "shop/firehose",
        bundles=1,
        owners=(0,),
        topics=(
            TopicSpec(
                "events",
                partitions=24,
                producers=4,
                subscriptions=(SubscriptionSpec("sink", consumers=4, backlog=20, rate_out=1_000.0),),
                message_bytes=10_000,
                rate_in=1_000.0,
            ),
        ),
    )
)
"""All of a namespace's 24 partitions are in its only bundle."""


def _full(*more: SubscriptionSpec, policies: dict[str, object] | None = None, **topic: Any) -> ClusterSpec:
    """12 GiB of backlog in a topic whose application has consumed everything; its producers are shut out."""
    orders = TopicSpec(
        "orders",
        subscriptions=(APP, *more),
        backlog_bytes=12 * GIB,
        storage_bytes=12 * GIB,
        **topic,
    )
    return cluster(NamespaceSpec("shop/geo", topics=(orders,), policies={**held(10 * GIB), **(policies or {})}))


def _held_by(holder: str) -> tuple[Expected, ...]:
    return tuple(Expected(check, TOPIC, holder) for check in (NEAR, RISK))


FAULTS = (
    reported(
        "quota-full-of-what-is-not-replicated",
        "apache/pulsar#11003",
        "A topic is over its quota; a replicator that is away is 1,000,000 entries behind, the application none.",
        "Producers are shut out by the replication to west, not by an application. Mend the replication, or end it.",
        _full(
            replicators=(ReplicatorSpec("west", 1_000_000, connected=False),),
            policies={"replication_clusters": ["local", "west"]},
        ),
        expected=(*_held_by("held by the replicator to west"), Expected("replication-stopped", "^shop/geo to west$")),
        never=NO_CURE,
    ),
    reported(
        "quota-full-of-what-is-not-compacted",
        "apache/pulsar#11672",
        "A topic is over its quota with the cursor of compaction 1,000,000 entries behind, below its threshold.",
        "Producers are shut out until the topic is compacted, which its threshold of 100 GiB never lets happen.",
        _full(
            SubscriptionSpec("__compaction", kind="None", backlog=1_000_000),
            policies={"compaction_threshold": 100 * GIB},
        ),
        expected=(*_held_by("held by compaction"), Expected("compaction-over-quota", "^shop/geo$")),
        never=NO_CURE,
    ),
    reported(
        "quota-full-of-what-deduplication-holds",
        "apache/pulsar#19665",
        "A topic is over its quota with deduplication, and no subscription has a backlog.",
        "The cursor of deduplication holds it until its next snapshot: wait, or look at its interval.",
        _full(policies={"deduplicationEnabled": True}, dedup_behind=1_000_000),
        expected=_held_by("deduplication"),
        allowed={"quota-stuck": "where the cursor of deduplication was not read, the quota may be stuck as well"},
        never=NO_CURE,
    ),
    reported(
        "offloading-without-a-driver",
        "apache/pulsar#7639",
        "A namespace has an offload threshold, brokers have no driver, and 3 TiB that are consumed are kept for ever.",
        "Nothing is offloaded: brokers have no offloader. Name a driver, or bound the retention.",
        cluster(
            NamespaceSpec(
                "shop/history",
                topics=(
                    TopicSpec(
                        "sales",
                        partitions=20,
                        producers=2,
                        subscriptions=(SubscriptionSpec("reports", consumers=2, backlog=25, rate_out=100.0),),
                        storage_bytes=150 * GIB,
                        rate_in=100.0,
                    ),
                ),
                policies={**retained(-1), "offload_threshold": 10 * GIB},
            )
        ),
        expected=(
            Expected("offload-failing", "^shop/history$", "driver"),
            Expected("retention-unbounded", "^shop/history$"),
        ),
        never=("ledgers are offloaded",),
    ),
    reported(
        "stored-though-nothing-keeps-it",
        "apache/pulsar#6935",
        "Ten partitions store 800 GiB each, closed three days ago and consumed; two hours are retained.",
        "Nothing keeps them: deletion fails, or a cursor that is no subscription holds the ledgers.",
        cluster(
            NamespaceSpec(
                "shop/archive",
                topics=(
                    TopicSpec(
                        "scans",
                        partitions=10,
                        producers=1,
                        subscriptions=(SubscriptionSpec("index", consumers=1, backlog=5, rate_out=5.0),),
                        message_bytes=100_000,
                        storage_bytes=800 * GIB,
                        rate_in=5.0,
                        stored_ago_s=3 * DAY_S,
                    ),
                ),
                policies=retained(120),
            )
        ),
        expected=(Expected("stored-though-consumed", "shop/archive/scans"),),
        never=(r"Set .*retention.*shop/archive",),
    ),
    reported(
        "a-publish-rate-makes-producers-wait",
        "apache/pulsar#13538",
        "A topic's own publish rate of 10 messages/s made its producers wait 173 times; its broker writes quickly.",
        "The rate makes producers wait, and no bookie: ask who set it, or raise it.",
        cluster(
            NamespaceSpec(
                "shop/alerts",
                topics=(
                    TopicSpec(
                        "pages",
                        producers=3,
                        subscriptions=(SubscriptionSpec("pager", consumers=1, backlog=2, rate_out=10.0),),
                        rate_in=10.0,
                        told=(("publishRateLimitedTimes", 173),),
                    ),
                ),
            )
        ),
        expected=(Expected("limit-reached", "shop/alerts/pages", "173"),),
        never=(r"shop/alerts.*bookie",),
    ),
    reported(
        "one-bundle-carries-everything",
        "apache/pulsar#386",
        "24 partitions of 1,000 messages/s of 10 kB each are in the only bundle of their namespace.",
        "No move evens that out: split the bundle first, then move the parts.",
        *(FIREHOSE,) * 3,
        expected=(Expected("hot-bundle", "shop/firehose", "no move evens"), Expected("broker-load-skew")),
        never=(r"(?i)move [^:]*shop/firehose/0x00000000_0xffffffff",),
        remedy=("split shop/firehose/0x00000000_0xffffffff on ", "move shop/firehose/0x.* to "),
    ),
)
