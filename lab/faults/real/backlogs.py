"""Backlogs that come to some share of their quota in size.

A quota is set once its backlog is there, by how large brokers say that this is: how full it is then depends neither on
the client nor on batching.
"""

from collections.abc import Callable, Sequence
from typing import Literal

from lab.faults.fault import Change
from lab.faults.real.ground import SHOWN_WITHIN_S, Ground
from lab.faults.real.operator import EVICTION, HOLD, SIZE, recently_shown
from lab.waiting import wait_until

MESSAGES, MESSAGE_BYTES = 1000, 1000

Level = Literal["namespace", "topic"]
Arrange = Callable[[Ground], Change | None]


def backlog(here: Ground, topic: str, messages: int = MESSAGES, size: int = MESSAGE_BYTES) -> int:
    """Publishes messages that nobody consumes, and returns how large brokers say that their backlog is."""
    here.subscription(topic)
    here.send(topic, messages, size)
    until_there(here, topic, messages * size)
    return int(recently_shown(here.lab)[topic]["backlogSize"])


def until_there(here: Ground, topic: str, size: int) -> None:
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


def filled(policy: str, percent: int, level: Level = "namespace") -> Arrange:
    """A backlog of that share of its quota."""

    def arrange(here: Ground) -> None:
        topic = here.topic()
        limit(here, topic, backlog(here, topic) * 100 // percent, policy, level)

    return arrange


def own_quota(percent_of_own: int, percent_of_namespace: int, policy: str) -> Arrange:
    """Such shares of the topic's own quota, which counts, and of its namespace's, which does not."""

    def arrange(here: Ground) -> None:
        topic = here.topic()
        size = backlog(here, topic)
        limit(here, topic, size * 100 // percent_of_own, policy, "topic")
        limit(here, topic, size * 100 // percent_of_namespace, policy)

    return arrange


def partitions(percents: Sequence[int], policy: str, level: Level = "namespace") -> Arrange:
    """A partition for each share of the quota, which holds for every partition by itself."""

    def arrange(here: Ground) -> None:
        topic = here.topic()
        here.admin.create_partitions(topic, len(percents))
        here.subscription(topic)
        parts = [f"{topic}-partition-{number}" for number in range(len(percents))]
        for part, percent in zip(parts, percents, strict=True):
            here.send(part, MESSAGES * percent // 100, MESSAGE_BYTES)
        for part, percent in zip(parts, percents, strict=True):
            until_there(here, part, MESSAGES * percent // 100 * MESSAGE_BYTES)
        fullest = max(range(len(percents)), key=lambda number: percents[number])
        size = int(recently_shown(here.lab)[parts[fullest]]["backlogSize"])
        here.admin.set_quota(
            here.namespace if level == "namespace" else topic, SIZE, size * 100 // percents[fullest], policy
        )
        if level == "topic":
            until_own_quota(here, topic)

    return arrange


def consumed(here: Ground) -> None:
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


def no_quota(here: Ground) -> None:
    """A backlog that nothing bounds."""
    backlog(here, here.topic())


def evicted_again_and_again(here: Ground) -> Change:
    """A backlog that is filled and evicted all the time, looked at when it is full again."""
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


def evicted_once(here: Ground) -> None:
    """A backlog that was evicted, and nobody adds to what was left."""
    topic = here.topic()
    size = backlog(here, topic)
    limit(here, topic, size // 2, EVICTION)
    here.until(topic, lambda shown: shown["backlogSize"] < size // 2, "it is evicted")
    limit(here, topic, 2 * size, EVICTION)


def one_gap_in_front(percent: int) -> Arrange:
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
        if percent > 100:  # all of the quota
            here.until(topic, lambda shown: not shown["publishers"], "its quota cut the producer off")

    return arrange
