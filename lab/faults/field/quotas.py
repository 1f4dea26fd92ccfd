"""Reports about backlog quotas, retention and time to live: who is cut off, who loses messages, what stays stored."""

import time

from lab.faults.fault import Expected
from lab.faults.field.reported import changes_settings, deletes, moves, reported
from lab.faults.simulated._clusters import DAY_S, HOUR_S, cluster, retained
from lab.simulator import ClusterSpec, NamespaceSpec, SubscriptionSpec, TopicSpec
from lab.simulator.spec import Policies

NOW_MS = time.time_ns() // 1_000_000
NEAR, RISK = "backlog-near-quota", "producer-hold-restart-risk"
REFUSED = {RISK: "over its quota, the topic lets no producer in, now or after a restart"}
UNBOUNDED = {"backlog-quota-missing": "by the broker's own figure it is a large backlog, which no quota bounds"}
ONE_STREAM = "of the made-up cluster's traffic, nearly all is that of the reported topic"
ALONE = {"hot-bundle": ONE_STREAM, "broker-load-skew": ONE_STREAM}


def _quota(kind: str, policy: str, size: int = -1, seconds: int = -1) -> Policies:
    """A namespace's quota of one kind."""
    return {"backlog_quota_map": {kind: {"limit": size, "limitSize": size, "limitTime": seconds, "policy": policy}}}


def _sleeping_age_quota() -> ClusterSpec:
    late = SubscriptionSpec("late", kind="Exclusive", backlog=45_000)
    topic = TopicSpec("readings", producers=3, subscriptions=(late,), message_bytes=400, rate_in=50.0)
    policies = _quota("message_age", "producer_request_hold", seconds=60)
    return cluster(
        NamespaceSpec("shop/sensors", topics=(topic,), policies=policies),
        configuration={
            "backlogQuotaCheckIntervalInSeconds": "60",
            "preciseTimeBasedBacklogQuotaCheck": "false",
            "managedLedgerMaxLedgerRolloverTimeMinutes": "240",
        },
    )


def _orphan(backlog: int, backlog_bytes: int, producers: int) -> ClusterSpec:
    acked = (("lastAckedTimestamp", NOW_MS),)
    current = SubscriptionSpec(
        "node-7", kind="Exclusive", consumers=1, backlog=3, rate_out=5.0 * producers, consumed_ms=NOW_MS, told=acked
    )
    forgotten = SubscriptionSpec("node-3", kind="Exclusive", backlog=backlog, consumed_ms=NOW_MS - 9 * DAY_S * 1000)
    topic = TopicSpec(
        "dml",
        producers=producers,
        subscriptions=(current, forgotten),
        message_bytes=10_756,
        backlog_bytes=backlog_bytes,
        rate_in=5.0 * producers,
    )
    return cluster(
        NamespaceSpec("vectors/log", topics=(topic,)),
        version="2.9.3",
        configuration={
            "backlogQuotaDefaultLimitGB": "8",
            "backlogQuotaDefaultLimitBytes": str(8 * 1024**3),
            "backlogQuotaDefaultRetentionPolicy": "producer_exception",
            "subscriptionExpirationTimeMinutes": "0",
        },
    )


def _retained(storage_bytes: int, backlog_bytes: int) -> ClusterSpec:
    reader = SubscriptionSpec("etl", consumers=4, backlog=400_000, rate_out=4_000.0, messages_per_entry=15)
    topic = TopicSpec(
        "clicks",
        producers=4,
        subscriptions=(reader,),
        message_bytes=3_579,
        backlog_bytes=backlog_bytes,
        storage_bytes=storage_bytes,
        backlog_age_s=1_500,
        rate_in=4_000.0,
    )
    policies = {
        **_quota("destination_storage", "consumer_backlog_eviction", size=107_374_182_400),
        **retained(10_080, 512_000),
    }
    return cluster(NamespaceSpec("shop/web", topics=(topic,), policies=policies))


def _one_unacknowledged() -> ClusterSpec:
    reader = SubscriptionSpec(
        "work", consumers=4, backlog=1, unacked=1, ack_holes=1, spans=5_583_457, consumed_ms=NOW_MS - HOUR_S * 1000
    )
    topic = TopicSpec(
        "jobs", subscriptions=(reader,), message_bytes=1_000, backlog_bytes=5_583_457_484, backlog_age_s=104_400
    )
    policies = {
        **_quota("destination_storage", "producer_exception", size=5_368_709_120),
        "message_ttl_in_seconds": DAY_S,
    }
    return cluster(NamespaceSpec("shop/jobs", topics=(topic,), policies=policies), version="2.9.2")


