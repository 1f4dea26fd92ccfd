"""Quotas, retention and times to live that do not go together, and such as do."""

from collections.abc import Callable

from lab.faults.real.backlogs import backlog, until_own_quota
from lab.faults.real.ground import Ground, fault_of_namespace
from lab.faults.real.operator import AGE, EVICTION, HOLD, SIZE, QuotaKind

MEBIBYTE = 1024 * 1024
HOUR_S, DAY_S = 3600, 86_400

Setting = Callable[[Ground, str], None]
"""Sets something on a namespace and its topic, by its full name."""

Arrange = Callable[[Ground], None]


def _retention(minutes: int, megabytes: int) -> Setting:
    return lambda here, _topic: here.admin.set_retention(here.namespace, minutes, megabytes)


def _own_retention(minutes: int, megabytes: int) -> Setting:
    return lambda here, topic: here.admin.set_retention(topic, minutes, megabytes)


def _quota(kind: QuotaKind, limit: int, policy: str) -> Setting:
    return lambda here, _topic: here.admin.set_quota(here.namespace, kind, limit, policy)


def _own_quota(kind: QuotaKind, limit: int, policy: str) -> Setting:
    def set_it(here: Ground, topic: str) -> None:
        here.admin.set_quota(topic, kind, limit, policy)
        until_own_quota(here, topic)

    return set_it


def _ttl(seconds: int) -> Setting:
    return lambda here, _topic: here.admin.set_policy(here.namespace, "messageTTL", seconds)


def _small(*settings: Setting) -> Arrange:
    """A topic with a small backlog, and then these settings, one after the other."""
    return _stored(1, *settings)


def _stored(megabytes: int, *settings: Setting) -> Arrange:
    """A backlog of so many megabytes, and then these settings."""

    def arrange(here: Ground) -> None:
        topic = here.topic()
        backlog(here, topic, megabytes * 100, 10_000)
        for setting in settings:
            setting(here, topic)

    return arrange


def _consumed(megabytes: int, *settings: Setting) -> Arrange:
    """A number of megabytes that are produced and consumed under these settings."""

    def arrange(here: Ground) -> None:
        topic = here.topic()
        here.take(topic)
        for setting in settings:
            setting(here, topic)
        here.send(topic, megabytes * 100, 10_000)
        here.until(
            topic,
            lambda shown: shown["storageSize"] >= megabytes * 1_000_000 and shown["backlogSize"] < 100_000,
            "all is consumed",
        )
        here.until_quiet(topic)

    return arrange


SMALL_DISK = "The threshold is lowered, as a lab's disk is no place for its default."
MUCH_BACKLOG: dict[str, object] = {"backlog_quota_missing": {"warning_backlog_bytes": 32_000_000}}
MUCH_STORED: dict[str, object] = {
    "retention_unbounded": {"warning_storage_bytes": 32_000_000},
    "collect": {"drilled_from_consumed_bytes": 16_000_000},
}
MUCH_TO_KEEP: dict[str, object] = {"retention_too_short": {"minimum_backlog_bytes": 32_000_000}}

