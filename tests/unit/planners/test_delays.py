"""Delayed messages outlive their delay: a longer time to live, and a bound of delays where nothing bounds them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pulsar_steward.facts.backlogs import BacklogAges, backlog_of
from pulsar_steward.model.loss import Loss, TopicLoss
from pulsar_steward.model.setting import DelayedDelivery, SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting
from pulsar_steward.planners.settings.facts import BacklogSample, NamespaceFact
from pulsar_steward.planners.settings.namespaces import DELAYS as PLANNER
from tests.builders import NOW, a_finding, a_policy, planning_facts_with
from tests.cases import cases
from tests.unit.planners.proposals import changes, only_step, refusal, steps, undone

if TYPE_CHECKING:
    from pulsar_steward.planners.base import Proposal
    from tests.golden import Golden

HOUR, DAY = 3600, 86_400
NAMESPACE = "shop/orders"
TOPIC, OTHER = f"persistent://{NAMESPACE}/reminders", f"persistent://{NAMESPACE}/orders"
TTL, DELAYS = SettingName.TTL, SettingName.DELAYED_DELIVERY
ON = DelayedDelivery(active=True, tick_milliseconds=1000)


def days(count: int) -> DelayedDelivery:
    return DelayedDelivery(active=True, tick_milliseconds=1000, longest_milliseconds=count * DAY * 1000)


def proposed(longest_s: int = 0, *, ttl_s: int = HOUR, oldest_s: int = 0, **fields: Any) -> Proposal:
    """Proposal for a namespace with delayed messages; `fields` are of `NamespaceFact` or `PlanningFacts`."""
    figures = {"longest_delay_seconds": longest_s, "ttl_seconds": ttl_s, "delayed_messages": 9, "subscriptions": 1}
    fact = NamespaceFact(
        namespace=NAMESPACE,
        own=fields.pop("own", {TTL: TimeToLive(seconds=ttl_s)}),
        looks=(BacklogSample(taken_at=NOW, topics=3),),
        busiest_bytes_per_second=0.0,
        stored_bytes=0,
        backlogs=(backlog_of(OTHER, 9000, {"s": 7}, {}), backlog_of(TOPIC, 500, {"s": 60, "u": 40}, {})),
        ages=fields.pop("ages", BacklogAges(oldest_seconds=oldest_s, topic=TOPIC, waiting=2)),
        delayed_messages=90,
        delayed_topics={TOPIC: 90},
    )
    found = (a_finding(check_id="delayed-past-ttl", subject=NAMESPACE, figures=figures),)
    known = {"findings": found, "namespaces": (fact,), "clocks_differ_milliseconds": 0, "defaults": {DELAYS: ON}}
    return PLANNER.proposal(planning_facts_with(3, **{**known, **fields}))


@cases(
    "longest_s, oldest_s, hours",
    ("the longest delay", 9 * HOUR, 0, 10),
    ("nothing waits for longer", 9 * HOUR, 8 * HOUR, 10),
    ("a slow subscription", 9 * HOUR, 45 * HOUR, 50),
)
def test_a_time_to_live_outlasts_the_bound_of_delays(longest_s: int, oldest_s: int, hours: int) -> None:
    """The time to live is set above the longest delay and the oldest waiting message, with a margin, in whole hours."""
    proposal = proposed(longest_s, oldest_s=oldest_s)
    assert changes(proposal) == [(TTL, TimeToLive(seconds=hours * HOUR))]
    assert undone(only_step(proposal)) == TimeToLive(seconds=HOUR)


@cases(
    "fields, ttl_hours, bound_days",
    ("both", {}, 187, 7),
    ("it lives for long enough", {"ttl_s": 20 * DAY}, None, 7),
    ("what waits already", {"oldest_s": 8 * DAY}, 320, 12),
    ("the policy's", {"policy": a_policy(delayed_delivery_remedy={"longest_delay_hours": 24})}, 27, 1),
)
def test_delays_without_a_bound_get_one(fields: dict[str, Any], ttl_hours: int | None, bound_days: int) -> None:
    proposal = proposed(**fields)
    ttl = [] if ttl_hours is None else [(TTL, TimeToLive(seconds=ttl_hours * HOUR))]
    assert changes(proposal) == [*ttl, (DELAYS, days(bound_days))]
    assert undone(steps(proposal)[-1]) is None


def test_a_time_to_live_above_brokers_default_takes_nothing_away() -> None:
    (step,) = steps(proposed(9 * HOUR, own={}, defaults={TTL: TimeToLive(seconds=HOUR), DELAYS: ON}))

    assert isinstance(step.change, ChangeSetting)
    assert (step.change.before, step.change.after) == (None, TimeToLive(seconds=10 * HOUR))
    assert step.change.inherited == TimeToLive(seconds=HOUR)
    assert all(result.passed for result in step.guards)
    assert (step.change.takes_messages, step.change.inverse.takes_messages) == (False, True)
    assert step.undo_note == "Set it back: not set (1 h applies)."


def test_what_expires_if_it_is_rejected() -> None:
    """The raise of the time to live states by topic the delayed messages that it saves; the bound states none."""
    first, second = steps(proposed())

    topic = TopicLoss(topic=TOPIC, messages=90, bytes=500)
    assert first.averts == Loss(topics=(topic,), messages=90, bytes=500)
    assert second.averts is msgspec.UNSET


@cases(
    "fields, words",
    ("gone", {"own": {}}, "no time to live any more"),
    ("long enough", {"longest_s": HOUR, "ttl_s": DAY}, "longer already"),
    ("too long", {"longest_s": 40 * DAY}, "raised to 30 d at most"),
    ("no bound", {"policy": a_policy(delayed_delivery_remedy={"longest_delay_hours": 0})}, "the policy names no bound"),
    ("not known", {"defaults": {}}, "brokers do not tell"),
    ("off", {"defaults": {DELAYS: DelayedDelivery(active=False, tick_milliseconds=1)}}, "brokers do not tell"),
    ("version", {"versions": ("3.0.7",)}, "version_tried: Pulsar 3.0.7 has no `maxDeliveryDelayInMillis`"),
    ("other changes", {"claimed_settings": frozenset({NAMESPACE})}, "changes other settings of it first"),
)
def test_why_nothing_is_proposed(fields: dict[str, Any], words: str) -> None:
    assert words in refusal(proposed(**fields))


def test_what_is_said_of_it(golden: Golden) -> None:
    """The texts of both steps tell how the values are computed, what the cluster shows then, and how to undo them."""
    proposal = proposed(oldest_s=8 * DAY)
    golden(proposal.batches[0].title)
    for step in steps(proposal):
        for text in (step.why, step.effect, step.undo_note):
            golden(text)
    golden(" ".join(proposed(longest_s=40 * DAY).notes))
