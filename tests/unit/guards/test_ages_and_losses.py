"""Effects of a quota at once: nothing by age, and nothing by eviction that was not approved to the message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from pulsar_steward.facts.backlogs import MAX_NAMED, BacklogAges, Taken, backlog_of, evicted
from pulsar_steward.guards.loss import LossAsApproved
from pulsar_steward.guards.quotas import AgeRoom
from pulsar_steward.model.loss import NOTHING_LOST, Loss
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, Retention, Setting, SettingName
from pulsar_steward.model.step import ChangeSetting
from tests.builders import a_look, a_step

if TYPE_CHECKING:
    from pulsar_steward.model.step import Step

HOUR = 3600
TOPIC = "persistent://shop/orders/t"


def age_quota(hours: int | None = 10, policy: QuotaPolicy = QuotaPolicy.HOLD) -> Step:
    """A step that sets an age quota; None: that removes one, where brokers have no default."""
    after = None if hours is None else BacklogQuota(limit_seconds=hours * HOUR, policy=policy)
    before = None if after else BacklogQuota(limit_seconds=HOUR, policy=policy)
    return a_step(
        ChangeSetting(namespace="shop/orders", name=SettingName.AGE_QUOTA, before=before, after=after, inherited=None)
    )


def ages(seconds: int, **more: Any) -> BacklogAges:
    """Ages of backlogs where one topic has one, which is so many seconds old."""
    return msgspec.structs.replace(BacklogAges(oldest_seconds=seconds, topic=TOPIC, waiting=1), **more)


UNKNOWN = ages(0, topic=None, waiting=3, unknown=3, why_unknown="nobody tells")
AGES: dict[str, tuple[Step, dict[str, Any], bool, bool, str]] = {
    "no backlog": (age_quota(), {"backlog_ages": BacklogAges()}, True, True, "no topic has a backlog"),
    "nine tenths": (
        age_quota(),
        {"backlog_ages": ages(9 * HOUR)},
        True,
        True,
        f"of {TOPIC}, is 9 h old, of 10 h less 10 %",
    ),
    "a second more": (
        age_quota(),
        {"backlog_ages": ages(9 * HOUR + 1)},
        False,
        False,
        "producer_request_hold would act at once",
    ),
    "evicting": (
        age_quota(policy=QuotaPolicy.EVICT),
        {"backlog_ages": ages(9 * HOUR + 1)},
        False,
        False,
        "consumer_backlog_eviction would act at once",
    ),
    "estimated": (
        age_quota(),
        {"backlog_ages": ages(10 * HOUR, estimated=True)},
        False,
        False,
        "is estimated, from its size",
    ),
    "not told": (
        age_quota(),
        {"backlog_ages": UNKNOWN},
        True,
        False,
        "of 3 topics with a backlog its age is not known: nobody",
    ),
    "not looked": (
        age_quota(),
        {"backlog_ages": None},
        False,
        False,
        "how old the backlogs of shop/orders are is not known",
    ),
    "at the retention": (
        age_quota(),
        {"backlog_ages": BacklogAges(), "retained_seconds": 10 * HOUR},
        False,
        False,
        "10 h is not below the retention of 10 h",
    ),
    "below the retention": (
        age_quota(),
        {"backlog_ages": BacklogAges(), "retained_seconds": 11 * HOUR},
        True,
        True,
        "no topic has a backlog, of 10 h less 10 %",
    ),
    "removed": (age_quota(None), {"backlog_ages": None}, True, True, "no age quota is set"),
}


@pytest.mark.parametrize(("step", "known", "at_planning", "before_call", "words"), AGES.values(), ids=AGES)
def test_no_topic_is_over_an_age_quota_at_once(
    step: Step, known: dict[str, Any], *, at_planning: bool, before_call: bool, words: str
) -> None:
    """An age quota passes if a tenth of it is free and it is below the retention. Unknown ages pass at planning."""
    planned, called = (AgeRoom().check(step, *a_look(planning=each, **known)) for each in (True, False))

    assert (planned.passed, called.passed) == (at_planning, before_call)
    assert words in called.reason


@pytest.mark.parametrize(("held", "lost"), [(899, 0), (900, 900), (2000, 2000)])
def test_only_what_is_near_its_limit_loses_anything(held: int, lost: int) -> None:
    """A topic loses messages only from nine tenths of the quota's limit on, and all that waits then."""
    assert evicted([backlog_of(TOPIC, held, {"s": held}, {})], 1000).loss.bytes == lost