AGAINST_EACH_OTHER = (
    fault_of_namespace(
        "quota-over-retention",
        "A topic's own quota over the retention that its namespace got later, which brokers let in.",
        _small(_own_quota(SIZE, 200 * MEBIBYTE, HOLD), _retention(60, 100)),
        "quota-over-retention",
        batched=True,
    ),
    fault_of_namespace(
        "own-age-quota-over-retention",
        "A topic's own age quota of a day over the hour that its namespace retains since.",
        _small(_own_quota(AGE, DAY_S, EVICTION), _retention(60, 1000)),
        "quota-over-retention",
        client="java",
    ),
    fault_of_namespace(
        "quota-below-retention",
        "Healthy: a topic's own quota of a fifth of what its namespace retains.",
        _small(_own_quota(SIZE, 20 * MEBIBYTE, HOLD), _retention(60, 100)),
        twin_of=("quota-over-retention", "own-age-quota-over-retention"),
        client="java",
    ),
    fault_of_namespace(
        "age-over-retention",
        "An age quota over the retained time, which brokers let in.",
        _small(_retention(60, 10_000), _quota(AGE, 2 * HOUR_S, EVICTION)),
        "quota-over-retention",
        batched=True,
    ),
    fault_of_namespace(
        "age-below-retention",
        "Healthy: an age quota of half the retained time.",
        _small(_retention(240, 10_000), _quota(AGE, 2 * HOUR_S, EVICTION)),
        twin_of=("age-over-retention",),
    ),
    fault_of_namespace(
        "ttl-before-quota",
        "A time to live of ten minutes under an age quota of an hour that is to hold producers.",
        _small(_retention(24 * 60, 10_000), _quota(AGE, HOUR_S, HOLD), _ttl(600)),
        "ttl-before-quota",
        batched=True,
        quick=True,
    ),
    fault_of_namespace(
        "ttl-as-long-as-quota",
        "A time to live of an hour, as long as the age quota that is to refuse producers.",
        _small(_retention(24 * 60, 10_000), _quota(AGE, HOUR_S, "producer_exception"), _ttl(HOUR_S)),
        "ttl-before-quota",
        client="go",
    ),
    fault_of_namespace(
        "ttl-after-quota",
        "Healthy: a time to live of a day over an age quota of an hour that holds producers.",
        _small(_retention(7 * 24 * 60, 10_000), _quota(AGE, HOUR_S, HOLD), _ttl(DAY_S)),
        twin_of=("ttl-before-quota", "ttl-as-long-as-quota"),
        quick=True,
    ),
)

TOO_MUCH_OR_TOO_LITTLE = (
    fault_of_namespace(
        "no-quota",
        f"A backlog of 40 MB that no quota bounds. {SMALL_DISK}",
        _stored(40),
        "backlog-quota-missing",
        policy=MUCH_BACKLOG,
        batched=True,
    ),
    fault_of_namespace(
        "quota-with-room",
        f"Healthy: a backlog of 40 MB under a quota of a gigabyte. {SMALL_DISK}",
        _stored(40, _quota(SIZE, 1_000_000_000, HOLD)),
        twin_of=("no-quota",),
        policy=MUCH_BACKLOG,
        client="java",
    ),
    fault_of_namespace(
        "small-backlog-without-quota",
        "Healthy enough: a backlog of a megabyte without a quota.",
        _stored(1),
        twin_of=("no-quota",),
    ),
    fault_of_namespace(
        "retained-for-ever",
        f"40 MB in a namespace that retains everything for ever. {SMALL_DISK}",
        _stored(40, _retention(-1, -1)),
        "retention-unbounded",
        policy=MUCH_STORED,
        batched=True,
    ),
    fault_of_namespace(
        "topic-retained-for-ever",
        f"40 MB that are consumed, of a topic that itself retains everything for ever. {SMALL_DISK}",
        _consumed(40, _own_retention(-1, -1)),
        "retention-unbounded",
        policy=MUCH_STORED,
        client="java",
    ),
    fault_of_namespace(
        "retained-up-to-a-size",
        f"Healthy: 40 MB in a namespace that retains everything for ever, but a gigabyte at most. {SMALL_DISK}",
        _stored(40, _retention(-1, 1000)),
        twin_of=("retained-for-ever",),
        policy=MUCH_STORED,
        batched=True,
    ),
    fault_of_namespace(
        "little-retained-for-ever",
        f"Healthy enough: a megabyte in a namespace that retains everything for ever. {SMALL_DISK}",
        _stored(1, _retention(-1, -1)),
        twin_of=("retained-for-ever", "topic-retained-for-ever"),
        policy=MUCH_STORED,
        client="go",
    ),
    fault_of_namespace(
        "retention-too-short",
        f"A backlog of 40 MB where 10 MB are retained. {SMALL_DISK}",
        _stored(40, _retention(60, 10)),
        "retention-too-short",
        policy=MUCH_TO_KEEP,
        batched=True,
    ),
    fault_of_namespace(
        "retention-long-enough",
        f"Healthy: a backlog of 40 MB where 200 MB are retained. {SMALL_DISK}",
        _stored(40, _retention(60, 200)),
        twin_of=("retention-too-short",),
        policy=MUCH_TO_KEEP,
        client="go",
    ),
)

FAULTS = (*AGAINST_EACH_OTHER, *TOO_MUCH_OR_TOO_LITTLE)
