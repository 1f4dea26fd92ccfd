"""Another rate of writing cursors, a smaller E, and delayed messages that outlive their delay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pulsar_steward.facts.backlogs import BacklogAges, backlog_of
from pulsar_steward.facts.protocol import Bookies
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.loss import Loss, TopicLoss
from pulsar_steward.model.setting import DelayedDelivery, Persistence, SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting
from pulsar_steward.planners.settings.facts import BacklogSample, NamespaceFact
from pulsar_steward.planners.settings.namespaces import DELAYS as DELAYS_PLANNER
from pulsar_steward.planners.settings.namespaces import PERSISTENCE as PLANNER
from tests.builders import NOW, a_finding, a_policy, planning_facts_with
from tests.cases import cases
from tests.unit.planners.proposals import changes, only_step, refusal, steps, undone

if TYPE_CHECKING:
    from pulsar_steward.planners.base import Proposal
    from pulsar_steward.policy.schema import Policy
    from tests.golden import Golden

NAMESPACE = "shop/orders"
NAME = SettingName.PERSISTENCE
USUAL = Persistence.of((3, 2, 2), 1.0)
SELDOM, OFTEN = {"messages": 30_000, "seconds": 100}, {"cursor_writes_per_second": 6_000, "percent": 75}
FINDINGS = {"ack-state-seldom": SELDOM, "ack-state-often": OFTEN, "ensemble-too-large": {"bookies": 2, "ensemble": 3}}


def at_rate(rate: float) -> Persistence:
    """What is usual, with another rate of cursors' writes."""
    return Persistence.of((3, 2, 2), rate)


def asking(**remedy: object) -> Policy:
    """A policy that wants both asked, and vouches for the version, on which it was tried on no real broker yet."""
    both = {"propose_rate": True, "propose_ensemble": True}
    return a_policy(persistence_remedy={**both, **remedy})


def proposed(*checks: str, own: Persistence | None = USUAL, subject: str = NAMESPACE, **fields: Any) -> Proposal:
    """Proposal for a namespace with warnings of these checks; `fields` are of `PlanningFacts`."""
    found = tuple(
        Finding(check_id=each, severity=Severity.WARNING, subject=subject, evidence="made up", figures=FINDINGS[each])
        for each in checks
    )
    fact = NamespaceFact(
        namespace=NAMESPACE,
        own={} if own is None else {NAME: own},
        looks=(BacklogSample(taken_at=NOW, topics=3),),
        busiest_bytes_per_second=0.0,
        stored_bytes=0,
    )
    known = {"findings": found, "namespaces": (fact,), "bookies": Bookies(listed=2), "policy": asking()}
    return PLANNER.proposal(planning_facts_with(3, **{**known, **fields}))


def the_change(proposal: Proposal) -> ChangeSetting:
    (batch,) = proposal.batches
    (step,) = batch.steps
    assert batch.kind == "persistence"
    assert isinstance(step.change, ChangeSetting)
    assert step.undo == step.change.inverse
    return step.change


@cases(
    "check, own, after",
    ("seldom", "ack-state-seldom", at_rate(0.01), at_rate(1.0)),
    ("often", "ack-state-often", USUAL, at_rate(0.2)),
    ("no limit", "ack-state-often", Persistence.of((3, 2, 2), 0.0, "class"), Persistence.of((3, 2, 2), 0.2, "class")),
    ("too large", "ensemble-too-large", USUAL, Persistence.of((2, 2, 2), 1.0)),
)
def test_one_part_is_changed_and_the_rest_is_sent_as_it_is(check: str, own: Persistence, after: Persistence) -> None:
    """The rate or E is changed; Qw, Qa and whatever else Pulsar keeps beside them stay."""
    change = the_change(proposed(check, own=own))
    assert (change.before, change.after) == (own, after)


def test_the_brokers_default_is_taken_over_with_what_is_changed() -> None:
    """A namespace that sets nothing gets the brokers' E, Qw and Qa, and its way back is to set nothing."""
    change = the_change(proposed("ack-state-often", own=None, defaults={NAME: USUAL}))
    assert (change.before, change.after) == (None, Persistence.of((3, 2, 2), 0.2))
    assert (change.inherited, change.inverse.after) == (USUAL, None)


def test_both_parts_are_one_step() -> None:
    """Pulsar keeps both in one policy, so one step changes both, with both reasons."""
    proposal = proposed("ack-state-often", "ensemble-too-large")
    assert the_change(proposal).after == Persistence.of((2, 2, 2), 0.2)
    (step,) = proposal.batches[0].steps
    assert "6,000 times a second in all: 75 % of what is written to bookies" in step.why
    assert "was acknowledged in the last 5 s comes again" in step.why
    assert "new ledgers need 3 bookies, and there are 2" in step.why
    assert "E, Qw and Qa hold for new ledgers" in step.effect
    assert "that are known to take writes" in step.undo_note


