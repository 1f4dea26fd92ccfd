"""Backlogs near and over their quotas in size: what each policy makes of it, and quotas that nobody checks.

A quota is set once its backlog is there, by how large brokers say that this is: how full it is then depends neither on
the client nor on batching.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal

from lab.faults.clients.work import Language
from lab.faults.fault import Change, Expected, RealFault
from lab.faults.real.ground import SHOWN_WITHIN_S, Ground, fault_on_ground
from lab.faults.real.operator import EVICTION, EXCEPTION, HOLD, SIZE, recently_shown
from lab.waiting import wait_until

MESSAGES, MESSAGE_BYTES = 1000, 1000
PARTITIONS = 8

NEAR = Expected("backlog-near-quota")
RISK = Expected("producer-hold-restart-risk")
UNCHECKED = (("backlogQuotaCheckEnabled", "false"),)

Level = Literal["namespace", "topic"]
Arrange = Callable[[Ground], Change | None]


def backlog(here: Ground, topic: str, messages: int = MESSAGES, size: int = MESSAGE_BYTES) -> int:
    """Publishes messages that nobody consumes, and returns how large brokers say that their backlog is."""
    here.subscription(topic)
    here.send(topic, messages, size)
    _until_there(here, topic, messages * size)
    return int(recently_shown(here.lab)[topic]["backlogSize"])


def _until_there(here: Ground, topic: str, size: int) -> None:
    """Waits until brokers show that much, and no more comes: what was published at once is no load that lasts."""
    here.until(topic, lambda shown: shown["backlogSize"] >= size, f"{size:,} bytes of backlog")
    here.until_quiet(topic)


def limit(here: Ground, topic: str, size: int, policy: str, level: Level = "namespace") -> None:
    """Sets a quota in size and waits until it is there."""
    here.admin.set_quota(here.namespace if level == "namespace" else topic, SIZE, size, policy)
    if level == "topic":
        until_own_quota(here, topic)


def until_own_quota(here: Ground, topic: str) -> None:
    """Waits until a topic has a quota of its own: the policy is a message that its broker has to read first."""
    wait_until(lambda: here.admin.has_policy(topic, "backlogQuotaMap"), f"{topic} has its own quota", SHOWN_WITHIN_S)


def _filled(policy: str, percent: int, level: Level = "namespace") -> Arrange:
    """A backlog of that share of its quota."""

    def arrange(here: Ground) -> None:
        topic = here.topic()
        limit(here, topic, backlog(here, topic) * 100 // percent, policy, level)

    return arrange


def _own_quota(percent_of_own: int, percent_of_namespace: int, policy: str) -> Arrange:
    """Such shares of the topic's own quota, which counts, and of its namespace's, which does not."""

    def arrange(here: Ground) -> None:
        topic = here.topic()
        size = backlog(here, topic)
        limit(here, topic, size * 100 // percent_of_own, policy, "topic")
        limit(here, topic, size * 100 // percent_of_namespace, policy)

    return arrange


def _partitions(percents: Sequence[int], policy: str, level: Level = "namespace") -> Arrange:
    """A partition for each share of the quota, which holds for every partition by itself."""

    def arrange(here: Ground) -> None:
        topic = here.topic()
        here.admin.create_partitions(topic, len(percents))
        here.subscription(topic)
        parts = [f"{topic}-partition-{number}" for number in range(len(percents))]
        for part, percent in zip(parts, percents, strict=True):
            here.send(part, MESSAGES * percent // 100, MESSAGE_BYTES)
        for part, percent in zip(parts, percents, strict=True):
            _until_there(here, part, MESSAGES * percent // 100 * MESSAGE_BYTES)
        fullest = max(range(len(percents)), key=lambda number: percents[number])
        size = int(recently_shown(here.lab)[parts[fullest]]["backlogSize"])
        here.admin.set_quota(
            here.namespace if level == "namespace" else topic, SIZE, size * 100 // percents[fullest], policy
        )
        if level == "topic":
            until_own_quota(here, topic)

    return arrange


def _consumed(here: Ground) -> None:
    """Three times as much as the quota went through, and is consumed."""
    topic = here.topic()
    here.take(topic)
    here.send(topic, 3 * MESSAGES, MESSAGE_BYTES)
    here.until(
        topic,
        lambda shown: shown["msgInCount"] >= 3 * MESSAGES and shown["subscriptions"]["s"]["msgBacklog"] == 0,
        "all is consumed",
    )
    limit(here, topic, MESSAGES * MESSAGE_BYTES, HOLD)


def _no_quota(here: Ground) -> None:
    backlog(here, here.topic())


def _evicted_again_and_again(here: Ground) -> Change:
    """It fills and is evicted all the time; looked at where it is full again."""
    quota, topic = MESSAGES * MESSAGE_BYTES, here.topic()
    here.subscription(topic)
    limit(here, topic, quota, EVICTION)
    here.flow(topic, 10, MESSAGE_BYTES)
    here.send(topic, MESSAGES * 95 // 100, MESSAGE_BYTES)
    here.until(
        topic,
        lambda shown: shown["bytesInCount"] > 1.05 * quota and shown["backlogSize"] < quota,
        "something was evicted and more came",
    )
    return lambda _observed: here.until(topic, lambda shown: shown["backlogSize"] > 0.85 * quota, "it is full again")


def _evicted_once(here: Ground) -> None:
    """A backlog that was evicted, and nobody adds to what was left."""
    topic = here.topic()
    size = backlog(here, topic)
    limit(here, topic, size // 2, EVICTION)
    here.until(topic, lambda shown: shown["backlogSize"] < size // 2, "it is evicted")
    limit(here, topic, 2 * size, EVICTION)


def _one_gap_in_front(percent: int) -> Arrange:
    """One message that is never acknowledged, in front of 16 MB that are: the quota counts them all."""
    messages, size = 1000, 16_000

    def arrange(here: Ground) -> None:
        topic = here.topic()
        consumer = here.shared(topic)
        here.send(topic, messages, size)
        for _ in range(messages):
            message = consumer.receive(timeout_millis=20_000)
            if message.message_id().entry_id():
                consumer.acknowledge(message)
        here.until(topic, lambda shown: shown["subscriptions"]["s"]["msgBacklog"] == 1, "one message is left")
        held = int(recently_shown(here.lab)[topic]["backlogSize"])
        here.admin.set_quota(here.namespace, SIZE, held * 100 // percent, HOLD)
        if percent > 100:  # noqa: PLR2004 - all of the quota
            here.until(topic, lambda shown: not shown["publishers"], "its quota cut the producer off")

    return arrange


def _size(
    name: str,
    about: str,
    arrange: Arrange,
    *expected: Expected,
    client: Language = "python",
    batched: bool | None = None,
    **label: Any,
) -> RealFault:
    """A fault about a quota in size."""
    return fault_on_ground(name, about, arrange, expected=expected, client=client, batched=batched, **label)


HOLDING = (
    _size("size-near-hold", "A backlog of 86 % of a size quota that holds producers.", _filled(HOLD, 86), NEAR),
    _size(
        "size-half-hold",
        "Healthy: a backlog of 50 % of a size quota that holds producers.",
        _filled(HOLD, 50),
        twin_of=("size-near-hold", "restart-risk"),
    ),
    _size(
        "restart-risk",
        "A backlog of 94 % of a size quota that holds producers: a restart may find it exceeded.",
        _filled(HOLD, 94),
        NEAR,
        RISK,
        batched=True,
    ),
    _size(
        "size-over-hold",
        "A backlog over a size quota that holds producers.",
        _filled(HOLD, 110),
        NEAR,
        RISK,
        batched=True,
        quick=True,
    ),
    _size(
        "size-over-hold-java",
        "A backlog over a topic's own size quota that holds producers.",
        _filled(HOLD, 125, "topic"),
        NEAR,
        RISK,
        client="java",
        quick=True,
    ),
    _size(
        "size-all-consumed",
        "Healthy: three times the quota went through a topic and is consumed.",
        _consumed,
        twin_of=("size-over-hold", "size-over-hold-java"),
        client="java",
        quick=True,
    ),
)

REFUSING = (
    _size(
        "size-near-exception",
        "A backlog of 86 % of a size quota that refuses producers.",
        _filled(EXCEPTION, 86),
        NEAR,
        batched=True,
    ),
    _size(
        "size-near-exception-topic",
        "A backlog of 85 % of a topic's own size quota that refuses producers.",
        _filled(EXCEPTION, 85, "topic"),
        NEAR,
        client="go",
    ),
    _size(
        "size-70-exception",
        "Healthy: a backlog of 70 % of a topic's own size quota that refuses producers.",
        _filled(EXCEPTION, 70, "topic"),
        twin_of=("size-near-exception-topic", "size-near-exception", "restart-risk-exception", "size-over-exception"),
        client="go",
        batched=False,
    ),
    _size(
        "restart-risk-exception",
        "A backlog of 93 % of a topic's own size quota that refuses producers.",
        _filled(EXCEPTION, 93, "topic"),
        NEAR,
        RISK,
        client="java",
        batched=False,
    ),
    _size(
        "size-over-exception",
        "A backlog over a size quota that refuses producers.",
        _filled(EXCEPTION, 110),
        NEAR,
        RISK,
        batched=True,
    ),
)

EVICTING = (
    _size("size-near-eviction", "A backlog of 86 % of a size quota that evicts.", _filled(EVICTION, 86), NEAR),
    _size(
        "size-near-eviction-java",
        "A backlog of 97 % of a size quota that evicts: the next check loses messages.",
        _filled(EVICTION, 97),
        NEAR,
        client="java",
    ),
    _size(
        "size-half-eviction",
        "Healthy: a backlog of 50 % of a size quota that evicts.",
        _filled(EVICTION, 50),
        twin_of=("size-near-eviction-java", "size-near-eviction"),
        client="java",
    ),
    _size(
        "size-evicted-again",
        "A producer that nobody consumes from, whose backlog is evicted whenever the brokers look at its quota.",
        _evicted_again_and_again,
        NEAR,
        batched=True,
    ),
    _size(
        "size-evicted-once",
        "Healthy by now: a backlog of which most was evicted, below a quota that was raised since.",
        _evicted_once,
        twin_of=("size-evicted-again",),
    ),
)

LEVELS = (
    _size(
        "own-quota-below",
        "A topic at 90 % of its own size quota, in a namespace whose quota would have room.",
        _own_quota(90, 5, EVICTION),
        NEAR,
        batched=True,
    ),
    _size(
        "own-quota-above",
        "Healthy: a topic at 20 % of its own size quota, in a namespace whose quota it would exceed.",
        _own_quota(20, 150, HOLD),
        twin_of=("own-quota-below",),
    ),
    _size(
        "one-partition-near",
        "One of eight partitions is at 88 % of the quota, which holds for each, the others at 5 %.",
        _partitions((5, 5, 5, 88, 5, 5, 5, 5), EXCEPTION),
        Expected("backlog-near-quota", "-partition-3$"),
        batched=True,
    ),
    _size(
        "partitions-own-quota",
        "Four partitions of a topic with a quota of its own, one at 92 % of it.",
        _partitions((10, 92, 10, 10), EVICTION, "topic"),
        Expected("backlog-near-quota", "-partition-1$"),
        client="go",
    ),
    _size(
        "half-full-partitions",
        "Healthy: each of eight partitions is at 50 % of the quota, all together at four times as much.",
        _partitions((50,) * PARTITIONS, HOLD),
        twin_of=("one-partition-near", "partitions-own-quota"),
        batched=True,
    ),
)

STUCK = (
    _size(
        "quota-stuck",
        "One message that nobody acknowledges in front of many that are: producers are cut off by no backlog.",
        _one_gap_in_front(200),
        Expected("quota-stuck"),
        NEAR,
        RISK,
    ),
    _size(
        "gap-below-quota",
        "Healthy enough: one message that nobody acknowledges in front of many that are, at 40 % of the quota.",
        _one_gap_in_front(40),
        twin_of=("quota-stuck",),
    ),
)

NOT_CHECKED = (
    _size(
        "unchecked-quota-half-full",
        "Brokers that check no quota, and a namespace that has one.",
        _filled(HOLD, 50),
        Expected("quota-check-disabled"),
        settings=UNCHECKED,
    ),
    _size(
        "unchecked-quota-exceeded",
        "Brokers that check no quota, and a backlog over one: the producer goes on until it has to come back.",
        _filled(HOLD, 130),
        Expected("quota-check-disabled"),
        NEAR,
        RISK,
        settings=UNCHECKED,
        client="java",
    ),
    _size(
        "unchecked-eviction-exceeded",
        "Brokers that check no quota, and a backlog of twice what they should evict.",
        _filled(EVICTION, 200),
        Expected("quota-check-disabled"),
        NEAR,
        settings=UNCHECKED,
        client="go",
    ),
    _size(
        "unchecked-without-quota",
        "Healthy enough: brokers that check no quota, and no namespace that has one.",
        _no_quota,
        settings=UNCHECKED,
        alone=True,
        twin_of=("unchecked-quota-half-full", "unchecked-quota-exceeded", "unchecked-eviction-exceeded"),
    ),
)


FAULTS = (*HOLDING, *REFUSING, *EVICTING, *LEVELS, *STUCK, *NOT_CHECKED)
