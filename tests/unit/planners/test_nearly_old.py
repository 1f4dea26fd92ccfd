"""A namespace's age quota that is nearly reached: raised by forecast, within bounds, its retention first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pulsar_steward.facts.backlogs import BacklogAges
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, Retention, Setting, SettingName, TimeToLive
from pulsar_steward.model.units import DAY, HOUR
from pulsar_steward.planners.registry import proposals_of
from pulsar_steward.planners.settings.facts import BacklogSample, FullTopic, NamespaceFact, TopicSettings
from pulsar_steward.planners.settings.nearly_full import NEARLY_FULL, NEARLY_OLD
from tests.builders import NOW, a_finding, a_policy, planning_facts_with
from tests.cases import cases
from tests.unit.planners.proposals import KNOWN, changes, only_step, refusal, settings_in, undone

if TYPE_CHECKING:
    from pulsar_steward.model.finding import Finding
    from pulsar_steward.planners.base import Proposal

ORDERS, CARTS = "shop/orders", "shop/carts"
GIB = 1 << 30
TOPIC = f"persistent://{ORDERS}/t-0"
RETENTION, AGE, SIZE, TTL = SettingName.RETENTION, SettingName.AGE_QUOTA, SettingName.SIZE_QUOTA, SettingName.TTL
EVICT = QuotaPolicy.EVICT
BOUND = {"policy": a_policy(backlog_quota_remedy={"raise_most_hours": 47})}
RETAINING = TopicSettings(
    subject=TOPIC,
    topic=TOPIC,
    namespace=ORDERS,
    own={RETENTION: Retention(minutes=24 * 3600, megabytes=-1)},
    inherited={},
    peak=0,
)


def days(number: int, policy: QuotaPolicy = QuotaPolicy.HOLD) -> BacklogQuota:
    return BacklogQuota(limit_seconds=number * DAY, policy=policy)


def found(topic: str = TOPIC, *, hours: int = 43, limit_days: int = 2, **figures: int) -> Finding:
    """A topic whose oldest message is 43 h old, of a quota of two days, unless its figures say otherwise."""
    age, limit = hours * HOUR, limit_days * DAY
    usual = {"oldest_backlog_age_seconds": age, "limit_seconds": limit, "seconds_percent": age * 100 // limit}
    return a_finding(check_id="backlog-near-quota", subject=topic, figures=usual | figures)


def raised(hours: int, policy: QuotaPolicy = QuotaPolicy.HOLD) -> tuple[SettingName, BacklogQuota]:
    """The change to an age quota of so many hours."""
    return AGE, BacklogQuota(limit_seconds=hours * HOUR, policy=policy)


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
    facts = {**KNOWN, "namespaces": (namespace,), "findings": findings or (found(),), **fields}
    return NEARLY_OLD.proposal(planning_facts_with(3, **facts))


def test_it_is_raised_as_far_as_the_forecast_needs() -> None:
    """An age quota is raised to the age in a day plus free room, here 75 h, and the undo is the former value."""
    proposal = proposed(a_namespace())
    assert changes(proposal) == [raised(75)]
    assert undone(only_step(proposal)) == days(2)
    assert proposal.batches[0].kind == "backlog_quota"


def test_the_oldest_of_several_topics_decides() -> None:
    """The topic with the oldest backlog decides how far the age quota is raised, and the step's reason names it."""
    older = found(f"{TOPIC}1", hours=46)
    proposal = proposed(a_namespace(hours=46), found(), older)
    assert changes(proposal) == [raised(78)]
    assert older.subject in only_step(proposal).why


def test_the_retention_is_raised_first() -> None:
    kept = Retention(minutes=3 * DAY // 60, megabytes=-1)
    proposal = proposed(a_namespace({AGE: days(2), RETENTION: kept}))
    assert changes(proposal) == [(RETENTION, Retention(minutes=5_000, megabytes=-1)), raised(75)]
    assert [batch.kind for batch in proposal.batches] == ["retention"]


def test_it_is_raised_to_the_bound_where_that_still_helps() -> None:
    """An age quota is raised to the policy's limit if that is below the forecast but above the present value."""
    bound = a_policy(backlog_quota_remedy={"raise_most_hours": 60})
    assert changes(proposed(a_namespace(), policy=bound)) == [raised(60)]


def test_one_that_evicts_keeps_doing_so_later() -> None:
    """An age quota that evicts keeps its policy when it is raised, and the raise counts as losing no messages."""
    proposal = proposed(a_namespace({AGE: days(2, EVICT)}))
    assert changes(proposal) == [raised(75, EVICT)]
    assert not settings_in(proposal)[0].loses_messages


@cases(
    "kept",
    ("long enough", Retention(minutes=10 * DAY // 60, megabytes=-1)),
    ("for ever", Retention(minutes=-1, megabytes=-1)),
    ("nothing is retained", Retention(minutes=0, megabytes=0)),
)
def test_a_retention_with_room_stays(kept: Retention) -> None:
    """A retention that outlasts the raised age quota, or that retains nothing, is not changed."""
    assert changes(proposed(a_namespace({AGE: days(2), RETENTION: kept}))) == [raised(75)]


@cases(
    "own, finding, fields, reason",
    ("long enough", {AGE: days(30)}, found(hours=600, limit_days=30), {}, "it is long enough"),
    ("bound", {AGE: days(2)}, found(), BOUND, "backlog_quota_remedy.raise_most_hours leaves 47 h"),
    ("time to live", {AGE: days(2), TTL: TimeToLive(seconds=70 * HOUR)}, found(), {}, "messages expire after 70 h"),
    ("a topic's own", {AGE: days(2)}, found(limit_days=1, seconds_percent=90), {}, "the topic's own"),
    ("none of the namespace", {}, found(), {}, "the topic's own"),
    ("retains by itself", {AGE: days(2)}, found(), {"topics": (RETAINING,)}, f"{TOPIC}: its retention is its own"),
)
def test_it_stays_with_the_reason(
    own: dict[SettingName, Setting], finding: Finding, fields: dict[str, Any], reason: str
) -> None:
    """No change is proposed when raising the age quota is not needed or would not help, and a note gives the reason."""
    assert reason in refusal(proposed(a_namespace(own), finding, **fields))


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
    findings = (found(), found(near, hours=1, **by_bytes))
    facts = planning_facts_with(3, findings=findings, namespaces=(carts, a_namespace()), **KNOWN)
    proposals = proposals_of((NEARLY_FULL, NEARLY_OLD), facts)
    assert [[name for name, _ in changes(each)] for each in proposals] == [[SIZE], [AGE]]
    assert [batch.findings for each in proposals for batch in each.batches] == [(findings[1],), (findings[0],)]
    assert [each.notes for each in proposals] == [(), ()]
