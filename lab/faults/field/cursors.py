"""Reports about cursors that stand still, flags and counters that are wrong, and delayed messages that are not due."""

import time

from lab.faults.fault import Expected
from lab.faults.field.reported import moves, reported
from lab.faults.simulated._clusters import GIB, IN_MEMORY, at, cluster, retained, strained
from lab.simulator import ClusterSpec, NamespaceSpec, SubscriptionSpec, TopicSpec

NOW_MS = time.time_ns() // 1_000_000
UNBOUNDED = {
    "backlog-growing": "its backlog does grow, without a quota",
    "backlog-quota-missing": "no quota bounds its backlog",
}


def _loses(namespace: str) -> str:
    """Pattern of a step that deletes a subscription in it, or sets a time to live or a quota."""
    return rf"(^Delete |: [Dd]elete |^Set ).*{namespace}\b"


def _consumed(milliseconds: int) -> tuple[tuple[str, object], ...]:
    """When it was acknowledged last, in its statistics."""
    return (("lastAckedTimestamp", milliseconds),)


def _undelivered(backlog: int) -> ClusterSpec:
    """Of three topics alike the second gets nothing out since its backlog began."""
    since = NOW_MS - 8_300_000
    stuck = SubscriptionSpec("proc", consumers=6, backlog=backlog, consumed_ms=since, told=_consumed(since))
    well = SubscriptionSpec("proc", consumers=6, backlog=40, rate_out=300.0, consumed_ms=NOW_MS, told=_consumed(NOW_MS))
    topics = (
        TopicSpec(f"jobs-{number}", producers=2, subscriptions=(each,), message_bytes=200, rate_in=300.0)
        for number, each in enumerate((well, stuck, well))
    )
    return cluster(
        NamespaceSpec("shop/work", topics=tuple(topics)),
        version="4.0.12",
        configuration={"unblockStuckSubscriptionEnabled": "true", "managedLedgerReadEntryTimeoutSeconds": "0"},
    )


def _flagged() -> ClusterSpec:
    reader = SubscriptionSpec("tasks", consumers=2, backlog=5_943, blocked=True, consumed_ms=NOW_MS - 1_800_000)
    topic = TopicSpec(
        "one-by-one",
        subscriptions=(reader,),
        message_bytes=157,
        backlog_bytes=934_725,
        storage_bytes=943_097,
        told=(("msgInCounter", 6_052), ("msgOutCounter", 109)),
    )
    return cluster(
        NamespaceSpec("shop/tasks", topics=(topic,)),
        version="3.0.4",
        configuration={"maxUnackedMessagesPerConsumer": "1", "maxUnackedMessagesPerSubscription": "0"},
    )


def _miscounted() -> ClusterSpec:
    """A subscription that has consumed everything, whose count says otherwise; another one is truly behind."""
    since = NOW_MS - 3_600_000
    sub0 = SubscriptionSpec("sub0", consumers=2, backlog=44_708, behind=0, consumed_ms=since, told=_consumed(since))
    nightly = SubscriptionSpec("nightly", backlog=40_000, consumed_ms=since, told=_consumed(since))
    topic = TopicSpec(
        "counted",
        subscriptions=(sub0, nightly),
        message_bytes=192,
        storage_bytes=305_110_652,
        told=(("msgInCounter", 1_584_209), ("msgOutCounter", 789_829)),
    )
    return cluster(NamespaceSpec("shop/counts", topics=(topic,)), version="2.8.1")


