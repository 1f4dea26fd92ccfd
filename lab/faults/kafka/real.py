"""Kafka for real: killed brokers, replicas that cannot follow, leaders on one broker, groups that are behind."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from lab.faults.fault import Expected, RealKafkaFault
from lab.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from lab.faults.fault import Change, Making
    from lab.kafka.cluster import KafkaLab
    from lab.kafka.hands import KafkaHands

    Replicas = Sequence[Sequence[int]]

ALL, KILLED = [1, 2, 3], 3
SHOWN_WITHIN_S = 120.0
HOUR_S = 3600.0
GROUP, TOPIC = "billing", "orders"
BURST, MESSAGE_BYTES = 200, 50_000
"""Messages to each of the partitions that a throttled broker has to copy, and their size."""

OUT, FLAPPING, LEADERS = "kafka-replicas-out-of-sync", "kafka-replicas-flapping", "kafka-leaders-uneven"
FAILOVER, LAG = "kafka-failover-time", "kafka-group-lag"


def spread(partitions: int, replicas: int = 3) -> list[list[int]]:
    """Replicas of a topic's partitions, dealt out to the brokers one by one."""
    return [[(number + each) % 3 + 1 for each in range(replicas)] for number in range(partitions)]


PAIRS = [[1, 2], [2, 3], [3, 1], [1, 3], [2, 1], [3, 2]] * 55
"""Partitions of a topic whose two replicas are dealt out so that both other brokers take over from one."""


@contextlib.contextmanager
def _with_topics(lab: KafkaLab, *names: str) -> Iterator[KafkaHands]:
    """Hands, and an end of these topics, and of whatever is out of sync."""
    hands = lab.hands()
    try:
        yield hands
    finally:
        hands.clear(names)
        hands.until_in_sync()


def _topic(replicas: Replicas, **settings: str) -> Callable[[KafkaLab], Making]:
    """One topic, and nothing else."""

    @contextlib.contextmanager
    def made(lab: KafkaLab) -> Iterator[None]:
        with _with_topics(lab, TOPIC) as hands:
            hands.create(TOPIC, replicas, **settings)
            yield

    return made


def _killed(
    replicas: Replicas, *, back: bool = False, elected: bool = False, **settings: str
) -> Callable[[KafkaLab], Making]:
    """A topic, one of whose brokers is killed, and runs again or not; its leaders are elected or not."""

    @contextlib.contextmanager
    def made(lab: KafkaLab) -> Iterator[None]:
        with _with_topics(lab, TOPIC) as hands:
            hands.create(TOPIC, replicas, **settings)
            led = hands.leads(KILLED)
            lab.kill(KILLED)
            try:
                wait_until(lambda: not hands.leads(KILLED), "others lead", SHOWN_WITHIN_S, 0.3)
                if back:
                    _started(lab, hands)
                if elected:
                    hands.elect()
                    wait_until(lambda: hands.leads(KILLED) >= led, "it leads again", SHOWN_WITHIN_S, 0.3)
                yield
            finally:
                if not back:
                    _started(lab, hands)
                hands.elect()

    return made


def _started(lab: KafkaLab, hands: KafkaHands) -> None:
    lab.start_node(KILLED)
    lab.wait_for(ALL)
    hands.until_in_sync()


FOLLOWED = [[1, KILLED], [2, KILLED]]
"""Partitions that others lead, and the throttled broker copies."""


def _fall_behind(lab: KafkaLab, hands: KafkaHands, topic: str, messages: int = BURST) -> None:
    """A topic is published to while a broker is away, which may then not copy it: throttles spare replicas in sync."""
    hands.throttle(topic, KILLED, on=True)
    lab.kill(KILLED)
    try:
        hands.publish(topic, messages * len(FOLLOWED), partitions=len(FOLLOWED), size=MESSAGE_BYTES)
    finally:
        lab.start_node(KILLED)
        lab.wait_for(ALL)
    _until_out(hands, len(FOLLOWED) if messages else 0)


def _until_out(hands: KafkaHands, replicas: int) -> None:
    wait_until(
        lambda: hands.out_of_sync() == replicas,
        f"{replicas} replicas are out of sync",
        SHOWN_WITHIN_S,
        0.3,
        instead=hands.out_of_sync,
    )


