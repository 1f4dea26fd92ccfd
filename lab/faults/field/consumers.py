"""Reports about single consumers: who holds messages, who acknowledges, and who is only idle."""

from typing import Any

from lab.faults.fault import Expected
from lab.faults.field.clients import DAY_MIN, Members, ago_ms
from lab.faults.field.reported import moves, reported
from lab.faults.simulated._clusters import GIB, cluster, held
from lab.simulator import ClusterSpec, ConsumerSpec, NamespaceSpec, SubscriptionSpec, TopicSpec

HOUR_MIN = 60
NOW_MS = ago_ms(0)


def _topic(name: str, subscription: SubscriptionSpec, policies: dict[str, object], **topic: Any) -> ClusterSpec:
    namespace, _, short = name.rpartition("/")
    return cluster(
        NamespaceSpec(namespace, topics=(TopicSpec(short, subscriptions=(subscription,), **topic),), policies=policies)
    )


def _slow_beside_fast(look: int) -> ClusterSpec:
    """Two consumers of a full topic: one works, the other has done nothing for five hours."""
    slow_ms = ago_ms(5 * HOUR_MIN + 10 * look)
    fast = ConsumerSpec(12, permits=988, rate_out=900.0, ack_rate=900.0, acked_ms=NOW_MS, consumed_ms=NOW_MS)
    slow = ConsumerSpec(1000, permits=0, acked_ms=slow_ms, consumed_ms=slow_ms)
    billing = SubscriptionSpec.of("billing", fast, slow, backlog=1030, spans=2_400_000, ack_holes=410)
    return _topic(
        "shop/orders-in/in",
        billing,
        held(10 * GIB, "producer_exception"),
        message_bytes=4_600,
        backlog_bytes=11_811_160_064,
        storage_bytes=11_900_000_000,
    )


def _storm(backlog: int) -> ClusterSpec:
    """Thirty consumers that hold 614,260 messages, get them again, and acknowledge three a second in all."""
    each = ConsumerSpec(
        20_476, permits=0, rate_out=41.7 / 30, ack_rate=0.1, acked_ms=NOW_MS, consumed_ms=NOW_MS, told=()
    )
    sink = SubscriptionSpec.of("sink", *(each,) * 30, backlog=backlog, redeliver_rate=1825.0)
    return _topic("shop/clicks/clicks", sink, {}, producers=4, message_bytes=1_533, rate_in=130.0)


def _poison() -> ClusterSpec:
    """320 messages that fail, and are delivered again 498 times a second."""
    each = ConsumerSpec(155, permits=845, rate_out=250.0, ack_rate=0.2, acked_ms=NOW_MS, consumed_ms=NOW_MS)
    mail = SubscriptionSpec.of("mail", each, each, backlog=320, redeliver_rate=498.0)
    topic = TopicSpec("send", producers=1, subscriptions=(mail,), rate_in=0.4, backlog_age_s=172_800)
    dead = TopicSpec("send-mail-DLQ", producers=1)
    return cluster(NamespaceSpec("shop/mailing", topics=(topic, dead)))