def test_the_worst_topics_are_named_and_the_others_counted() -> None:
    backlogs = [backlog_of(f"t{number:02d}", 1000 + number // 2, {"s": 10}, {}) for number in range(MAX_NAMED + 5)]
    loss = evicted(backlogs, 1000).loss

    assert [each.topic for each in loss.topics][:3] == ["t14", "t12", "t13"]
    assert (len(loss.topics), loss.more) == (MAX_NAMED, 5)
    assert loss.bytes == sum(each.bytes for each in backlogs)
    assert loss == evicted(reversed(backlogs), 1000).loss


EVICT = BacklogQuota(limit_bytes=1000, policy=QuotaPolicy.EVICT)


@pytest.mark.parametrize(
    ("agreed", "now", "words"),
    [
        (None, NOTHING_LOST, None),
        (Loss(messages=5, bytes=500), Loss(messages=5, bytes=500), None),
        (Loss(messages=5, bytes=500), Loss(messages=4, bytes=500), None),
        (Loss(messages=5, bytes=500), Loss(messages=6, bytes=500), "6 entries (500 B)"),
        (Loss(messages=5, bytes=500), Loss(messages=5, bytes=501), "than the 5 entries (500 B)"),
        (None, Loss(messages=1, bytes=1), "than the 0 entries (0 B)"),
        (Loss(messages=5, bytes=500), None, "is not known"),
        (Loss(messages=5, bytes=500), Loss(messages=None, bytes=500), "a number of entries that is not known"),
        (Loss(messages=None, bytes=None), Loss(messages=1, bytes=1), "than the 0 entries (0 B)"),
    ],
    ids=[
        *("nothing", "as much", "less", "a message more", "a byte more", "nothing was approved", "not known"),
        *("how many is not known", "an unknown number was approved"),
    ],
)
def test_no_more_is_evicted_than_was_approved(agreed: Loss | None, now: Loss | None, words: str | None) -> None:
    change = ChangeSetting(namespace="shop/orders", name=SettingName.SIZE_QUOTA, before=None, after=EVICT)
    step = a_step(change, loss=agreed or msgspec.UNSET)
    said = LossAsApproved().check(step, *a_look(taken=now and Taken(loss=now)))

    assert said.passed is (words is None)
    assert (words or "") in said.reason


def kept(minutes: int, megabytes: int) -> Retention:
    """A retention."""
    return Retention(minutes=minutes, megabytes=megabytes)


@pytest.mark.parametrize(
    ("before", "after", "deletes"),
    [
        (kept(60, 100), kept(60, 100), False),
        (kept(60, 100), kept(61, 100), False),
        (kept(60, 100), kept(59, 200), True),
        (kept(60, 100), kept(120, 99), True),
        (kept(-1, -1), kept(60, -1), True),
        (kept(60, -1), kept(-1, -1), False),
        (kept(0, 0), kept(60, 100), False),
        (kept(60, 100), kept(0, 0), True),
        (kept(60, 100), None, True),
        (None, kept(60, -1), True),
        (None, kept(-1, -1), False),
    ],
)
def test_a_lower_retention_deletes_what_is_stored(
    before: Setting | None, after: Setting | None, *, deletes: bool
) -> None:
    change = ChangeSetting(namespace="shop/orders", name=SettingName.RETENTION, before=before, after=after)

    assert (change.deletes_stored, change.loses_messages, change.takes_messages) == (deletes, deletes, False)
