"""Quotas, retention and times to live that do not go together."""

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from lab.cluster import Lab
from lab.faults.fault import Expected, RealFault
from lab.faults.real.ground import SHOWN_WITHIN_S, Ground, ground
from lab.faults.real.operator import AGE, EVICTION, HOLD, SIZE
from lab.faults.real.traffic import publish
from lab.waiting import wait_until

MEBIBYTE = 1024 * 1024


@contextlib.contextmanager
def _quota_of_a_topic(lab: Lab) -> Iterator[None]:
    """A topic's quota is compared with its namespace's retention when it is set, but not the other way round."""
    with ground(lab, "quota-over-retention") as here:
        topic = _backlog(here, 1000)
        here.admin.set_quota(topic, SIZE, 200 * MEBIBYTE, HOLD)
        wait_until(
            lambda: here.admin.has_policy(topic, "backlogQuotaMap"), f"{topic} has its own quota", SHOWN_WITHIN_S
        )
        here.admin.set_retention(here.namespace, minutes=60, megabytes=100)
        yield


@contextlib.contextmanager
def _age_of_a_namespace(lab: Lab) -> Iterator[None]:
    """A quota of age is compared with no retention at all."""
    with ground(lab, "age-over-retention") as here:
        here.admin.set_retention(here.namespace, minutes=60, megabytes=10_000)
        here.admin.set_quota(here.namespace, AGE, 2 * 3600, EVICTION)
        _backlog(here, 1000)
        yield


@contextlib.contextmanager
def _ttl_first(lab: Lab) -> Iterator[None]:
    with ground(lab, "ttl-before-quota") as here:
        here.admin.set_retention(here.namespace, minutes=24 * 60, megabytes=10_000)
        here.admin.set_quota(here.namespace, AGE, 3600, HOLD)
        here.admin.set_policy(here.namespace, "messageTTL", 600)
        _backlog(here, 1000)
        yield


def _stored(
    name: str, megabytes: int, retention: tuple[int, int] | None = None
) -> Callable[[Lab], AbstractContextManager[None]]:
    """A backlog of so many megabytes, without a quota; retention in minutes and megabytes."""

    @contextlib.contextmanager
    def made(lab: Lab) -> Iterator[None]:
        with ground(lab, name) as here:
            if retention:
                here.admin.set_retention(here.namespace, *retention)
            _backlog(here, megabytes * 1000, 1000)
            yield

    return made


def _backlog(here: Ground, messages: int, size: int = 100) -> str:
    topic = here.topic()
    here.subscription(topic)
    publish(here.producer(topic), messages, size)
    here.until(topic, lambda shown: shown["backlogSize"] >= messages * size, "the backlog is there")
    here.until_quiet(topic)
    return topic


SMALL_DISK = "The threshold is lowered, as a lab's disk is no place for its default."

FAULTS = (
    RealFault(
        name="quota-over-retention",
        about="A topic's own quota over the retention that its namespace got later, which brokers let in.",
        expected=(Expected("quota-over-retention", r"public/quota-over-retention"),),
        made=_quota_of_a_topic,
    ),
    RealFault(
        name="age-over-retention",
        about="An age quota over the retained time, which brokers let in.",
        expected=(Expected("quota-over-retention", r"public/age-over-retention"),),
        made=_age_of_a_namespace,
    ),
    RealFault(
        name="ttl-before-quota",
        about="A time to live of ten minutes under an age quota of an hour that is to hold producers.",
        expected=(Expected("ttl-before-quota", r"public/ttl-before-quota"),),
        quick=True,
        made=_ttl_first,
    ),
    RealFault(
        name="no-quota",
        about=f"A backlog of 40 MB that no quota bounds. {SMALL_DISK}",
        expected=(Expected("backlog-quota-missing", r"public/no-quota"),),
        policy={"backlog_quota_missing": {"warning_backlog_bytes": 32_000_000}},
        made=_stored("no-quota", 40),
    ),
    RealFault(
        name="small-backlog-without-quota",
        about="Healthy enough: a backlog of a megabyte without a quota.",
        made=_stored("small-backlog-without-quota", 1),
    ),
    RealFault(
        name="retained-for-ever",
        about=f"40 MB in a namespace that retains everything for ever. {SMALL_DISK}",
        expected=(Expected("retention-unbounded", r"public/retained-for-ever"),),
        policy={"retention_unbounded": {"warning_storage_bytes": 32_000_000}},
        made=_stored("retained-for-ever", 40, (-1, -1)),
    ),
    RealFault(
        name="retention-too-short",
        about=f"A backlog of 40 MB where 10 MB are retained. {SMALL_DISK}",
        expected=(Expected("retention-too-short", r"public/retention-too-short"),),
        policy={"retention_too_short": {"minimum_backlog_bytes": 32_000_000}},
        made=_stored("retention-too-short", 40, (60, 10)),
    ),
)