def _full_and_idle(left: int) -> ClusterSpec:
    """Four of twenty consumers came first, and have all 4,000 messages in their queues."""
    full = ConsumerSpec(left // 4, permits=0, ack_rate=10.0, acked_ms=NOW_MS, consumed_ms=ago_ms(5))
    idle = ConsumerSpec(connected_ms=ago_ms(3))
    jobs = SubscriptionSpec.of("jobs", *(full,) * 4, *(idle,) * 16, backlog=left)
    return _topic("shop/work/jobs", jobs, {}, message_bytes=500)


def _left_by_an_application() -> ClusterSpec:
    """Sixteen topics with two subscriptions each, of which nobody has consumed anything for 40 days."""
    topics = tuple(
        TopicSpec(
            f"by-dev-rootcoord-dml_{number}",
            producers=1,
            subscriptions=tuple(
                SubscriptionSpec(
                    f"by-dev-dataNode-{part}-{number}",
                    kind="Exclusive",
                    backlog=56_171_694 + 15 * number,
                    consumed_ms=ago_ms(40 * DAY_MIN),
                )
                for part in (12, 17)
            ),
            message_bytes=48,
            backlog_bytes=2_673_680_489,
            storage_bytes=2_673_680_489,
            rate_in=0.5,
        )
        for number in range(16)
    )
    return cluster(NamespaceSpec("ai/default", topics=topics))


def _old_beside_new(look: int) -> ClusterSpec:
    """Four consumers of a Key_Shared subscription; the first holds 13 messages, and those that joined later wait."""
    old_ms, later = ago_ms(50 + 10 * look), {f"later-{number}": "75:1204" for number in range(3)}
    old = ConsumerSpec(13, permits=987, acked_ms=old_ms, consumed_ms=old_ms)
    new = ConsumerSpec(connected_ms=ago_ms(45 + 10 * look))
    told = (("consumersAfterMarkDeletePosition", Members(later)),)
    keys = SubscriptionSpec.of("5382f", old, new, new, new, kind="Key_Shared", backlog=120 + 60 * look, told=told)
    topic = TopicSpec("orders", producers=1, subscriptions=(keys,), message_bytes=500, rate_in=0.1)
    return cluster(NamespaceSpec("shop/keys", topics=(topic,)), version="2.7.1")


FAULTS = (
    reported(
        "left-by-an-application-40-days-ago",
        "milvus-io/milvus#47233",
        "Thirty-two subscriptions on sixteen topics hold 56 million entries each; nobody has consumed anything for 40"
        " days, by the topics' own times. The first look.",
        "Name the subscriptions, at the first look: their application is gone. A quota would be filled by what nobody"
        " reads, and shut its producers out.",
        _left_by_an_application(),
        expected=(Expected("subscription-abandoned", "ai/default/by-dev-rootcoord-dml_", "nothing of it moved since"),),
        never=(moves("ai/default"), r"^Delete .*ai/default", r"(?i)clear .*backlog"),
    ),
    reported(
        "held-up-by-an-old-key-shared-consumer",
        "apache/pulsar#10167",
        "The first consumer of a Key_Shared subscription holds 13 messages that it does not acknowledge; three that"
        " joined later get nothing.",
        "The old consumer holds the others up: the type and that they wait are to be said, and the old consumer named."
        " It has to acknowledge or be closed.",
        *(_old_beside_new(look) for look in range(2)),
        expected=(
            Expected("subscription-stalled", "shop/keys/orders subscription", r"Key_Shared.*5382f-0 at.*joined later"),
        ),
        never=(moves("shop/keys"), r"(?i)(clear|skip) ", r"(?i)add consumers"),
    ),
    reported(
        "slow-consumer-fills-quota",
        "apache/pulsar#15284",
        "Producers of a topic with 1,030 messages left are refused: its size counts from the first message that is not"
        " acknowledged, and consumer `billing-1` (`slow` of the case) has held 1,000 for five hours. Where the cursor"
        " stands is not made.",
        "Critical: name topic, subscription and the slow consumer, which has to acknowledge or be closed; its messages"
        " go to the other, and the size falls. For later: an ack timeout or a smaller receiver queue.",
        *(_slow_beside_fast(look) for look in range(2)),
        expected=(
            Expected("backlog-near-quota", "^persistent://shop/orders-in/in$", r"billing-1 at 10\.0\.0\.1"),
            Expected("subscription-stalled", "subscription billing$", r"billing-1 at 10\.0\.0\.1"),
        ),
        allowed={
            "producer-hold-restart-risk": "over its quota, the topic lets no producer in, now or after a restart",
            "quota-stuck": "the quota counts all that follows the first message, which is no backlog",
            "ack-holes": "the messages that are held leave holes",
        },
        never=(
            moves("shop/orders-in"),
            r"(?i)(clear|skip) .*(backlog|messages)",
            r"^Set .*quota.*shop/orders-in",
            r"(?i)add consumers",
            "consumer_backlog_eviction",
        ),
    ),
    reported(
        "unacked-limit-passed-and-redelivery-storm",
        "apache/pulsar#22534",
        "Thirty consumers hold 614,260 messages where 200,000 are allowed, get 1,825 a second again, and"
        " acknowledge three.",
        "Critical for the subscription: its consumers receive and do not acknowledge, the same messages go round, and"
        " the brokers' limit is passed and not enforced. Name subscription and worst consumers: acknowledgement, ack"
        " timeouts and receiver queues are to be repaired.",
        _storm(63_122_123),
        _storm(63_200_000),
        expected=(Expected("subscription-stalled", "^persistent://shop/clicks/clicks subscription sink$", "sink-"),),
        allowed={
            "subscription-blocked": "more is held than brokers allow",
            "backlog-growing": "78,000 messages more in ten minutes",
            "backlog-quota-missing": "a backlog of 97 GB without a quota",
            "ack-holes": "what is held",
        },
        never=(
            moves("shop/clicks"),
            r"(?i)(raise|lift|switch off|disable) .*maxUnackedMessagesPerSubscription",
            r"(?i)add consumers",
            r"(?i)clear .*backlog",
        ),
    ),
    reported(
        "poison-messages-go-round",
        "apache/pulsar-site#1117",
        "320 messages fail and are delivered again 498 times a second; none reaches the dead letter topic in two days."
        " That the bundle was moved three times is not made.",
        "Warning: the count of redeliveries is lost with each move, restart and reconnect, so they never reach the dead"
        " letter topic. Name topic and subscription: retry topic, backoff, and no more moves of the bundle.",
        *(_poison() for _ in range(3)),
        expected=(Expected("subscription-stalled", "^persistent://shop/mailing/send subscription mail$"),),
        never=(moves("shop/mailing"), r"(?i)(clear|skip) ", r"(?i)add consumers", r"(?i)consumer is too slow"),
        minutes_apart=5,
    ),
    reported(
        "idle-consumers-beside-full-ones",
        "apache/pulsar#10390",
        "Four of twenty consumers have all 4,000 messages in their queues and work on them; sixteen that came later"
        " have nothing.",
        "Silence is right: all messages were in the queues of those who came first, and work goes on.",
        _full_and_idle(4_000),
        _full_and_idle(1_000),
        never=(moves("shop/work"), r"(?i)(clear|skip) ", r"(?i)dispatcher"),
        minutes_apart=5,
    ),
)
