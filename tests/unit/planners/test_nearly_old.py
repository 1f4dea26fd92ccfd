"""A namespace's age quota that is nearly reached: raised by forecast, within bounds, its retention first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from pulsar_steward.facts.backlogs import BacklogAges
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, Retention, Setting, SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting
from pulsar_steward.model.units import DAY, HOUR
from pulsar_steward.planners.registry import proposals_of
from pulsar_steward.planners.settings.facts import BacklogSample, FullTopic, NamespaceFact, TopicSettings
from pulsar_steward.planners.settings.nearly_full import NEARLY_FULL, NEARLY_OLD
from tests.builders import NOW, a_policy, planning_facts_with

if TYPE_CHECKING:
    from pulsar_steward.planners.base import Proposal

ORDERS, CARTS = "shop/orders", "shop/carts"
GIB = 1 << 30
TOPIC = f"persistent://{ORDERS}/t-0"
RETENTION, AGE, SIZE, TTL = SettingName.RETENTION, SettingName.AGE_QUOTA, SettingName.SIZE_QUOTA, SettingName.TTL
EVICT = QuotaPolicy.EVICT


def days(number: int, policy: QuotaPolicy = QuotaPolicy.HOLD) -> BacklogQuota:
    """An age quota."""
    return BacklogQuota(limit_seconds=number * DAY, policy=policy)


def found(topic: str = TOPIC, *, hours: int = 43, limit_days: int = 2, **figures: int) -> Finding:
    """A topic whose oldest message is 43 h old, of a quota of two days, unless its figures say otherwise."""
    age, limit = hours * HOUR, limit_days * DAY
    usual = {"oldest_backlog_age_seconds": age, "limit_seconds": limit, "seconds_percent": age * 100 // limit}
    return Finding(
        check_id="backlog-near-quota",
        severity=Severity.WARNING,
        subject=topic,
        evidence="made up",
        figures=usual | figures,
    )


def a_namespace(own: dict[SettingName, Setting] | None = None, *, hours: int = 43) -> NamespaceFact:
    """A namespace under an age quota of two days, with a topic whose oldest message is so many hours old."""
    return NamespaceFact(
        namespace=ORDERS,
        own={AGE: days(2)} if own is None else own,
        looks=(BacklogSample(taken_at=NOW, topics=3, backlogs=(1 << 20,)),),
        busiest_bytes_per_second=1.0,
        stored_bytes=1 << 30,
        ages=BacklogAges(oldest_seconds=hours * HOUR, topic=TOPIC, waiting=1),
        delayed_messages=0,
    )


def proposed(namespace: NamespaceFact, *findings: Finding, **fields: Any) -> Proposal:
    """Proposal of the planner; `fields` are those of `PlanningFacts`."""
    known = {"quotas_are_checked": True, "clocks_differ_milliseconds": 0, "namespaces": (namespace,)}
    return NEARLY_OLD.proposal(planning_facts_with(3, **{**known, "findings": findings or (found(),), **fields}))


def changes(proposal: Proposal) -> list[tuple[SettingName, Setting | None]]:
    """Settings that are changed with their new values, in order."""
    steps = [step.change for batch in proposal.batches for step in batch.steps]
    return [(change.name, change.after) for change in steps if isinstance(change, ChangeSetting)]


def test_it_is_raised_as_far_as_the_forecast_needs() -> None:
    """An age quota is raised to the age in a day plus free room, here 75 h, and the undo is the former value."""
    proposal = proposed(a_namespace())

    assert changes(proposal) == [(AGE, BacklogQuota(limit_seconds=75 * HOUR, policy=QuotaPolicy.HOLD))]
    (batch,) = proposal.batches
    (step,) = batch.steps
    assert batch.kind == "backlog_quota"
    assert isinstance(step.undo, ChangeSetting)
    assert step.undo.after == days(2)
    assert step.guards
    assert all(result.passed for result in step.guards)


def test_the_oldest_of_several_topics_decides() -> None:
    """The topic with the oldest backlog decides how far the age quota is raised, and the step's reason names it."""
    older = found(f"{TOPIC}1", hours=46)
    proposal = proposed(a_namespace(hours=46), found(), older)

    ((_, quota),) = changes(proposal)
    assert quota == BacklogQuota(limit_seconds=78 * HOUR, policy=QuotaPolicy.HOLD)
    assert older.subject in proposal.batches[0].steps[0].why