def _long_answers(look: int) -> ClusterSpec:
    """Two topics whose nodes in the metadata store are large, and brokers of which one waits for its answers."""
    history = TopicSpec(
        "history", producers=1, message_bytes=1_000, storage_bytes=400 * GIB, rate_in=5.0, ledgers=61_000
    )
    sparse = SubscriptionSpec(
        "sparse", consumers=2, backlog=900_000, unacked=2_000, ack_holes=240_000, rate_out=40.0, consumed_ms=NOW_MS
    )
    acked = TopicSpec("acked", producers=1, subscriptions=(sparse,), message_bytes=200, rate_in=40.0)
    slow = strained(metadata_reads=40_000 + 5_000 * look, metadata_read_ms=80.0, metadata_slow_reads=1_000 * look)
    return cluster(
        NamespaceSpec("shop/nodes", topics=(history, acked), policies=retained(-1), owner=0),
        broker_0=slow,
        configuration={
            "managedLedgerMaxLedgerRolloverTimeMinutes": "1",
            "managedLedgerMinLedgerRolloverTimeMinutes": "0",
            "managedLedgerMaxUnackedRangesToPersist": "1000000",
            "managedLedgerMaxUnackedRangesToPersistInMetadataStore": "300000",
            "managedLedgerInfoCompressionType": "NONE",
            "managedCursorInfoCompressionType": "NONE",
        },
    )


def _read_again(delayed: int, backlog: int) -> ClusterSpec:
    """A subscription whose only consumer has just connected, or is gone where nothing is delayed."""
    here = int(delayed > 0)
    later = SubscriptionSpec(
        "later", consumers=here, new_consumers=here, backlog=backlog, delayed=delayed, rate_out=1.0 * here
    )
    topic = TopicSpec("mails", producers=1, subscriptions=(later,), message_bytes=500, rate_in=2.0)
    return cluster(NamespaceSpec("shop/later", topics=(topic,)), configuration=IN_MEMORY)


def _overdue(oldest_s: int) -> ClusterSpec:
    reader = SubscriptionSpec(
        "sender",
        consumers=1,
        backlog=12,
        delayed=12,
        consumed_ms=NOW_MS - 5_400_000,
        told=_consumed(NOW_MS - 5_400_000),
    )
    topic = TopicSpec(
        "quiet",
        producers=1,
        subscriptions=(reader,),
        backlog_age_s=oldest_s,
        told=(("msgInCounter", 800),),
    )
    policies: dict[str, object] = {
        "delayed_delivery_policies": {"active": True, "tickTime": 1_000, "maxDeliveryDelayInMillis": 60_000}
    }
    return cluster(
        NamespaceSpec("shop/timers", topics=(topic,), policies=policies),
        version="4.2.2",
        configuration={
            **IN_MEMORY,
            "isDelayedDeliveryDeliverAtTimeStrict": "true",
            "delayedDeliveryTickTimeMillis": "1000",
        },
    )


def _unmerged(told_buckets: int) -> ClusterSpec:
    """Buckets as the series tells them, which counts the one that still fills."""
    reader = SubscriptionSpec(
        "mail", consumers=2, backlog=1_850_000, delayed=1_850_000, delayed_buckets=told_buckets - 1, rate_out=10.0
    )
    topic = TopicSpec("reminders", producers=2, subscriptions=(reader,), rate_in=10.0)
    return cluster(
        NamespaceSpec("shop/later", topics=(topic,)),
        version="5.0.0",
        configuration={"delayedDeliveryMaxNumBuckets": "2", "delayedDeliveryMinIndexCountPerBucket": "50000"},
    )


def _one_delay(backlog: int, oldest_s: int) -> ClusterSpec:
    reader = SubscriptionSpec("tomorrow", consumers=4, backlog=backlog, delayed=50_000, spans=50_001)
    topic = TopicSpec("day-after", producers=2, subscriptions=(reader,), backlog_age_s=oldest_s, rate_in=25.0)
    policies: dict[str, object] = {
        "delayed_delivery_policies": {"active": True, "tickTime": 1_000, "maxDeliveryDelayInMillis": 86_400_000}
    }
    return cluster(
        NamespaceSpec("shop/next", topics=(topic,), policies=policies),
        configuration={**IN_MEMORY, "delayedDeliveryFixedDelayDetectionLookahead": "50000"},
    )


