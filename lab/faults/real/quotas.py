"""Backlogs near and over their quotas in size: what each policy makes of it, and quotas that nobody checks."""

from typing import Any

from lab.faults.fault import Expected, RealFault
from lab.faults.real.backlogs import (
    Arrange,
    consumed,
    evicted_again_and_again,
    evicted_once,
    filled,
    no_quota,
    one_gap_in_front,
    own_quota,
    partitions,
)
from lab.faults.real.ground import fault_on_ground
from lab.faults.real.operator import EVICTION, EXCEPTION, HOLD

PARTITIONS = 8

NEAR = Expected("backlog-near-quota")
RISK = Expected("producer-hold-restart-risk")
UNCHECKED = (("backlogQuotaCheckEnabled", "false"),)


def _size(name: str, about: str, arrange: Arrange, *expected: Expected, **label: Any) -> RealFault:
    """A fault about a quota in size."""
    return fault_on_ground(name, about, arrange, expected=expected, **label)


HOLDING = (
    _size("size-near-hold", "A backlog of 86 % of a size quota that holds producers.", filled(HOLD, 86), NEAR),
    _size(
        "size-half-hold",
        "Healthy: a backlog of 50 % of a size quota that holds producers.",
        filled(HOLD, 50),
        twin_of=("size-near-hold", "restart-risk"),
    ),
    _size(
        "restart-risk",
        "A backlog of 94 % of a size quota that holds producers: a restart may find it exceeded.",
        filled(HOLD, 94),
        NEAR,
        RISK,
        batched=True,
    ),
    _size(
        "size-over-hold",
        "A backlog over a size quota that holds producers.",
        filled(HOLD, 110),
        NEAR,
        RISK,
        batched=True,
        quick=True,
    ),
    _size(
        "size-over-hold-java",
        "A backlog over a topic's own size quota that holds producers.",
        filled(HOLD, 125, "topic"),
        NEAR,
        RISK,
        client="java",
        quick=True,
    ),
    _size(
        "size-all-consumed",
        "Healthy: three times the quota went through a topic and is consumed.",
        consumed,
        twin_of=("size-over-hold", "size-over-hold-java"),
        client="java",
        quick=True,
    ),
)

REFUSING = (
    _size(
        "size-near-exception",
        "A backlog of 86 % of a size quota that refuses producers.",
        filled(EXCEPTION, 86),
        NEAR,
        batched=True,
    ),
    _size(
        "size-near-exception-topic",
        "A backlog of 85 % of a topic's own size quota that refuses producers.",
        filled(EXCEPTION, 85, "topic"),
        NEAR,
        client="go",
    ),
    _size(
        "size-70-exception",
        "Healthy: a backlog of 70 % of a topic's own size quota that refuses producers.",
        filled(EXCEPTION, 70, "topic"),
        twin_of=("size-near-exception-topic", "size-near-exception", "restart-risk-exception", "size-over-exception"),
        client="go",
        batched=False,
    ),
    _size(
        "restart-risk-exception",
        "A backlog of 93 % of a topic's own size quota that refuses producers.",
        filled(EXCEPTION, 93, "topic"),
        NEAR,
        RISK,
        client="java",
        batched=False,
    ),
    _size(
        "size-over-exception",
        "A backlog over a size quota that refuses producers.",
        filled(EXCEPTION, 110),
        NEAR,
        RISK,
        batched=True,
    ),
)

EVICTING = (
    _size("size-near-eviction", "A backlog of 86 % of a size quota that evicts.", filled(EVICTION, 86), NEAR),
    _size(
        "size-near-eviction-java",
        "A backlog of 97 % of a size quota that evicts: the next check loses messages.",
        filled(EVICTION, 97),
        NEAR,
        client="java",
    ),
    _size(
        "size-half-eviction",
        "Healthy: a backlog of 50 % of a size quota that evicts.",
        filled(EVICTION, 50),
        twin_of=("size-near-eviction-java", "size-near-eviction"),
        client="java",
    ),
    _size(
        "size-evicted-again",
        "A producer that nobody consumes from, whose backlog is evicted whenever the brokers look at its quota.",
        evicted_again_and_again,
        NEAR,
        batched=True,
    ),
    _size(
        "size-evicted-once",
        "Healthy by now: a backlog of which most was evicted, below a quota that was raised since.",
        evicted_once,
        twin_of=("size-evicted-again",),
    ),
)

LEVELS = (
    _size(
        "own-quota-below",
        "A topic at 90 % of its own size quota, in a namespace whose quota would have room.",
        own_quota(90, 5, EVICTION),
        NEAR,
        batched=True,
    ),
    _size(
        "own-quota-above",
        "Healthy: a topic at 20 % of its own size quota, in a namespace whose quota it would exceed.",
        own_quota(20, 150, HOLD),
        twin_of=("own-quota-below",),
    ),
    _size(
        "one-partition-near",
        "One of eight partitions is at 88 % of the quota, which holds for each, the others at 5 %.",
        partitions((5, 5, 5, 88, 5, 5, 5, 5), EXCEPTION),
        Expected("backlog-near-quota", "-partition-3$"),
        batched=True,
    ),
    _size(
        "partitions-own-quota",
        "Four partitions of a topic with a quota of its own, one at 92 % of it.",
        partitions((10, 92, 10, 10), EVICTION, "topic"),
        Expected("backlog-near-quota", "-partition-1$"),
        client="go",
    ),
    _size(
        "half-full-partitions",
        "Healthy: each of eight partitions is at 50 % of the quota, all together at four times as much.",
        partitions((50,) * PARTITIONS, HOLD),
        twin_of=("one-partition-near", "partitions-own-quota"),
        batched=True,
    ),
)

STUCK = (
    _size(
        "quota-stuck",
        "One message that nobody acknowledges in front of many that are: producers are cut off by no backlog.",
        one_gap_in_front(200),
        Expected("quota-stuck"),
        NEAR,
        RISK,
    ),
    _size(
        "gap-below-quota",
        "Healthy enough: one message that nobody acknowledges in front of many that are, at 40 % of the quota.",
        one_gap_in_front(40),
        twin_of=("quota-stuck",),
    ),
)

NOT_CHECKED = (
    _size(
        "unchecked-quota-half-full",
        "Brokers that check no quota, and a namespace that has one.",
        filled(HOLD, 50),
        Expected("quota-check-disabled"),
        settings=UNCHECKED,
    ),
    _size(
        "unchecked-quota-exceeded",
        "Brokers that check no quota, and a backlog over one: the producer goes on until it has to come back.",
        filled(HOLD, 130),
        Expected("quota-check-disabled"),
        NEAR,
        RISK,
        settings=UNCHECKED,
        client="java",
    ),
    _size(
        "unchecked-eviction-exceeded",
        "Brokers that check no quota, and a backlog of twice what they should evict.",
        filled(EVICTION, 200),
        Expected("quota-check-disabled"),
        NEAR,
        settings=UNCHECKED,
        client="go",
    ),
    _size(
        "unchecked-without-quota",
        "Healthy enough: brokers that check no quota, and no namespace that has one.",
        no_quota,
        settings=UNCHECKED,
        alone=True,
        twin_of=("unchecked-quota-half-full", "unchecked-quota-exceeded", "unchecked-eviction-exceeded"),
    ),
)


FAULTS = (*HOLDING, *REFUSING, *EVICTING, *LEVELS, *STUCK, *NOT_CHECKED)
