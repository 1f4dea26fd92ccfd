"""Reports about clients' subscriptions, compaction, and offloading."""

import time

from lab.faults.fault import Expected
from lab.faults.field.reported import reported
from lab.faults.simulated._clusters import DAY_S, cluster, held, retained
from lab.simulator import ClusterSpec, NamespaceSpec, SubscriptionSpec, TopicSpec

HOUR_MIN = 60
DAY_MIN = DAY_S // 60


class Members(dict[str, object]):
    """A JSON object among what is `told`: documents are kept by their specs, so that each has a hash."""

    def __hash__(self) -> int:  # type: ignore[override]  # nobody changes it
        return hash(tuple(sorted(self.items())))


def ago_ms(minutes: float) -> int:
    """So long before this was read in, as brokers write times."""
    return int((time.time() - minutes * 60) * 1000)


def compacted(*, succeeded_min: float | None = None, failed_min: float | None = None) -> tuple[str, object]:
    """What a topic tells of its compaction: how long ago it succeeded and failed; None: never."""
    return "compaction", Members(
        lastCompactionRemovedEventCount=0,
        lastCompactionSucceedTimestamp=0 if succeeded_min is None else ago_ms(succeeded_min),
        lastCompactionFailedTimestamp=0 if failed_min is None else ago_ms(failed_min),
        lastCompactionDurationTimeInMills=0 if succeeded_min is None else 40,
    )


def reader(name: str, *, backlog: int = 0, rate_out: float = 0.0, new: bool = False) -> SubscriptionSpec:
    """A reader's own subscription, which holds nothing."""
    return SubscriptionSpec(
        name,
        kind="Exclusive",
        consumers=1,
        new_consumers=int(new),
        backlog=backlog,
        rate_out=rate_out,
        durable=False,
    )


def compaction(backlog: int = 0) -> SubscriptionSpec:
    """The subscription of compaction, to which nobody is connected between two runs."""
    return SubscriptionSpec("__compaction", kind="None", backlog=backlog)


def offloading(threshold_bytes: int = 0, **more: object) -> dict[str, object]:
    """Policies of a namespace whose old ledgers are to go to S3."""
    return {
        "offload_policies": {
            "managedLedgerOffloadDriver": "aws-s3",
            "managedLedgerOffloadThresholdInBytes": threshold_bytes,
            "managedLedgerOffloadDeletionLagInMillis": 14_400_000,
            "s3ManagedLedgerOffloadBucket": "old-ledgers",
            "s3ManagedLedgerOffloadRegion": "eu-west-1",
        },
        "offload_threshold": threshold_bytes,
        "offload_deletion_lag_ms": 14_400_000,
        **more,
    }


def _readers(*names: str, new: str = "") -> ClusterSpec:
    left = tuple(reader(name, backlog=38_345, new=name == new) for name in names)
    prices = TopicSpec(
        "prices", subscriptions=(compaction(), *left), message_bytes=1_000, backlog_bytes=0, storage_bytes=38_345_000
    )
    kept = retained(10_080, 10_240)
    return cluster(NamespaceSpec("shop/feed", topics=(prices,), policies=kept), version="2.7.4")


OLD_NAMES = tuple(f"app-10-2-0-{4 + 5 * number}-{0x5F1 + 390 * number:x}" for number in range(14))
LIVE_NAME = "app-10-2-0-77-c04"


def _new_name_at_each_start() -> ClusterSpec:
    """Fourteen starts, one to 40 days ago; the oldest subscription is the farthest behind."""
    left = tuple(
        SubscriptionSpec(
            name, backlog=900_000 + number * 2_200_000 // 13, consumed_ms=ago_ms((1 + 3 * number) * DAY_MIN)
        )
        for number, name in enumerate(OLD_NAMES)
    )
    live = SubscriptionSpec(LIVE_NAME, consumers=2, backlog=12, rate_out=4.8, consumed_ms=ago_ms(0))
    jobs = TopicSpec(
        "jobs",
        producers=2,
        subscriptions=(live, *left),
        message_bytes=68_387,
        backlog_bytes=212_000_000_000,
        storage_bytes=212_000_000_000,
        rate_in=4.8,
    )
    return cluster(NamespaceSpec("crm/tasks", topics=(jobs,), policies=held(268_435_456_000)))


def _compaction_fails(backlog: int, failed_min: float) -> ClusterSpec:
    devices = TopicSpec(
        "devices",
        producers=4,
        subscriptions=(compaction(backlog), reader("reader-0b7d2e4411", rate_out=66.7)),
        message_bytes=3_500,
        rate_in=66.7,
        told=(compacted(failed_min=failed_min),),
    )
    return cluster(NamespaceSpec("iot/state", topics=(devices,), policies={"compaction_threshold": 104_857_600}))


def _ends_with_a_deletion() -> ClusterSpec:
    view = SubscriptionSpec("sub1", kind="Exclusive", consumers=1, backlog=1, consumed_ms=ago_ms(31))
    keys = TopicSpec(
        "keys",
        producers=1,
        subscriptions=(view, compaction()),
        message_bytes=40,
        storage_bytes=80,
        told=(compacted(succeeded_min=31),),
    )
    policies: dict[str, object] = {"compaction_threshold": 104_857_600}
    return cluster(NamespaceSpec("iot/view", topics=(keys,), policies=policies), version="3.3.1")


