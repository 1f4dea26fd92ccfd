"""Reports about replication to other clusters, and about policies that do not hold, or only seem not to."""

import time

from lab.faults.fault import Expected
from lab.faults.field.reported import changes_settings, deletes, moves, reported
from lab.faults.simulated._clusters import busy_topic, cluster, spread, strained
from lab.simulator import ClusterSpec, NamespaceSpec, ReplicatorSpec, SubscriptionSpec, TopicSpec

NOW_MS = time.time_ns() // 1_000_000
BROKERS = 12
READERS = 9
OWN_LIMIT: dict[str, object] = {"max_subscriptions_per_topic": 10}


def _app(rate: float) -> SubscriptionSpec:
    """An application that consumes what comes in."""
    return SubscriptionSpec("app", consumers=2, backlog=25, rate_out=rate, consumed_ms=NOW_MS)


def _one_of_forty(backlog: int) -> ClusterSpec:
    others = TopicSpec(
        "events",
        partitions=39,
        producers=1,
        subscriptions=(_app(80.0),),
        storage_bytes=50_000_000,
        rate_in=80.0,
        replicators=(ReplicatorSpec("pulsar-hel", 60, rate_out=80.0),),
    )
    stopped = TopicSpec(
        "positions",
        producers=1,
        subscriptions=(_app(80.0),),
        storage_bytes=71_300_000,
        rate_in=80.0,
        replicators=(ReplicatorSpec("pulsar-hel", backlog),),
    )
    policies: dict[str, object] = {"replication_clusters": ["local", "pulsar-hel"]}
    return cluster(NamespaceSpec("shop/geo", topics=(others, stopped), policies=policies))


def _replicated_by_its_own_policy(backlog: int) -> ClusterSpec:
    """The broker that owns it is hot, and it is among what is there to be moved."""
    topic = TopicSpec(
        "sessions",
        producers=4,
        subscriptions=(_app(1_940.0),),
        message_bytes=500,
        storage_bytes=70_000_000,
        rate_in=1_940.0,
        replicators=(ReplicatorSpec("b", backlog, rate_out=2_000.0),),
    )
    return cluster(
        NamespaceSpec("shop/links", topics=(topic,), policies={"replication_clusters": ["a"]}, owner=1),
        usual=strained(cpu_percent=60.0),
        broker_1=strained(cpu_percent=176.0),
        cluster="a",
        version="3.0.5",
    )


def _markers(backlog: int) -> ClusterSpec:
    more = (backlog - 17_900) * 109
    held = SubscriptionSpec("sub1", backlog=backlog, replicated=True)
    topic = TopicSpec(
        "quiet",
        subscriptions=(held,),
        message_bytes=109,
        backlog_bytes=1_872_241 + more,
        storage_bytes=2_308_087 + more,
        rate_in=2.0,
        replicators=(ReplicatorSpec("other", 0, rate_out=2.0),),
    )
    return cluster(
        NamespaceSpec("shop/twin", topics=(topic,), policies={"replication_clusters": ["local", "other"]}),
        version="2.5.0",
        configuration={"replicatedSubscriptionsSnapshotFrequencyMillis": "1000"},
    )


def _idle_link() -> ClusterSpec:
    idle = TopicSpec(
        "rare",
        subscriptions=(SubscriptionSpec("app", consumers=2, backlog=0),),
        storage_bytes=60_000,
        replicators=(ReplicatorSpec("aus", 0, connected=False),),
    )
    busy = TopicSpec(
        "orders",
        partitions=12,
        producers=1,
        subscriptions=(_app(20.0),),
        storage_bytes=50_000_000,
        rate_in=20.0,
        replicators=(ReplicatorSpec("aus", 40, rate_out=20.0),),
    )
    return cluster(
        NamespaceSpec("shop/pacific", topics=(idle, busy), policies={"replication_clusters": ["iad", "aus"]}),
        cluster="iad",
        version="2.4.2",
        configuration={"brokerDeleteInactiveTopicsEnabled": "true"},
    )


def _full_of_readers() -> ClusterSpec:
    readers = tuple(
        SubscriptionSpec(f"reader-{0x3FA91C + number:x}", kind="Exclusive", consumers=1, durable=False)
        for number in range(READERS)
    )
    events = TopicSpec(
        "__change_events",
        subscriptions=(*readers, SubscriptionSpec("__compaction", kind="None")),
        message_bytes=700,
        storage_bytes=70_000,
    )
    namespace = NamespaceSpec(
        "tenant/ns",
        bundles=BROKERS,
        topics=(events, busy_topic("tickets", 48)),
        policies=OWN_LIMIT,
        owners=spread(BROKERS, BROKERS),
    )
    return cluster(
        namespace,
        brokers=BROKERS,
        version="2.9.3",
        configuration={"topicLevelPoliciesEnabled": "true", "systemTopicEnabled": "true"},
    )


def _shut_out_by_a_schema_rule() -> ClusterSpec:
    """Two namespaces alike, but that one forbids schema updates, and nobody reads its topic of policies."""
    reader = SubscriptionSpec("reader-3fa91c", kind="Exclusive", consumers=1, durable=False)
    read = TopicSpec("__change_events", subscriptions=(reader,))
    return cluster(
        NamespaceSpec(
            "mytenant/ns",
            topics=(TopicSpec("__change_events"), busy_topic("topic", 0)),
            policies={"is_allow_auto_update_schema": False},
            owner=0,
        ),
        NamespaceSpec("mytenant/open", topics=(read, busy_topic("topic", 0)), owner=0),
        version="2.9.2",
        configuration={"topicLevelPoliciesEnabled": "true", "systemTopicEnabled": "true"},
    )


