"""Delayed messages outlive their delay: a longer time to live, and a bound of delays where nothing bounds them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from pulsar_steward.facts.backlogs import BacklogAges, backlog_of
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.loss import Loss, TopicLoss
from pulsar_steward.model.setting import DelayedDelivery, Setting, SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting, Step
from pulsar_steward.planners.settings.facts import BacklogSample, NamespaceFact
from pulsar_steward.planners.settings.namespaces import DELAYS as PLANNER
from tests.builders import NOW, a_policy, planning_facts_with

if TYPE_CHECKING:
    from pulsar_steward.planners.base import Proposal
    from tests.golden import Golden

HOUR, DAY = 3600, 86_400
NAMESPACE = "shop/orders"
TOPIC, OTHER = f"persistent://{NAMESPACE}/reminders", f"persistent://{NAMESPACE}/orders"
TTL, DELAYS = SettingName.TTL, SettingName.DELAYED_DELIVERY
ON = DelayedDelivery(active=True, tick_milliseconds=1000)


def days(count: int) -> DelayedDelivery:
    """Delayed delivery with a bound of so many days."""
    return DelayedDelivery(active=True, tick_milliseconds=1000, longest_milliseconds=count * DAY * 1000)


def proposed(longest_s: int = 0, *, ttl_s: int = HOUR, oldest_s: int = 0, **fields: Any) -> Proposal:
    """Proposal for a namespace with delayed messages; `fields` are of `NamespaceFact` or `PlanningFacts`."""
    finding = Finding(
        check_id="delayed-past-ttl",
        severity=Severity.WARNING,
        subject=NAMESPACE,
        evidence="made up",
        figures={"longest_delay_seconds": longest_s, "ttl_seconds": ttl_s, "delayed_messages": 9, "subscriptions": 1},
    )
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
    known = {"findings": (finding,), "namespaces": (fact,), "clocks_differ_milliseconds": 0, "defaults": {DELAYS: ON}}
    return PLANNER.proposal(planning_facts_with(3, **{**known, **fields}))


def steps(proposal: Proposal) -> list[Step]:
    """All steps, in order."""
    return [step for batch in proposal.batches for step in batch.steps]


def changes(proposal: Proposal) -> list[tuple[SettingName, Setting | None]]:
    """Values that are set, in order."""
    found = [step.change for step in steps(proposal)]
    return [(change.name, change.after) for change in found if isinstance(change, ChangeSetting)]


@pytest.mark.parametrize(
    ("longest_s", "oldest_s", "hours"),
    [(9 * HOUR, 0, 10), (9 * HOUR, 8 * HOUR, 10), (9 * HOUR, 45 * HOUR, 50)],
    ids=["the longest delay", "nothing waits for longer", "a slow subscription"],
)
def test_a_time_to_live_outlasts_the_bound_of_delays(longest_s: int, oldest_s: int, hours: int) -> None:
    """The time to live is set above the longest delay and the oldest waiting message, with a margin, in whole hours."""
    proposal = proposed(longest_s, oldest_s=oldest_s)

    assert changes(proposal) == [(TTL, TimeToLive(seconds=hours * HOUR))]
    (step,) = steps(proposal)
    assert isinstance(step.undo, ChangeSetting)
    assert step.undo.after == TimeToLive(seconds=HOUR)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, [(TTL, TimeToLive(seconds=187 * HOUR)), (DELAYS, days(7))]),
        ({"ttl_s": 20 * DAY}, [(DELAYS, days(7))]),
        ({"oldest_s": 8 * DAY}, [(TTL, TimeToLive(seconds=320 * HOUR)), (DELAYS, days(12))]),
        (
            {"policy": a_policy(delayed_delivery_remedy={"longest_delay_hours": 24})},
            [(TTL, TimeToLive(seconds=27 * HOUR)), (DELAYS, days(1))],
        ),
    ],
    ids=["both", "it lives for long enough", "what waits already", "the policy's"],
)
def test_delays_without_a_bound_get_one(
    fields: dict[str, Any], expected: list[tuple[SettingName, Setting | None]]
) -> None:
    """Delays without a bound get one, after any step that raises the time to live, and its undo removes the bound."""
    proposal = proposed(**fields)

    assert changes(proposal) == expected
    last = steps(proposal)[-1]
    assert isinstance(last.undo, ChangeSetting)
    assert last.undo.after is None
    assert all(step.guards for step in steps(proposal))
    assert all(result.passed for step in steps(proposal) for result in step.guards)


def test_a_time_to_live_above_brokers_default_takes_nothing_away() -> None:
    """A longer time to live than the brokers' default passes the guards, and says what applies once it is removed."""
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


UNTRIED = "version_tried: Pulsar 3.0.7 has no `maxDeliveryDelayInMillis`"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"own": {}}, "no time to live any more"),
        ({"longest_s": HOUR, "ttl_s": DAY}, "longer already"),
        ({"longest_s": 40 * DAY}, "raised to 30 d at most"),
        ({"policy": a_policy(delayed_delivery_remedy={"longest_delay_hours": 0})}, "the policy names no bound"),
        ({"defaults": {}}, "brokers do not tell"),
        ({"defaults": {DELAYS: DelayedDelivery(active=False, tick_milliseconds=1)}}, "brokers do not tell"),
        ({"versions": ("3.0.7",)}, UNTRIED),
        ({"claimed_settings": frozenset({NAMESPACE})}, "changes other settings of it first"),
    ],
    ids=["gone", "long enough", "too long", "no bound", "not known", "off", "version", "other changes"],
)
def test_why_nothing_is_proposed(fields: dict[str, Any], words: str) -> None:
    """A note gives the reason if neither a longer time to live nor a bound of delays is proposed."""
    proposal = proposed(**fields)

    assert not proposal.batches
    assert words in " ".join(proposal.notes)


def test_what_is_said_of_it(golden: Golden) -> None:
    """The texts of both steps tell how the values are computed, what the cluster shows then, and how to undo them."""
    proposal = proposed(oldest_s=8 * DAY)

    golden(proposal.batches[0].title)
    for step in steps(proposal):
        golden(step.why)
        golden(step.effect)
        golden(step.undo_note)
    golden(" ".join(proposed(longest_s=40 * DAY).notes))
