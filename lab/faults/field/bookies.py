"""Reports about memory of brokers, and about bookies."""

from lab.faults.fault import Expected
from lab.faults.field.reported import moves, reported
from lab.faults.simulated._clusters import at, cluster, retained, server, spread, strained
from lab.simulator import BookieSpec, ClusterSpec, LatencySpec, NamespaceSpec, SubscriptionSpec, TopicSpec

MB = 1024**2


def quorums(ensemble: int, write: int, ack: int) -> dict[str, str]:
    """Brokers' defaults for the copies of each entry."""
    return {
        "managedLedgerDefaultEnsembleSize": str(ensemble),
        "managedLedgerDefaultWriteQuorum": str(write),
        "managedLedgerDefaultAckQuorum": str(ack),
    }


def _standing_still(full_collections: int) -> ClusterSpec:
    """Four brokers of 40 MB/s each that have stood still so often for 27 s."""
    app = SubscriptionSpec("app", consumers=2, backlog=500, unacked=400, rate_out=1_600.0)
    events = TopicSpec("events", partitions=500, producers=4, subscriptions=(app,), message_bytes=200, rate_in=1_600.0)
    return cluster(
        NamespaceSpec("iot/fleet", bundles=64, topics=(events,), owners=spread(64, 4)),
        brokers=4,
        usual=strained(
            heap_mb=15.8e9 / MB,
            heap_limit_mb=17.1e9 / MB,
            left_mb=7_299.0,
            full_gc_seconds=27.236_818 * full_collections,
            full_gc_count=full_collections,
        ),
        configuration={"metadataStoreSessionTimeoutMillis": "30000", "managedLedgerCacheSizeMB": "2048"},
        version="2.9.2",
    )


def _beside(minutes: int) -> ClusterSpec:
    """A broker with ZGC that has been up for so long: of each minute 41 s are cycles, and 11 ms pauses."""
    app = SubscriptionSpec("app", consumers=20, backlog=900, unacked=600, rate_out=5_000.0)
    clicks = TopicSpec("clicks", partitions=20, producers=2, subscriptions=(app,), message_bytes=100, rate_in=5_000.0)
    return cluster(
        NamespaceSpec("web/events", bundles=16, topics=(clicks,), owners=spread(16, 1)),
        brokers=1,
        usual=strained(
            uptime_s=minutes * 60.0,
            cpu_percent=110.0,
            heap_mb=5_100.0,
            heap_limit_mb=10_000.0,
            left_mb=0.0,
            collectors=("ZGC Pauses", "ZGC Cycles"),
            gc_seconds=0.011 * minutes,
            gc_count=114 * minutes,
            full_gc_seconds=41.0 * minutes,
            full_gc_count=38 * minutes,
        ),
    )


def _filling(direct_bytes: float) -> ClusterSpec:
    """A broker of 150 MB/s of 5 MB messages, with so much direct memory in use."""
    thumbs = SubscriptionSpec("thumbs", consumers=1, backlog=1, rate_out=1.0)
    frames = TopicSpec(
        "frames", partitions=30, producers=1, subscriptions=(thumbs,), message_bytes=5_000_000, rate_in=1.0
    )
    return cluster(
        NamespaceSpec("media/raw", bundles=16, topics=(frames,), owners=(0,) * 16),
        brokers=1,
        bookies=2,
        usual=strained(direct_mb=direct_bytes / MB),
        configuration={
            **quorums(2, 2, 1),
            "maxMessagePublishBufferSizeInMB": "4096",
            "managedLedgerCacheSizeMB": "512",
        },
    )


def _one_copy(configuration: dict[str, str]) -> ClusterSpec:
    """900 topics of 4 TB in all, in a namespace that leaves the copies to the brokers; nothing is in trouble."""
    app = SubscriptionSpec("app", consumers=2, backlog=20, rate_out=40.0)
    facts = TopicSpec(
        "facts",
        partitions=900,
        producers=1,
        subscriptions=(app,),
        message_bytes=1_000,
        storage_bytes=4_444_000_000,
        rate_in=40.0,
    )
    kept = retained(10_080, 10_240)
    return cluster(
        NamespaceSpec("shop/facts", bundles=12, topics=(facts,), policies=kept, owners=spread(12, 3)),
        configuration=configuration,
    )


def _timing_out() -> ClusterSpec:
    """Brokers of 4,000 messages/s in all, of whose writes to bookies one in fifty takes seconds."""
    app = SubscriptionSpec("app", consumers=5, backlog=300, rate_out=200.0)
    sold = TopicSpec("sold", partitions=20, producers=4, subscriptions=(app,), message_bytes=500, rate_in=200.0)
    slow = LatencySpec(1_333.0, slow_percent=6, stalled_percent=2)
    return cluster(
        NamespaceSpec("till/sales", bundles=12, topics=(sold,), owners=spread(12, 3)),
        bookies=3,
        usual=strained(writes=slow, publishes=slow),
        configuration=quorums(3, 2, 2),
    )