def _pinned(spans: int) -> ClusterSpec:
    """All that came since the lost ledger is consumed, and nothing of it is deleted."""
    reader = SubscriptionSpec(
        "proc",
        consumers=3,
        backlog=49_998,
        ack_holes=2,
        spans=spans,
        rate_out=300.0,
        consumed_ms=NOW_MS,
        told=_consumed(NOW_MS),
    )
    topic = TopicSpec(
        "frames",
        producers=2,
        subscriptions=(reader,),
        message_bytes=200,
        backlog_bytes=spans * 200,
        storage_bytes=spans * 200,
        rate_in=300.0,
    )
    return cluster(
        NamespaceSpec("shop/video", topics=(topic,)),
        version="2.10.4",
        configuration={"autoSkipNonRecoverableData": "true"},
    )


FAULTS = (
    reported(
        "dispatcher-thinks-it-reads",
        "apache/pulsar#26454",
        "Six consumers ask for more and owe nothing, 2.3 million messages wait, and nothing is delivered, of one of"
        " three topics (partitions in the case). What the cursor says of its pending read is not made.",
        "The broker no longer delivers `jobs-1`: its dispatcher waits for a read that never ends. Unload this one"
        " topic, not its bundle; the consumers are well.",
        _undelivered(2_310_000),
        _undelivered(2_490_000),
        expected=(
            Expected(
                "subscription-stalled",
                "shop/work/jobs-1.*proc",
                r"(?i)broker (does|is|dispatch|has)|dispatch|consumers (ask|have|want)",
            ),
        ),
        allowed=UNBOUNDED,
        never=(moves("shop/work"), _loses("shop/work"), r"(?i)no consumer asks for more"),
    ),
    reported(
        "blocked-flag-without-unacked",
        "apache/pulsar#22657",
        "Both consumers, and here the subscription too, are marked as blocked, with no message unacknowledged; 5,943"
        " wait. They have 1,000 permits in place of 999.",
        "The mark of being blocked was not taken back: nothing is unacknowledged. Both consumers reconnect, or this"
        " topic is unloaded; a limit above 1, and an upgrade, help for good.",
        _flagged(),
        _flagged(),
        expected=(
            Expected(
                "subscription-blocked",
                "shop/tasks/one-by-one.*tasks",
                r"(?i)\bflag|taken back|left over|though (nothing|none|no |they hold)|holds? (0|nothing|no )|\b0 unack",
            ),
        ),
        allowed={"subscription-stalled": "nothing is delivered"},
        never=(moves("shop/tasks"), _loses("shop/tasks"), r"(?i)\b(do|does) not acknowledge|never acknowledge"),
        minutes_apart=5,
    ),
    reported(
        "backlog-figure-that-drifted",
        "apache/pulsar#5202",
        "Brokers count 44,708 messages that `sub0` has not consumed, by its cursor's position there are none; nobody"
        " publishes, and its consumers ask for more. Another subscription is truly behind.",
        "Silence is right: `sub0` waits for nothing, its count drifted, and the next load of the topic mends it.",
        *(_miscounted(),) * 3,
        never=("sub0", _loses("shop/counts"), moves("shop/counts")),
    ),
    reported(
        "zookeeper-answer-too-long",
        "apache/pulsar#24382",
        "Of one broker many reads of the metadata store take over a second; a topic of it has 61,000 ledgers, and a"
        " cursor keeps 240,000 ranges in the store. That answers were longer than the limit is in its log alone.",
        "Answers of ZooKeeper grow towards its limit, at which all requests of the broker are dropped. Name the broker"
        " and the two nodes: compression of both, rollover in hours, acknowledgements repaired.",
        *(_long_answers(look) for look in (1, 2)),
        expected=(
            Expected("metadata-latency", at(0), r"shop/nodes/history \(61,000 ledgers"),
            Expected("metadata-latency", at(0), r"shop/nodes/acked.*240,000 "),
        ),
        allowed={
            "retention-unbounded": "it is, and holds 400 GiB",
            "ack-holes": "its holes are many, whatever brokers persist",
            "cursor-not-persistable": "its state is large, too, as an entry of a ledger",
        },
        never=(moves("shop/nodes"), r"(?i)restart (the |all )?broker", r"(?i)network"),
    ),
    reported(
        "delay-index-thrown-away",
        "apache/pulsar#23912",
        "The only consumer of 310,000 delayed messages has just connected, is gone a minute later, and there anew after"
        " two more, with 150,000 indexed so far of 1.2 million. What is read from bookies is not made.",
        "Each time the only consumer leaves, the broker forgets its index and reads the whole backlog again: end the"
        " consumer's restarts, keep two connected, or use the bucket tracker.",
        _read_again(310_000, 1_200_000),
        _read_again(0, 1_200_100),
        _read_again(150_000, 1_200_200),
        expected=(Expected("connection-churn", "^persistent://shop/later/mails subscription later", "index"),),
        allowed=UNBOUNDED,
        never=(moves("shop/later"), _loses("shop/later"), r"(?i)unload", r"(?i)too slow"),
        minutes_apart=2,
    ),
    reported(
        "strict-delay-loses-its-timer",
        "apache/pulsar#25996",
        "Twelve delayed messages that may wait for 60 s at most are still there after 90 minutes, with a consumer that"
        " asks for more; brokers deliver strictly at the time.",
        "The messages are overdue: with strict delivery the timer can be lost until the next message is published."
        " Reconnect the consumer or publish one message; then strict delivery off, or an upgrade.",
        _overdue(4_800),
        _overdue(5_400),
        expected=(Expected("subscription-stalled", "shop/timers/quiet.*sender", r"(?i)strict|timer|overdue|past due"),),
        never=(moves("shop/timers"), _loses("shop/timers"), r"(?i)consumer \S+ (hangs|is stuck)"),
    ),
    reported(
        "bucket-limit-too-small-to-merge",
        "apache/pulsar#26241",
        "A subscription has 36 sealed buckets of delayed messages and 40 an hour later, where 2 are allowed.",
        "With a limit of 1, 2 or 3 every merge fails, so that buckets grow in number: delayedDeliveryMaxNumBuckets of"
        " 4 at least, or -1, and an upgrade. Nothing of it is moved meanwhile.",
        _unmerged(37),
        _unmerged(41),
        expected=(
            Expected(
                "delayed-bucket-count",
                "^persistent://shop/later/reminders$",
                r"(?i)merg\w+ (\w+ ){0,3}fail|fail\w* (\w+ ){0,3}merg|(1, 2|1 to 3|less than 4|below 4|at least 4)",
            ),
        ),
        allowed={"delayed-bucket-failing": "the merges do fail"},
        never=(moves("shop/later"), _loses("shop/later"), r"(?i)in-memory tracker (instead|helps)"),
        minutes_apart=60,
    ),
    reported(
        "fixed-delay-pauses-reading",
        "apache/pulsar#23353",
        "All messages of a topic are delayed by a day; brokers read 50,000 ahead and stop, so that 445,000 look as if"
        " they were not delayed, and four consumers get nothing. The oldest is 5.3 hours old.",
        "Silence is right: nothing is due before the oldest is a day old.",
        _one_delay(480_000, 18_600),
        _one_delay(495_000, 19_200),
        never=(moves("shop/next"), _loses("shop/next"), r"(?i)\b(clear|skip) the backlog"),
    ),
    reported(
        "lost-ledger-pins-the-cursor",
        "apache/pulsar#18620",
        "49,998 messages of a lost ledger stay in the backlog for a day, none of them unacknowledged, and the 26"
        " million consumed after them are kept. Ledgers are not shown one by one, so that none has to be named.",
        "The cursor is pinned before entries that no longer exist, and no consumer holds them: skip the subscription"
        " over the lost ledger, upgrade, and look into how it got lost.",
        _pinned(120_001),
        _pinned(120_001 + 25_920_000),
        expected=(
            Expected(
                "ack-holes",
                "shop/video/frames",
                r"(?i)\blost\b|no longer exist|no consumer|nobody holds|none (of them )?(is|are) (held|delivered)",
            ),
        ),
        allowed={**UNBOUNDED, "stored-though-consumed": "what follows the lost ledger is consumed, and stays"},
        never=(
            moves("shop/video"),
            _loses("shop/video"),
            r"(?i)consumer \S+ (\w+ ){0,4}(does not acknowledge|hangs|is stuck)",
        ),
        minutes_apart=1_440,
    ),
)