def _throttled(messages: int) -> Callable[[KafkaLab], Making]:
    """A throttle that was forgotten, a broker that was restarted, and so many messages that it missed."""

    @contextlib.contextmanager
    def made(lab: KafkaLab) -> Iterator[None]:
        with _with_topics(lab, TOPIC) as hands:
            hands.create(TOPIC, FOLLOWED)
            try:
                _fall_behind(lab, hands, TOPIC, messages)
                yield
            finally:
                hands.throttle(TOPIC, KILLED, on=False)

    return made


def _in_turns(*, again: bool) -> Callable[[KafkaLab], Making]:
    """Replicas of a topic fall out of sync; before the second look they are back, and those of another one are out."""
    second = "payments"

    @contextlib.contextmanager
    def made(lab: KafkaLab) -> Iterator[Change]:
        with _with_topics(lab, TOPIC, second) as hands:
            for topic in (TOPIC, second):
                hands.create(topic, FOLLOWED)

            def change(observed: int) -> None:
                if not observed:
                    _fall_behind(lab, hands, TOPIC)
                    return
                hands.throttle(TOPIC, KILLED, on=False)
                _until_out(hands, 0)
                if again:
                    _fall_behind(lab, hands, second)

            try:
                yield change
            finally:
                for topic in (TOPIC, second):
                    hands.throttle(topic, KILLED, on=False)

    return made


def _group(
    messages: int, committed: int, *, seconds_ago: float = 3 * HOUR_S, deleted: int = 0
) -> Callable[[KafkaLab], Making]:
    """A partition with messages of a time, of which a group has committed some, and some may be deleted."""

    @contextlib.contextmanager
    def made(lab: KafkaLab) -> Iterator[None]:
        with _with_topics(lab, TOPIC) as hands:
            hands.create(TOPIC, [ALL])
            hands.publish(TOPIC, messages, seconds_ago=seconds_ago)
            hands.commit(GROUP, TOPIC, [committed])
            if deleted:
                hands.delete_before(TOPIC, deleted)
            yield

    return made


BILLING = f"^group {GROUP}$"

