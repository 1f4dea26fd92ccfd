"""Backlogs near and over a quota of age, which brokers know at once only where they are told to look precisely."""

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from lab.cluster import Lab
from lab.faults.fault import Expected, RealFault
from lab.faults.real.ground import Ground, ground
from lab.faults.real.operator import AGE, EVICTION, HOLD
from lab.faults.real.traffic import publish
from lab.waiting import wait_until

QUOTA_SECONDS = 60
WITHIN_S = 120.0
PRECISE = (("preciseTimeBasedBacklogQuotaCheck", "true"),)
RISK = {"producer-hold-restart-risk": "the backlog grows older while it is looked at"}
NEAR = Expected("backlog-near-quota")


def _aged(
    name: str, policy: str, percent: int, *, unloaded: bool = False
) -> Callable[[Lab], AbstractContextManager[None]]:
    """A backlog of that share of the quota's time; ``unloaded`` where only closing its ledger tells brokers its age."""

    @contextlib.contextmanager
    def made(lab: Lab) -> Iterator[None]:
        with ground(lab, name) as here:
            here.admin.set_quota(here.namespace, AGE, QUOTA_SECONDS, policy)
            topic = here.topic()
            here.subscription(topic)
            publish(here.producer(topic), 1000)
            if unloaded:
                here.admin.unload_topic(topic)
            until_old(here, topic, QUOTA_SECONDS * percent // 100)
            yield

    return made


def until_old(here: Ground, topic: str, seconds: int) -> None:
    """Waits until the broker says that the oldest message of the backlog is so old."""
    wait_until(
        lambda: here.admin.statistics(topic)["oldestBacklogMessageAgeSeconds"] >= seconds,
        f"the backlog of {topic} is {seconds} s old",
        WITHIN_S,
        0.5,
    )


FAULTS = (
    RealFault(
        name="age-near-hold",
        about="A backlog that came to 82 % of an age quota that holds producers.",
        expected=(NEAR,),
        allowed=RISK,
        settings=PRECISE,
        made=_aged("age-near-hold", HOLD, 82),
    ),
    RealFault(
        name="age-near-eviction",
        about="A backlog that came to 82 % of an age quota that evicts.",
        expected=(NEAR,),
        settings=PRECISE,
        made=_aged("age-near-eviction", EVICTION, 82),
    ),
    RealFault(
        name="age-over-hold",
        about="A backlog over an age quota that holds producers.",
        expected=(NEAR, Expected("producer-hold-restart-risk")),
        settings=PRECISE,
        made=_aged("age-over-hold", HOLD, 105),
    ),
    RealFault(
        name="age-known-by-unload",
        about="A backlog over an age quota that holds producers, on brokers that learned its age from an unload.",
        expected=(NEAR, Expected("producer-hold-restart-risk")),
        made=_aged("age-known-by-unload", HOLD, 105, unloaded=True),
    ),
)
