"""Backlogs near and over a quota of age, which brokers know at once only where they are told to look precisely."""

from typing import Any

from lab.faults.fault import Change, Expected, RealFault
from lab.faults.real.backlogs import Arrange, Level, until_own_quota
from lab.faults.real.ground import Ground, fault_on_ground
from lab.faults.real.operator import AGE, EVICTION, EXCEPTION, HOLD
from lab.waiting import wait_until

OLD_S = 45
WITHIN_S = 120.0
PRECISE = (("preciseTimeBasedBacklogQuotaCheck", "true"),)
OLDER = {"producer-hold-restart-risk": "the backlog grows older while it is looked at"}
NEAR = Expected("backlog-near-quota")
RISK = Expected("producer-hold-restart-risk")


def _aged(policy: str, percent: int, level: Level = "namespace", *, unloaded: bool = False) -> Arrange:
    """A backlog that is three quarters of a minute old, which comes to that share of the quota when it is looked at.

    ``unloaded`` where only closing its ledger tells brokers its age.
    """

    def arrange(here: Ground) -> Change:
        topic = here.topic()
        here.subscription(topic)
        here.send(topic, 1000)
        if unloaded:
            here.admin.unload_topic(topic)
        until_old(here, topic, OLD_S)

        def limit(_observed: int) -> None:
            here.admin.set_quota(
                here.namespace if level == "namespace" else topic, AGE, age_of(here, topic) * 100 // percent, policy
            )
            if level == "topic":
                until_own_quota(here, topic)

        return limit

    return arrange


def _consumed(here: Ground) -> Change:
    """A topic as old as the others, of which all is consumed."""
    topic = here.topic()
    here.take(topic)
    sent = 1000
    here.send(topic, sent)
    here.until(topic, lambda shown: shown["msgInCount"] >= sent and _backlog(shown) == 0, "all is consumed")
    return lambda _observed: here.admin.set_quota(here.namespace, AGE, 10, HOLD)


def _backlog(shown: dict[str, Any]) -> int:
    return int(shown["subscriptions"]["s"]["msgBacklog"])


def _own_quota(here: Ground) -> Change:
    """The topic's own age quota is long; its namespace's would be exceeded."""
    topic = here.topic()
    here.subscription(topic)
    here.send(topic, 1000)
    here.admin.set_quota(topic, AGE, 3600, HOLD)
    until_own_quota(here, topic)
    until_old(here, topic, OLD_S)
    return lambda _observed: here.admin.set_quota(here.namespace, AGE, 20, HOLD)


def age_of(here: Ground, topic: str) -> int:
    """Seconds since the oldest message of the backlog was published, as the broker says; -1: it does not know."""
    return int(here.admin.statistics(topic)["oldestBacklogMessageAgeSeconds"])


def until_old(here: Ground, topic: str, seconds: int) -> None:
    """Waits until the broker says that the oldest message of the backlog is so old."""
    wait_until(lambda: age_of(here, topic) >= seconds, f"the backlog of {topic} is {seconds} s old", WITHIN_S, 1.0)


def _age(name: str, about: str, arrange: Arrange, *expected: Expected, **label: Any) -> RealFault:
    """A fault about a quota of age, on brokers that look precisely."""
    return fault_on_ground(name, about, arrange, expected=expected, **{"settings": PRECISE} | label)


FAULTS = (
    _age(
        "age-near-hold",
        "A backlog that came to 82 % of an age quota that holds producers.",
        _aged(HOLD, 82),
        NEAR,
        allowed=OLDER,
        batched=True,
    ),
    _age(
        "age-half-hold",
        "Healthy: a backlog that came to 50 % of an age quota that holds producers.",
        _aged(HOLD, 50),
        twin_of=("age-near-hold", "age-near-exception-topic"),
        batched=True,
    ),
    _age(
        "age-near-eviction",
        "A backlog that came to 82 % of an age quota that evicts.",
        _aged(EVICTION, 82),
        NEAR,
        client="java",
    ),
    _age(
        "age-half-eviction",
        "Healthy: a backlog that came to 50 % of an age quota that evicts.",
        _aged(EVICTION, 50),
        twin_of=("age-near-eviction",),
        client="java",
    ),
    _age(
        "age-near-exception-topic",
        "A backlog that came to 83 % of its topic's own age quota, which refuses producers.",
        _aged(EXCEPTION, 83, "topic"),
        NEAR,
        allowed=OLDER,
        client="go",
    ),
    _age("age-over-hold", "A backlog over an age quota that holds producers.", _aged(HOLD, 110), NEAR, RISK),
    _age(
        "age-over-exception",
        "A backlog over an age quota that refuses producers.",
        _aged(EXCEPTION, 110),
        NEAR,
        RISK,
        client="java",
        batched=False,
    ),
    _age(
        "age-all-consumed",
        "Healthy: what was published before the age quota's time is all consumed.",
        _consumed,
        twin_of=("age-over-hold", "age-known-by-unload"),
        client="java",
    ),
    _age(
        "age-own-quota-longer",
        "Healthy: a topic's own age quota of an hour, in a namespace whose quota its backlog would exceed.",
        _own_quota,
        twin_of=("age-over-exception",),
        batched=True,
    ),
    _age(
        "age-known-by-unload",
        "A backlog over an age quota that holds producers, on brokers that learned its age from an unload.",
        _aged(HOLD, 110, unloaded=True),
        NEAR,
        RISK,
        settings=(),
        batched=True,
    ),
)