def _three_copies() -> ClusterSpec:
    """25 GB in topics, three of them in the cluster's own."""
    app = SubscriptionSpec("app", consumers=2, backlog=30, rate_out=40.0)
    logs = TopicSpec(
        "logs",
        partitions=22,
        producers=2,
        subscriptions=(app,),
        message_bytes=1_000,
        storage_bytes=1_000_000_000,
        rate_in=40.0,
    )
    policies: dict[str, object] = {
        **retained(1_440, 10_240),
        "message_ttl_in_seconds": 86_400,
    }
    return cluster(
        NamespaceSpec("ops/logs", bundles=12, topics=(logs,), policies=policies, owners=spread(12, 3)),
        bookies=3,
        configuration=quorums(3, 3, 2),
        version="2.8.2",
    )


FAULTS = (
    reported(
        "full-gc-longer-than-the-session",
        "apache/pulsar#18408",
        "Each of four brokers has stood still for 27 s at every full collection, some 40 times a day.",
        "Pauses of 27 s are nearly the 30 s of a metadata session, on all four brokers. Find what fills the heap;"
        " moving bundles to the neighbours helps nobody.",
        _standing_still(40),
        _standing_still(41),
        expected=tuple(Expected("gc-pressure", at(number)) for number in range(4)),
        allowed={"heap-pressure": "it is what makes the collections"},
        never=(r"(?i)move .*iot/fleet", r"(?i)restart all", r"(?i)more partitions"),
        minutes_apart=30,
    ),
    reported(
        "gc-cycles-are-no-pauses",
        "apache/pulsar#22866",
        "A broker with ZGC spends 41 s of each minute in cycles, beside 11 ms of pauses; ten minutes are made of one.",
        "Silent: cycles are work beside the application, which paused for 11 ms of each minute in all.",
        *(_beside(minutes) for minutes in (1_440, 1_450)),
        never=(r"(?i)garbage collection [6-7]\d", r"(?i)change the collector", r"(?i)(move|split) .*web/events"),
    ),
    reported(
        "one-slow-bookie-fills-the-broker",
        "apache/pulsar#14861",
        "Direct memory of a broker grows by 2.3 GB a minute to 88 % of its limit, with quorums of 2/2/1; how slow the"
        " second bookie is cannot be made.",
        "The broker is out of direct memory in a minute: copies for a slow bookie pile up, as one answer is enough.",
        *(_filling(used) for used in (3.1e9, 5.4e9, 7.6e9)),
        expected=(Expected("direct-memory-pressure", at(0)),),
        allowed={"entry-cache-size": "half of the direct memory is promised to what is published"},
        never=(r"(?i)move .*media/raw", r"(?i)raise .*PublishBuffer"),
        minutes_apart=1,
    ),
    reported(
        "ensemble-larger-than-the-bookies",
        "apache/pulsar#17814",
        "Ledgers are to be on three bookies each, and two are left.",
        "No ledger can be made: bring the third bookie back, or lower the ensemble; touch no topic until then.",
        cluster(bookies=2, configuration=quorums(3, 2, 2)),
        expected=(Expected("ensemble-too-large", evidence="(?i)ensemble|bookies"),),
        never=(r"(?i)(move|split) .*shop/orders", r"(?i)decommission"),
    ),
    reported(
        "one-copy-of-everything",
        "apache/pulsar-helm-chart#567",
        "Brokers write each entry to one of five bookies, as a chart had it by default; 900 topics store 4 TB.",
        "Each entry has one copy: the loss of a bookie's disk loses a fifth of the data, and its restart makes topics"
        " unreadable. Raise the brokers' three settings to 2 or 3, with room for it; old ledgers stay single.",
        _one_copy(quorums(1, 1, 1)),
        expected=(Expected("ledgers-under-replicated", evidence="managedLedgerDefaultWriteQuorum"),),
        never=(moves("shop/facts"), r"(?i)decommission", "managedLedgerDefaultWriteQuorum to 1"),
    ),
    reported(
        "one-bookie-takes-five-seconds",
        "apache/pulsar#12533",
        "For a minute one of three bookies takes 5 s to have entries on its journal's disk, the others 12 and 15 ms;"
        " writes of all brokers take over a second. Failures of clients are not made.",
        "The journal disk of the second bookie is slow, and clients' full queues follow from that: look at that disk,"
        " then take the bookie out of service. Brokers are well.",
        _timing_out(),
        servers=(tuple(BookieSpec(journal_ms=each) for each in (12.0, 5_000.0, 15.0)),),
        expected=(
            Expected("bookie-thread-busy", server(1), "(?i)journal"),
            *(Expected("bookie-thread-busy", at(number)) for number in range(3)),  # the effect, as brokers see it
            *(Expected("publish-slow", at(number), r"cause: .*journal of bookie 127\.0\.1\.2:") for number in range(3)),
        ),
        never=(moves("till/sales"), r"(?i)restart .*broker", "journalSyncData", r"(?i)ack quorum"),
    ),
    reported(
        "disk-is-larger-than-the-topics",
        "apache/pulsar#20320",
        "Topics store 25 GB in three copies; bookies' disks have 6 % in use, 90 GB in all, an hour ago as now.",
        "Nothing: three copies are 75 GB, and entry logs are collected later.",
        _three_copies(),
        _three_copies(),
        servers=((BookieSpec(disks_percent=(6.0,)),) * 3,),
        never=(r"(?i)retention of ops/logs", r"(?i)move .*ops/logs"),
        minutes_apart=60,
    ),
)