def test_the_retention_is_raised_first() -> None:
    """A retention that is too short for the raised age quota is raised in a step before it, in the same batch."""
    kept = Retention(minutes=3 * DAY // 60, megabytes=-1)
    proposal = proposed(a_namespace({AGE: days(2), RETENTION: kept}))

    assert changes(proposal) == [
        (RETENTION, Retention(minutes=5_000, megabytes=-1)),
        (AGE, BacklogQuota(limit_seconds=75 * HOUR, policy=QuotaPolicy.HOLD)),
    ]
    (batch,) = proposal.batches
    assert batch.kind == "retention"


@pytest.mark.parametrize(
    "kept",
    [
        Retention(minutes=10 * DAY // 60, megabytes=-1),
        Retention(minutes=-1, megabytes=-1),
        Retention(minutes=0, megabytes=0),
    ],
    ids=["long enough", "for ever", "nothing is retained"],
)
def test_a_retention_with_room_stays(kept: Retention) -> None:
    """A retention that outlasts the raised age quota, or that retains nothing, is not changed."""
    assert [name for name, _ in changes(proposed(a_namespace({AGE: days(2), RETENTION: kept})))] == [AGE]


@pytest.mark.parametrize(
    ("own", "finding", "fields", "reason"),
    [
        ({AGE: days(30)}, found(hours=600, limit_days=30), {}, "it is long enough"),
        (
            {AGE: days(2)},
            found(),
            {"policy": a_policy(backlog_quota_remedy={"raise_most_hours": 47})},
            "backlog_quota_remedy.raise_most_hours leaves 47 h",
        ),
        ({AGE: days(2), TTL: TimeToLive(seconds=70 * HOUR)}, found(), {}, "messages expire after 70 h"),
        ({AGE: days(2)}, found(limit_days=1, seconds_percent=90), {}, "the topic's own"),
        ({}, found(), {}, "the topic's own"),
    ],
    ids=["long enough", "bound", "time to live", "a topic's own", "none of the namespace"],
)
def test_it_stays_with_the_reason(
    own: dict[SettingName, Setting], finding: Finding, fields: dict[str, Any], reason: str
) -> None:
    """No change is proposed when raising the age quota is not needed or would not help, and a note gives the reason."""
    proposal = proposed(a_namespace(own), finding, **fields)

    assert proposal.batches == ()
    assert reason in " ".join(proposal.notes)


def test_it_is_raised_to_the_bound_where_that_still_helps() -> None:
    """An age quota is raised to the policy's limit if that is below the forecast but above the present value."""
    bound = a_policy(backlog_quota_remedy={"raise_most_hours": 60})
    assert changes(proposed(a_namespace(), policy=bound)) == [
        (AGE, BacklogQuota(limit_seconds=60 * HOUR, policy=QuotaPolicy.HOLD))
    ]


def test_a_topic_that_retains_by_itself_is_left_alone() -> None:
    """The namespace's age quota is not raised for a topic with a retention of its own, and a note says so."""
    own: dict[SettingName, Setting] = {RETENTION: Retention(minutes=DAY, megabytes=-1)}
    topic = TopicSettings(subject=TOPIC, topic=TOPIC, namespace=ORDERS, own=own, inherited={}, peak=0)
    proposal = proposed(a_namespace(), topics=(topic,))

    assert proposal.batches == ()
    assert f"{TOPIC}: its retention is its own" in proposal.notes[0]


def test_one_that_evicts_keeps_doing_so_later() -> None:
    """An age quota that evicts keeps its policy when it is raised, and the raise counts as losing no messages."""
    proposal = proposed(a_namespace({AGE: days(2, EVICT)}))

    ((_, quota),) = changes(proposal)
    assert quota == BacklogQuota(limit_seconds=75 * HOUR, policy=EVICT)
    change = proposal.batches[0].steps[0].change
    assert isinstance(change, ChangeSetting)
    assert not change.loses_messages


def test_a_topic_that_is_nearer_to_its_size_quota_is_not_answered() -> None:
    """The planner of age quotas gives neither a batch nor a note for a topic that is nearer to its size quota."""
    proposal = proposed(a_namespace(), found(bytes_percent=95, limit_bytes=1 << 30))
    assert (proposal.batches, proposal.notes) == ((), ())


def test_each_of_two_topics_is_answered_by_one_planner() -> None:
    """Of two topics, each gets one batch, from the planner of the quota, by age or by size, that it is near to."""
    near = f"persistent://{CARTS}/t-0"
    carts = msgspec.structs.replace(
        a_namespace({SIZE: BacklogQuota(limit_bytes=GIB, policy=QuotaPolicy.HOLD)}),
        namespace=CARTS,
        full=(FullTopic(topic=near, backlog_bytes=GIB * 9 // 10, bytes_per_second=1.0, seconds=HOUR),),
    )
    by_bytes = {"bytes_percent": 90, "backlog_bytes": GIB * 9 // 10, "limit_bytes": GIB}
    facts = planning_facts_with(
        3,
        findings=(found(), found(near, hours=1, **by_bytes)),
        namespaces=(carts, a_namespace()),
        quotas_are_checked=True,
        clocks_differ_milliseconds=0,
    )
    by_size, by_age = proposals_of((NEARLY_FULL, NEARLY_OLD), facts)
    assert (by_size.notes, by_age.notes) == ((), ())
    assert [name for name, _ in changes(by_size)] == [SIZE]
    assert [name for name, _ in changes(by_age)] == [AGE]
    assert [batch.findings for batch in (*by_size.batches, *by_age.batches)] == [
        (facts.findings[1],),
        (facts.findings[0],),
    ]