def _nothing_to_offload() -> ClusterSpec:
    app = SubscriptionSpec("app", consumers=2, backlog=10, rate_out=7.5)
    clicks = TopicSpec(
        "clicks", producers=1, subscriptions=(app,), message_bytes=9_333, storage_bytes=84_000_000, rate_in=7.5
    )
    policies = offloading() | retained(1_440, 10_240)
    return cluster(NamespaceSpec("pay/events", topics=(clicks,), policies=policies), version="4.0.5")


def _offloaded_and_gone(backlog: int) -> ClusterSpec:
    audit = SubscriptionSpec("audit", kind="Exclusive", consumers=1, backlog=backlog, consumed_ms=ago_ms(170))
    billing = SubscriptionSpec("billing", consumers=2, backlog=20, rate_out=50.0, consumed_ms=ago_ms(0))
    entries = TopicSpec(
        "entries",
        producers=2,
        subscriptions=(audit, billing),
        message_bytes=1_000,
        storage_bytes=5_000_000_000,
        rate_in=50.0,
        told=(
            ("offloadedStorageSize", 2_000_000_000),
            ("lastOffloadLedgerId", 6_197_907),
            ("lastOffloadSuccessTimeStamp", ago_ms(180)),
            ("lastOffloadFailureTimeStamp", ago_ms(175)),
        ),
    )
    policies = offloading(2_000_000_000) | retained(1_440)
    return cluster(NamespaceSpec("audit/trail", topics=(entries,), policies=policies))


FAULTS = (
    reported(
        "readers-left-behind",
        "apache/pulsar#15070",
        "Readers without a durable position stand still on a topic nobody publishes to, one more at each look; that"
        " they ask for nothing and that new ones are refused cannot be made.",
        "Each attempt of the client leaves a reader behind: unload this one topic, and have the client close its"
        " readers. Name the topic, the readers and where they come from.",
        _readers("reader-e490b7f71b", "reader-a5525623e6"),
        _readers("reader-e490b7f71b", "reader-a5525623e6", "reader-77ab01", new="reader-77ab01"),
        expected=(Expected("subscription-stalled", "^persistent://shop/feed/prices", r"reader|10\.0\.0\."),),
        never=(r"(?i)delete .*__compaction", r"(?i)move .*shop/feed", "maxSubscriptionsPerTopic"),
    ),
    reported(
        "a-new-subscription-with-every-restart",
        "apache/pulsar#9307",
        "Fourteen subscriptions of one application, left 1 to 40 days ago, hold 212 GB of a quota of 250 GiB; the"
        " fifteenth is in use.",
        "The application makes a new subscription at each start. Give it a fixed name, and delete the fourteen with the"
        " owner's word.",
        _new_name_at_each_start(),
        expected=(Expected("subscription-abandoned", "^persistent://crm/tasks/jobs"),),
        allowed={
            "backlog-near-quota": "79 % of the quota are full of what nobody consumes",
            "backlog-growing": "it is to reach the quota in two days",
        },
        never=(
            rf"(?i)delete .*{LIVE_NAME}",
            r"(?i)set .*quota",
            r"(?i)\bTTL of crm/tasks",
            "subscriptionExpirationTime",
        ),
    ),
    reported(
        "compaction-fails-in-silence",
        "apache/pulsar#6432",
        "Compaction of a topic failed two minutes ago and never succeeded; 9.1 GB wait for it, 90 times its threshold.",
        "Compaction starts and fails each time, and nothing behind its cursor is deleted. Run it once by hand, and read"
        " the error.",
        _compaction_fails(2_600_000, 12),
        _compaction_fails(2_640_000, 2),
        expected=(Expected("compaction-failing", "iot/state"),),
        never=(r"(?i)delete .*__compaction", r"(?i)set .*(TTL|threshold)", r"nobody consumes .*__compaction"),
    ),
    reported(
        "last-message-is-a-tombstone",
        "apache/pulsar#23245",
        "A reader of the compacted view has had a backlog of 1 for half an hour, of a topic that is compacted.",
        "Nothing: the last message is a deletion, which the compacted view has not got.",
        *(_ends_with_a_deletion() for _ in range(4)),
        never=(r"(?i)delete .*sub1", r"sub1.* (stuck|lost)", r"(?i)move .*iot/view"),
    ),
    reported(
        "nothing-to-offload-yet",
        "apache/pulsar-helm-chart#623",
        "A namespace offloads to S3 from 0 bytes on, and nothing of a topic's 84 MB is offloaded, without a failure."
        " The simulator has them in a ledger closed this moment, not in the open one.",
        "Nothing: only closed ledgers are offloaded, and no failure is recorded.",
        _nothing_to_offload(),
        never=(r"(?i)offload.* fail", r"(?i)bucket .*(reach|answer)", r"(?i)move .*pay/events"),
    ),
    reported(
        "offloaded-and-gone",
        "apache/pulsar#21686",
        "An offload failed after the last success; a subscription that reads what was offloaded has stood still since,"
        " the other is well. That its ledger is marked as offloaded cannot be made.",
        "Subscription audit waits for a ledger that is in neither store. Look for its object and its bookies' copy"
        " before the deletion lag ends, and stop offloading meanwhile.",
        *(_offloaded_and_gone(2_000_000 + 30_000 * look) for look in range(3)),
        expected=(
            Expected("offload-failing", "audit/trail", "6197907|6,197,907|entries"),
            Expected("subscription-stalled", "^persistent://audit/trail/entries subscription audit$"),
        ),
        never=(r"(?i)delete .*audit", "autoSkipNonRecoverableData", r"(?i)move .*audit/trail"),
    ),
)