@cases(
    "checks, fields, note",
    ("rate off", ["ack-state-often"], {"policy": asking(propose_rate=False)}, "key persistence_remedy.propose_rate"),
    ("no E", ["ensemble-too-large"], {"policy": asking(propose_ensemble=False)}, "persistence_remedy.propose_ensemble"),
    ("both", ["ack-state-often", "ack-state-seldom"], {}, "decide by hand"),
    ("seldom already", ["ack-state-often"], {"own": at_rate(0.2)}, "cursors are written once in 5 s already"),
    (
        "no oftener",
        ["ack-state-seldom"],
        {"own": at_rate(1 / 30), "policy": asking(seldom_seconds=60)},
        "once in 30 s already, and once in 1 min would be no oftener",
    ),
    ("below 0", ["ack-state-often"], {"own": at_rate(-1)}, "the brokers' default on others: decide by hand"),
    ("copies", ["ensemble-too-large"], {"own": Persistence.of((3, 3, 2), 1.0)}, "fewer copies are for people"),
    ("no default", ["ack-state-often"], {"own": None}, "brokers do not tell which E, Qw, Qa and rate apply"),
    ("no fact", ["ack-state-often"], {"namespaces": ()}, "its settings are not in the snapshot"),
    ("too few", ["ensemble-too-large"], {"bookies": Bookies(listed=1)}, "bookies_enough: E 2 of 1 bookie"),
)
def test_why_nothing_is_proposed_is_said(checks: list[str], fields: dict[str, Any], note: str) -> None:
    """Both are off by default, copies stay, and what is not known is not guessed."""
    proposal = proposed(*checks, **fields)
    assert proposal.batches == ()
    assert note in " ".join(proposal.notes)


def test_a_reason_says_only_what_was_read() -> None:
    """Large ack states are the reason without a count of writes, which is not 0 where brokers do not tell it."""
    finding = Finding(
        check_id="ack-state-often",
        severity=Severity.WARNING,
        subject=NAMESPACE,
        evidence="made up",
        figures={"state_bytes_per_second": 20 << 20},
    )
    proposal = proposed(findings=(finding,))
    (step,) = proposal.batches[0].steps
    assert "large ack states are written whole each time, about 20 MiB a second" in step.why
    assert "0 times" not in step.why


def test_both_are_off_by_default() -> None:
    """No figure shows what consumers can bear, nor why there are so many bookies: an operator decides to be asked."""
    proposal = proposed(*FINDINGS, policy=a_policy())
    assert proposal.batches == ()
    assert len(proposal.notes) == 2


def test_findings_of_the_brokers_default_are_left_to_people() -> None:
    assert proposed("ack-state-seldom", subject="lab") == msgspec.structs.replace(proposed(), batches=(), notes=())


HOUR, DAY = 3600, 86_400
TOPIC, OTHER = f"persistent://{NAMESPACE}/reminders", f"persistent://{NAMESPACE}/orders"
TTL, DELAYS = SettingName.TTL, SettingName.DELAYED_DELIVERY
ON = DelayedDelivery(active=True, tick_milliseconds=1000)


def days(count: int) -> DelayedDelivery:
    return DelayedDelivery(active=True, tick_milliseconds=1000, longest_milliseconds=count * DAY * 1000)


def delays_proposed(longest_s: int = 0, *, ttl_s: int = HOUR, oldest_s: int = 0, **fields: Any) -> Proposal:
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
    return DELAYS_PLANNER.proposal(planning_facts_with(3, **{**known, **fields}))


@cases(
    "longest_s, oldest_s, hours",
    ("the longest delay", 9 * HOUR, 0, 10),
    ("nothing waits for longer", 9 * HOUR, 8 * HOUR, 10),
    ("a slow subscription", 9 * HOUR, 45 * HOUR, 50),
)
def test_a_time_to_live_outlasts_the_bound_of_delays(longest_s: int, oldest_s: int, hours: int) -> None:
    """The time to live is set above the longest delay and the oldest waiting message, with a margin, in whole hours."""
    proposal = delays_proposed(longest_s, oldest_s=oldest_s)
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
    proposal = delays_proposed(**fields)
    ttl = [] if ttl_hours is None else [(TTL, TimeToLive(seconds=ttl_hours * HOUR))]
    assert changes(proposal) == [*ttl, (DELAYS, days(bound_days))]
    assert undone(steps(proposal)[-1]) is None


def test_a_time_to_live_above_brokers_default_takes_nothing_away() -> None:
    (step,) = steps(delays_proposed(9 * HOUR, own={}, defaults={TTL: TimeToLive(seconds=HOUR), DELAYS: ON}))

    assert isinstance(step.change, ChangeSetting)
    assert (step.change.before, step.change.after) == (None, TimeToLive(seconds=10 * HOUR))
    assert step.change.inherited == TimeToLive(seconds=HOUR)
    assert all(result.passed for result in step.guards)
    assert (step.change.takes_messages, step.change.inverse.takes_messages) == (False, True)
    assert step.undo_note == "Set it back: not set (1 h applies)."


def test_what_expires_if_it_is_rejected() -> None:
    """The raise of the time to live states by topic the delayed messages that it saves; the bound states none."""
    first, second = steps(delays_proposed())

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
    assert words in refusal(delays_proposed(**fields))


def test_what_is_said_of_it(golden: Golden) -> None:
    """The texts of both steps tell how the values are computed, what the cluster shows then, and how to undo them."""
    proposal = delays_proposed(oldest_s=8 * DAY)
    golden(proposal.batches[0].title)
    for step in steps(proposal):
        for text in (step.why, step.effect, step.undo_note):
            golden(text)
    golden(" ".join(delays_proposed(longest_s=40 * DAY).notes))