def _reader_under_ttl(backlog: int, sent: int, expired: int, expired_ms: int) -> ClusterSpec:
    told = (("msgOutCounter", sent), ("totalMsgExpired", expired), ("lastExpireTimestamp", expired_ms))
    reader = SubscriptionSpec(
        "reader-8c41f0",
        kind="Exclusive",
        consumers=1,
        backlog=backlog,
        rate_out=1_000.0,
        consumed_ms=NOW_MS,
        durable=False,
        told=told,
    )
    topic = TopicSpec(
        "history",
        producers=2,
        subscriptions=(reader,),
        message_bytes=500,
        storage_bytes=20_000_000_000,
        rate_in=200.0,
    )
    policies = {**retained(10_080, 102_400), "message_ttl_in_seconds": HOUR_S}
    return cluster(
        NamespaceSpec("shop/replay", topics=(topic,), policies=policies),
        configuration={"messageExpiryCheckIntervalInMinutes": "5"},
    )


def _left_by_deduplication(storage_bytes: int) -> ClusterSpec:
    app = SubscriptionSpec("app", consumers=2, backlog=0, rate_out=250.0, consumed_ms=NOW_MS)
    topic = TopicSpec(
        "orders",
        producers=2,
        subscriptions=(app,),
        message_bytes=1_000,
        storage_bytes=storage_bytes,
        rate_in=250.0,
        dedup_behind=storage_bytes // 1_000,
        told=(("deduplicationStatus", "Disabled"),),
    )
    policies = {**retained(0, 0), "deduplicationEnabled": False}
    return cluster(NamespaceSpec("shop/exact", topics=(topic,), policies=policies), version="2.9.2")


def _young_ledgers() -> ClusterSpec:
    reader = SubscriptionSpec("batch", consumers=1, backlog=0, consumed_ms=NOW_MS - 6 * 60_000)
    topic = TopicSpec(
        "exports", partitions=100, producers=1, subscriptions=(reader,), message_bytes=905, storage_bytes=19_000_000
    )
    return cluster(NamespaceSpec("shop/exports", bundles=12, topics=(topic,), policies=retained(1, 1)), version="2.8.1")


def _limited_elsewhere() -> ClusterSpec:
    app = SubscriptionSpec("app", consumers=2, backlog=40, rate_out=850.0)
    topic = TopicSpec("t", producers=3, subscriptions=(app,), rate_in=850.0, told=(("publishRateLimitedTimes", 0),))
    limit = {"publishThrottlingRateInMsg": 1, "publishThrottlingRateInByte": 0}
    policies: Policies = {"publishMaxMessageRate": {"foo": limit}, "replication_clusters": ["standalone"]}
    return cluster(NamespaceSpec("t/ns", topics=(topic,), policies=policies), cluster="standalone")


