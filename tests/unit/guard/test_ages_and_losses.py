"""Effects of a quota at once: nothing by age, and nothing by eviction that was not approved to the message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from pulsar_steward.facts.backlogs import MAX_NAMED, Backlog, BacklogAges, loss_of
from pulsar_steward.guard.age_room import AgeRoom
from pulsar_steward.guard.loss_as_approved import LossAsApproved
from pulsar_steward.model.loss import Loss, TopicLoss
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


def test_what_is_evicted_is_what_the_broker_evicts() -> None:
    """The estimated loss of an eviction is at least the loss that was measured on Pulsar 4.0.7.

    There, a quota of 600,000 bytes left 524 each of 1,000 and 700 messages of 1,031 bytes.
    """
    (loss,) = loss_of([Backlog(topic=TOPIC, bytes=1_030_872, messages=(1000, 700))], 600_000).topics

    assert loss == TopicLoss(topic=TOPIC, messages=(1000 - 523) + (700 - 523), bytes=490_872)


@pytest.mark.parametrize(("held", "lost"), [(999, 0), (1000, 100), (2000, 1100)])
def test_only_what_is_at_its_limit_loses_anything(held: int, lost: int) -> None:
    """A topic loses messages only from the quota's limit on, down to nine tenths of it."""
    assert loss_of([Backlog(topic=TOPIC, bytes=held, messages=(held,))], 1000).bytes == lost


def test_the_worst_topics_are_named_and_the_others_counted() -> None:
    """A loss names the topics that lose the most bytes, counts the other topics, and sums up all of them."""
    backlogs = [
        Backlog(topic=f"t{number:02d}", bytes=1000 + number // 2, messages=(10,)) for number in range(MAX_NAMED + 5)
    ]
    loss = loss_of(backlogs, 1000)

    assert [each.topic for each in loss.topics][:3] == ["t14", "t12", "t13"]
    assert (len(loss.topics), loss.more) == (MAX_NAMED, 5)
    assert loss.bytes == sum(each.bytes - 900 for each in backlogs)
    assert loss == loss_of(reversed(backlogs), 1000)


EVICT = BacklogQuota(limit_bytes=1000, policy=QuotaPolicy.EVICT)


@pytest.mark.parametrize(
    ("agreed", "now", "words"),
    [
        (None, Loss(messages=0), None),
        (Loss(messages=5, bytes=500), Loss(messages=5, bytes=500), None),
        (Loss(messages=5, bytes=500), Loss(messages=4, bytes=500), None),
        (
            Loss(messages=5, bytes=500),
            Loss(messages=6, bytes=500),
            "6 messages (500 B)",
        ),
        (
            Loss(messages=5, bytes=500),
            Loss(messages=5, bytes=501),
            "than the 5 messages (500 B)",
        ),
        (None, Loss(messages=1, bytes=1), "than the 0 messages (0 B)"),
        (Loss(messages=5, bytes=500), None, "is not known"),
    ],
    ids=["nothing", "as much", "less", "a message more", "a byte more", "nothing was approved", "not known"],
)
def test_no_more_is_evicted_than_was_approved(agreed: Loss | None, now: Loss | None, words: str | None) -> None:
    """An eviction of one message or byte more than was approved is refused, and so is one of unknown size."""
    change = ChangeSetting(namespace="shop/orders", name=SettingName.SIZE_QUOTA, before=None, after=EVICT)
    step = a_step(change, loss=agreed or msgspec.UNSET)
    said = LossAsApproved().check(step, *a_look(eviction_loss=now))

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
    """A change deletes stored messages when it lowers or removes a retention, or limits one that was not set."""
    change = ChangeSetting(namespace="shop/orders", name=SettingName.RETENTION, before=before, after=after)

    assert (change.deletes_stored, change.loses_messages, change.takes_messages) == (deletes, deletes, False)