def _throttled_by_entries() -> ClusterSpec:
    limit = {"dispatchThrottlingRateInMsg": 10, "dispatchThrottlingRateInByte": -1, "ratePeriodInSecond": 1}
    reader = SubscriptionSpec(
        "test-1", consumers=1, backlog=14, rate_out=583.2, messages_per_entry=58, consumed_ms=NOW_MS
    )
    topic = TopicSpec("batched", producers=1, subscriptions=(reader,), message_bytes=1_056, rate_in=583.2)
    return cluster(
        NamespaceSpec("shop/slow", topics=(topic,), policies={"subscriptionDispatchRate": {"local": limit}}),
        configuration={"dispatchThrottlingOnBatchMessageEnabled": "true"},
    )


FAULTS = (
    reported(
        "schema-rule-shuts-out-topic-policies",
        "apache/pulsar#16331",
        "A namespace forbids schema updates, and its topic of policies has no reader; another namespace's has one. That"
        " brokers answer 500 when they are asked for a policy is not made.",
        "Policies of single topics do not hold in mytenant/ns, as brokers' readers may not register their schema: allow"
        " the update for a moment, reload, and forbid it again; or upgrade.",
        *(_shut_out_by_a_schema_rule(),) * 2,
        expected=(Expected("limit-reached", "mytenant/ns", "is_allow_auto_update_schema"),),
        never=(r"(?i)delete .*__change_events", r"(?i)restart", moves("mytenant/ns")),
    ),
    reported(
        "replicator-stopped-reading",
        "apache/pulsar#25097",
        "One of forty replicated topics is connected to the other cluster and sends nothing, 71,000 entries and then"
        " 140,000 wait; the others send what comes in. The log that names a bookie is not there.",
        "The replicator of `positions` to `pulsar-hel` stands still, and nothing starts it again. The link and the"
        " other cluster are well, as the other topics flow: unload this one topic, and upgrade.",
        _one_of_forty(71_000),
        _one_of_forty(140_000),
        expected=(Expected("replication-stopped", "^shop/geo to pulsar-hel$", r"\bpositions\b"),),
        never=(
            moves("shop/geo"),
            changes_settings("shop/geo"),
            r"(?i)pulsar-hel (is|seems|may be) (down|away|unreachable|not reachable)",
        ),
        minutes_apart=15,
    ),
    reported(
        "topic-level-replication-and-an-unload",
        "apache/pulsar#22890",
        "A topic is replicated to `b` by a policy of its own, its namespace only to `a`, on 3.0.5; 60,000 entries have"
        " not been sent yet, the backlog shrinks, and its broker has 88 % of its CPU in use.",
        "Until the backlog is sent, nothing may load the topic anew: this version drops the cursor to `b`, and what"
        " waits never gets there. Let it drain, or name `b` in the namespace's policy; then upgrade.",
        _replicated_by_its_own_policy(95_000),
        _replicated_by_its_own_policy(60_000),
        expected=(Expected("replication-stopped", "^shop/links to b$", r"(?i)unload|loaded anew|restart|\bmove"),),
        allowed={
            "cpu-busy": "its broker has 88 % of its CPU in use",
            "broker-load-skew": "its broker has far more of its CPU in use than the others",
            "hot-bundle": "of the made-up cluster's traffic, much is that of the reported topic",
        },
        never=(moves("shop/links"),),
    ),
    reported(
        "markers-fill-a-replicated-subscription",
        "apache/pulsar#6437",
        "Nobody publishes, and the backlog of a replicated subscription without consumers grows by two entries a"
        " second.",
        "Markers for the replication of subscriptions fill it, as only a connected consumer acknowledges them: connect"
        " one, delete `sub1` in the cluster where nobody uses it, or stop replicating its state.",
        _markers(17_900),
        _markers(19_100),
        expected=(
            Expected("subscription-abandoned", "shop/twin/quiet.*sub1", r"(?i)marker|replicated|snapshots? of subscr"),
        ),
        never=(moves("shop/twin"), changes_settings("shop/twin"), r"(?i)(hidden|unknown|ghost) producer|evict"),
    ),
    reported(
        "idle-replicator-is-disconnected",
        "apache/pulsar#5274",
        "A replicator with nothing to send is disconnected, for an hour in which nobody published; those of other"
        " topics to the same cluster are connected.",
        "Silence is right: brokers close the producer of a replicator with nothing to send, until the next message.",
        _idle_link(),
        _idle_link(),
        _idle_link(),
        never=(
            moves("shop/pacific"),
            deletes("shop/pacific"),
            r"(?i)\baus (is|seems|may be) (down|away|unreachable|not reachable)",
        ),
        minutes_apart=30,
    ),
    reported(
        "change-events-topic-full-of-readers",
        "apache/pulsar#18364",
        "The system topic of topic policies has nine readers and its compaction, where a topic may have ten"
        " subscriptions; of twelve brokers (24 in the case) three have none, and none can be added.",
        "Brokers without a reader do not know the policies of their topics in `tenant/ns`: its limit of subscriptions"
        " keeps them out of `__change_events`. Raise or unset the limit for this namespace.",
        _full_of_readers(),
        expected=(Expected("limit-reached", "tenant/ns", r"__change_events|(?i:max_?subscriptions_?per_?topic)"),),
        never=(deletes("tenant/ns"), r"(?i)delete (the topic )?\S*__change_events"),
    ),
    reported(
        "dispatch-limit-counts-entries",
        "apache/pulsar#4777",
        "A subscription gets 583 messages/s under a limit of 10, in batches of 58; brokers count entries.",
        "Silence is right: the limit counts entries, and ten batches of 58 a second are 580 messages.",
        _throttled_by_entries(),
        never=(moves("shop/slow"), changes_settings("shop/slow"), r"(?i)limit (is|was) (ignored|not kept|exceeded)"),
    ),
)