FAULTS = (
    RealKafkaFault(
        name="kafka-idle",
        about="Healthy: three brokers, and a topic whose replicas and leaders are even.",
        made=_topic(spread(12)),
        twin_of=("kafka-lone-replicas",),
    ),
    RealKafkaFault(
        name="kafka-broker-killed",
        about="One of three brokers was killed; two replicas of every partition are left.",
        expected=(Expected(OUT, "^broker 3$", "which is down"),),
        made=_killed(spread(12)),
    ),
    RealKafkaFault(
        name="kafka-killed-below-minimum",
        about="One of three brokers was killed, and a topic's own `min.insync.replicas` is 3: nothing can be written.",
        expected=(Expected(OUT, "^broker 3$", "12 partitions with fewer in sync than min.insync.replicas refuse"),),
        made=_killed(spread(12), min_insync_replicas="3"),
    ),
    RealKafkaFault(
        name="kafka-killed-without-another",
        about="A broker was killed that had the only replica of its partitions.",
        expected=(Expected(OUT, "^broker 3$", "4 partitions without a leader cannot be used"),),
        allowed={FAILOVER: "the other brokers have partitions of one replica as well"},
        made=_killed(spread(12, 1)),
    ),
    RealKafkaFault(
        name="kafka-killed-and-back",
        about="Healthy: a broker was killed and runs again; its replicas have caught up.",
        made=_killed(spread(12), back=True, elected=True, min_insync_replicas="3"),
        twin_of=("kafka-broker-killed", "kafka-killed-below-minimum", "kafka-killed-without-another"),
    ),
    RealKafkaFault(
        name="kafka-lone-replicas",
        about="A topic of six partitions has one replica of each, on one broker.",
        expected=(Expected(FAILOVER, "^broker 2$", "6 partitions with no other replica in sync"),),
        made=_topic([[2]] * 6),
    ),
    RealKafkaFault(
        name="kafka-follower-throttled",
        about="A broker was restarted, and may copy a topic at a byte a second: a throttle was forgotten.",
        expected=(Expected(OUT, "^broker 3$", "2 are out of sync"),),
        allowed={FAILOVER: "of two replicas, one is in sync: its leader is the only one"},
        made=_throttled(BURST),
    ),
    RealKafkaFault(
        name="kafka-throttled-and-idle",
        about="Healthy: the same throttle and restart, and a topic that nobody writes to.",
        made=_throttled(0),
        twin_of=("kafka-follower-throttled",),
    ),
    RealKafkaFault(
        name="kafka-replicas-in-turns",
        about="Between two looks, a broker's replicas of one topic come back, and those of another fall out of sync.",
        expected=(Expected(FLAPPING, "^broker 3$"), Expected(OUT, "^broker 3$")),
        allowed={FAILOVER: "of two replicas, one is in sync: its leader is the only one"},
        observations=2,
        made=_in_turns(again=True),
    ),
    RealKafkaFault(
        name="kafka-replicas-come-back",
        about="Healthy: a broker's replicas were out of sync at the first look, and are back at the second.",
        observations=2,
        made=_in_turns(again=False),
        twin_of=("kafka-replicas-in-turns",),
    ),
    RealKafkaFault(
        name="kafka-leaders-on-one-broker",
        about="One broker is the first replica of all 120 partitions of a topic, and leads them.",
        expected=(Expected(LEADERS, "^broker 1$", "so an election changes nothing"),),
        made=_topic([ALL] * 120),
    ),
    RealKafkaFault(
        name="kafka-leaders-spread",
        about="Healthy: the same 120 partitions, led by each broker alike.",
        made=_topic(spread(120)),
        twin_of=("kafka-leaders-on-one-broker",),
    ),
    RealKafkaFault(
        name="kafka-leaders-not-given-back",
        about="A broker was killed and runs again; others still lead its 110 partitions, as nothing elects by itself.",
        expected=(
            Expected(
                LEADERS, "^broker 3$", r"that it should lead, others lead 11\d; auto.leader.rebalance.enable is off"
            ),
        ),
        made=_killed(PAIRS, back=True),
    ),
    RealKafkaFault(
        name="kafka-leaders-given-back",
        about="Healthy: the same, after an election.",
        made=_killed(PAIRS, back=True, elected=True),
        twin_of=("kafka-leaders-not-given-back",),
    ),
    RealKafkaFault(
        name="kafka-group-behind",
        about="A group is 300 messages behind, the oldest of which is three hours old.",
        expected=(Expected(LAG, BILLING, "is 2 h old or older; it is 300 messages behind"),),
        made=_group(600, 300),
    ),
    RealKafkaFault(
        name="kafka-group-lost-messages",
        about="Of 600 messages that a group wants, 200 were deleted before it read them.",
        expected=(Expected(LAG, BILLING, "of which 200 were deleted unread"),),
        made=_group(600, 0, deleted=200),
    ),
    RealKafkaFault(
        name="kafka-group-beyond-the-end",
        about="A group has committed offset 5,000 of a partition that ends at 600.",
        expected=(Expected(LAG, BILLING, "committed offset 5,000 of orders-0, which ends at 600"),),
        made=_group(600, 5_000),
    ),
    RealKafkaFault(
        name="kafka-group-current",
        about="Healthy: a group has read all messages, which are three hours old.",
        made=_group(600, 600),
        twin_of=("kafka-group-behind", "kafka-group-beyond-the-end"),
    ),
    RealKafkaFault(
        name="kafka-group-read-before-deletion",
        about="Healthy: 200 messages were deleted, all of which a group had read.",
        made=_group(600, 600, deleted=200),
        twin_of=("kafka-group-lost-messages",),
    ),
    RealKafkaFault(
        name="kafka-group-behind-for-a-minute",
        about="Healthy: a group is 300 messages behind, none of which is older than a minute or two.",
        made=_group(600, 300, seconds_ago=90),
        twin_of=("kafka-group-behind",),
    ),
    RealKafkaFault(
        name="kafka-group-without-the-last-marker",
        about="Healthy: a group is a message behind for hours, as behind the end of a transaction.",
        made=_group(600, 599),
        twin_of=("kafka-group-behind",),
    ),
)