FAULTS = (
    reported(
        "publish-limit-for-another-cluster",
        "apache/pulsar#16709",
        "A limit of 1 message/s stands under the cluster `foo`, which does not exist; 850 messages/s are published.",
        "The limit limits nobody: ask the owner what is meant, and set it by the namespace's own call. Not the 1"
        " message a second under the right name, which would stop three producers.",
        _limited_elsewhere(),
        expected=(Expected("limit-elsewhere", "^t/ns$", r"publishMaxMessageRate.*\bfoo\b"),),
        never=(r"^Set .*t/ns", r"(?i)delete .*t/ns", r"(?i)made to wait"),
    ),
    reported(
        "age-quota-sleeps-until-rollover",
        "apache/pulsar#19717",
        "45,000 messages at 50/s wait under an age quota of 60 s, whose age brokers do not know yet; three producers"
        " still run. All that is stored is in a ledger closed this moment, in place of one that is open.",
        "The first message is 15 minutes old and the limit 60 s: producers are cut off when the ledger is closed, so at"
        " the next unload or restart at the latest. Consume or delete `late`, or set a limit that is meant.",
        _sleeping_age_quota(),
        expected=(Expected(RISK, "^persistent://shop/sensors/readings$", r"\blate\b"),),
        allowed={NEAR: "the backlog is older than its quota, by what is published"},
        never=(moves("shop/sensors"), r"(?i)(set|turn|switch)\b.{0,30}preciseTimeBasedBacklogQuotaCheck"),
    ),
    reported(
        "orphan-subscription-stops-production",
        "milvus-io/milvus-helm#401",
        "A subscription without a consumer for nine days is over the brokers' default quota of 8 GB, and the topic's"
        " four producers are gone. The looks are half an hour apart.",
        "No producer can write: forgotten `node-3` has used up the brokers' default quota. Ask its owner, then delete"
        " it; an expiry for subscriptions of this namespace helps later.",
        _orphan(790_000, 8_497_240_000, producers=4),
        _orphan(810_000, 8_712_345_678, producers=0),
        _orphan(810_000, 8_712_345_678, producers=0),
        expected=(Expected(NEAR, "^persistent://vectors/log/dml$", "node-3"),),
        allowed={**REFUSED, "subscription-abandoned": "nobody has consumed node-3 for nine days"},
        never=(moves("vectors/log"), changes_settings("vectors/log"), r"held by (subscription )?node-7"),
        minutes_apart=30,
    ),
    reported(
        "quota-is-not-storage",
        "apache/pulsar#13053",
        "A topic stores 400 GiB under a quota of 100 GiB that evicts; 20 GiB of these are backlog, the rest is"
        " retained for a week.",
        "Silence is right: a quota counts what is not consumed, which is 20 GiB; the retention keeps the rest.",
        _retained(429_496_729_600, 21_474_836_480),
        _retained(429_600_000_000, 21_100_000_000),
        allowed=ALONE,
        never=(moves("shop/web"), changes_settings("shop/web"), r"(?i)evict\w* (fails|does not|is broken)"),
    ),
    reported(
        "ttl-waits-half-as-long-again",
        "apache/pulsar#16114",
        "One message that consumer `work-0` (w-2 of the case) does not acknowledge holds 5.6 GB under a quota of 5 GiB;"
        " it is 29 hours old under a time to live of 24.",
        "Producers are out because of one message that `work-0` holds. The time to live is not broken: with consumers"
        " and so small a backlog it acts after 36 hours. Have it acknowledged, or expire that one message.",
        _one_unacknowledged(),
        expected=(Expected(NEAR, "^persistent://shop/jobs/jobs$", "work-0"),),
        allowed={
            **REFUSED,
            "quota-stuck": "the quota counts all that follows the one message, which is no backlog",
            "ack-holes": "the one message holds the cursor back",
            "subscription-stalled": "what work-0 holds is not acknowledged",
        },
        never=(
            moves("shop/jobs"),
            changes_settings("shop/jobs"),
            r"(?i)(time to live|TTL)\W+(\w+\W+){0,4}(broken|dead|does not (act|work))",
        ),
    ),
    reported(
        "ttl-throws-a-reader-forward",
        "apache/pulsar#26505",
        "A reader on old messages jumps over three million of them in six minutes, under a time to live of an hour and"
        " a retention of a week.",
        "The time to live drags the reader's cursor past all that is older: those messages are lost to it. A time to"
        " live of 0 for this topic, the reader begun again from its last position, and a version with the repair.",
        _reader_under_ttl(4_000_000, 1_200_000, 0, 0),
        _reader_under_ttl(715_000, 1_560_000, 2_997_000, NOW_MS - 120_000),
        expected=(Expected("ttl-before-read", "shop/replay", "reader-8c41f0"),),
        never=(
            moves("shop/replay"),
            r"^Set .*(retention|quota).*shop/replay",
            r"reader-8c41f0.*(catch(es|ing) up|recover)",
        ),
        minutes_apart=6,
    ),
    reported(
        "dedup-cursor-left-behind",
        "apache/pulsar#15363",
        "Deduplication is off, its cursor still stands before all that is stored, 43 GB and more each hour, and the"
        " only subscription has consumed everything. Ledgers are not shown one by one.",
        "Nothing is ever deleted because of the cursor `pulsar.dedup` that was left behind: switch deduplication on"
        " for the topic and off again, or upgrade.",
        _left_by_deduplication(43_000_000_000),
        _left_by_deduplication(43_900_000_000),
        expected=(Expected("stored-though-consumed", "shop/exact", "dedup"),),
        allowed=UNBOUNDED,
        never=(
            moves("shop/exact"),
            r"^Set .*(retention|time to live).*shop/exact",
            deletes("shop/exact"),
            r"subscription app with 0 entries",
        ),
        minutes_apart=60,
    ),
    reported(
        "storage-stays-until-the-ledger-rolls",
        "apache/pulsar#12942",
        "100 partitions keep 19 MB each that are consumed, under a retention of a minute and 1 MB, nine minutes after"
        " their ledgers began. Each is in a ledger closed this moment, in place of one that is open.",
        "Silence is right: a ledger is deleted only after it was closed, which is after 240 minutes at the latest.",
        _young_ledgers(),
        never=(moves("shop/exports"), changes_settings("shop/exports")),
    ),
)
