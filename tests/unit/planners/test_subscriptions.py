"""Deletions of abandoned subscriptions: only where the policy asks for them, of what is abandoned for long enough."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from pulsar_steward.changes.risk import risk_of
from pulsar_steward.checks.clients.subscription_abandoned import CHECK
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.loss import Loss, TopicLoss
from pulsar_steward.model.plan import content_digest, loses_more
from pulsar_steward.model.risk import Risk
from pulsar_steward.model.step import DeleteSubscription
from pulsar_steward.model.subscription import SubscriptionState
from pulsar_steward.planners.planning_facts import PlanningFacts, SubscriptionFact, subscription_facts
from pulsar_steward.planners.registry import make_plan
from pulsar_steward.planners.subscriptions.abandoned import PLANNER
from pulsar_steward.snapshots.read import open_snapshot
from tests.builders import CURSOR, NOW, a_deletion, a_policy, planning_facts_with
from tests.cases import cases
from tests.questions import question
from tests.unit.report_checkup.snapshots import Rows, a_finding, written

if TYPE_CHECKING:
    from pathlib import Path

    from pulsar_steward.planners.base import Proposal
    from tests.golden import Golden

DAYS = 86_400
ASKED: dict[str, Any] = {"delete_abandoned": True}


def topic(name: str = "events", namespace: str = "shop/events") -> str:
    return f"persistent://{namespace}/{name}"


def a_fact(name: str = "events", namespace: str = "shop/events", days: float = 40, **state: Any) -> SubscriptionFact:
    """A subscription `audit` that nobody has come to for so many days; `state` is its `SubscriptionState`."""
    usual: dict[str, Any] = {"consumers": 0, "entries": 13_000, "topic_bytes": 3 << 30, "cursor": CURSOR, "others": 1}
    beside = state.pop("consumers_beside", 0)
    return SubscriptionFact(
        subject=f"{topic(name, namespace)} subscription audit",
        namespace=namespace,
        topic=topic(name, namespace),
        subscription="audit",
        cursor=CURSOR,
        state=SubscriptionState(**{**usual, **state}),
        consumers_beside=beside,
        since=NOW - timedelta(days=days),
        entries_then=2_000,
        seconds=int(days * DAYS),
    )


def found(fact: SubscriptionFact, severity: Severity = Severity.WARNING) -> Finding:
    """The check's finding of it."""
    return Finding(
        check_id=CHECK.check_id, severity=severity, subject=fact.subject, evidence="Nobody comes.", figures={}
    )


def planning(*facts: SubscriptionFact, limits: dict[str, Any] | None = None, **fields: Any) -> PlanningFacts:
    """A snapshot with these, under a policy that lets people be asked."""
    known = facts or (a_fact(),)
    policy = a_policy(subscriptions=ASKED if limits is None else limits, **fields.pop("policy", {}))
    usual: dict[str, Any] = {"findings": tuple(map(found, known)), "subscriptions": known, "policy": policy}
    return planning_facts_with(3, **{**usual, **fields})


def proposed(*facts: SubscriptionFact, **more: Any) -> Proposal:
    return PLANNER.proposal(planning(*facts, **more))


def deleted(proposal: Proposal) -> list[str]:
    """The topics whose subscription is to be deleted, in order."""
    changes = [step.change for batch in proposal.batches for step in batch.steps]
    return [change.topic for change in changes if isinstance(change, DeleteSubscription)]


def test_nothing_is_proposed_by_default() -> None:
    """No deletion is proposed under the default policy, and a note names the key that permits it."""
    proposal = proposed(limits={})
    assert proposal.batches == ()
    (note,) = proposal.notes
    assert "policy key subscriptions.delete_abandoned" in note


def test_an_abandoned_subscription_is_proposed_with_its_loss() -> None:
    """A deletion states its loss at the snapshot with a rounded upper limit, passes its guards and has no undo."""
    (batch,) = proposed().batches
    (step,) = batch.steps
    assert (batch.kind, batch.title) == ("subscription_deletion", "shop/events: delete 1 abandoned subscription")
    assert step.change == a_deletion(topic(), stay=1)
    assert step.loss == Loss(
        topics=(TopicLoss(topic=topic(), messages=13_000, bytes=3 << 30),), messages=20_000, bytes=4 << 30
    )
    assert (step.undo, "cannot be undone" in step.undo_note) == (None, True)
    assert all(guard.passed for guard in step.guards)
    assert {"subscription_unused", "subscription_expendable", "loss_as_approved"} <= {g.guard for g in step.guards}


def test_the_risk_of_it_is_critical() -> None:
    """The deletion of a subscription has critical risk, as it loses unread messages and cannot be undone."""
    plan = make_plan(planning())
    risk = risk_of(plan, plan.batches[0])
    assert risk.level is Risk.CRITICAL
    assert any("up to 20,000 entries that nobody has read are deleted" in reason.words for reason in risk.reasons)
    assert any("b1.s01 cannot be undone" in reason.words for reason in risk.reasons)


@pytest.mark.parametrize(("entries", "asks_anew"), [(13_000, False), (15_999, False), (16_001, True)])
def test_a_question_stands_while_the_backlog_grows(entries: int, asks_anew: bool) -> None:
    """A larger backlog does not change the question, and counts as a larger loss only above the limit stated in it."""
    first, later = make_plan(planning()), make_plan(planning(a_fact(entries=entries)))
    asked, now = first.batches[0], later.batches[0]
    assert content_digest(first, asked) == content_digest(later, now)
    assert loses_more(now, asked) == asks_anew


@pytest.mark.parametrize(
    ("entries", "most"), [(0, 1), (1, 1), (2, 2), (8, 10), (1_000, 2_000), (4_000, 5_000), (4_001, 10_000)]
)
def test_the_most_that_is_lost_has_room_for_growth(entries: int, most: int) -> None:
    """The stated limit of lost messages has a quarter of headroom and is rounded up to one of few numbers."""
    (batch,) = proposed(a_fact(entries=entries)).batches
    (step,) = batch.steps
    assert isinstance(step.loss, Loss)
    assert step.loss.messages == most


def test_one_batch_a_namespace_the_longest_abandoned_first() -> None:
    facts = (
        a_fact("a", days=40),
        a_fact("b", days=80),
        a_fact("c", "shop/other", days=60),
        a_fact("d", "shop/other", days=50),
    )
    proposal = proposed(*facts, limits={**ASKED, "most_steps_per_plan": 3})
    assert [batch.title.partition(":")[0] for batch in proposal.batches] == ["shop/events", "shop/other"]
    assert deleted(proposal) == [topic("b"), topic("c", "shop/other"), topic("d", "shop/other")]
    assert [len(batch.findings) for batch in proposal.batches] == [1, 2]
    (note,) = proposal.notes
    assert f"{topic('a')} subscription audit come with later plans" in note


def test_no_more_are_deleted_than_one_run_permits() -> None:
    """Deletions stay below the limit of changes a run, all guards pass, and a note names the policy key."""
    facts = (a_fact("a", days=40), a_fact("b", days=80), a_fact("c", days=60))
    proposal = proposed(*facts, policy={"guards": {"most_changes_per_run": 2}})
    assert deleted(proposal) == [topic("b"), topic("c")]
    assert all(result.passed for batch in proposal.batches for step in batch.steps for result in step.guards)
    (note,) = proposal.notes
    assert "as one deletes 2 at most (policy key guards.most_changes_per_run)" in note


def test_what_is_not_abandoned_for_long_enough_waits() -> None:
    """A subscription is proposed only after it was abandoned for the policy's `minimum_days`, and a note says so."""
    proposal = proposed(a_fact(days=34.9))
    assert proposal.batches == ()
    assert "before nobody has come for 35 days (policy key subscriptions.minimum_days)" in proposal.notes[0]
    assert deleted(proposed(a_fact(days=34.9), limits={**ASKED, "minimum_days": 34})) == [topic()]


@cases(
    "state, fields, words",
    ("consumer", {"consumers": 1}, {}, "subscription_unused"),
    ("other partition", {"consumers_beside": 2}, {}, "2 consumers of this name are connected to other partitions"),
    ("moved", {"moved_milliseconds": int(NOW.timestamp() * 1000)}, {}, "consumed, skipped or expired"),
    ("protected topic", {}, {"limits": {**ASKED, "protected_topics": [topic("a")]}}, "subscription_expendable"),
    ("protected namespace", {}, {"policy": {"apply": {"protected_namespaces": ["shop/events"]}}}, "Guard protected"),
    ("version", {}, {"versions": ("4.9.0",)}, "never tried"),
)
def test_what_a_guard_vetoes_is_noted(state: dict[str, Any], fields: dict[str, Any], words: str) -> None:
    """A vetoed deletion is noted with the guard's reason and takes no slot of the plan's step limit."""
    vetoed, other = a_fact("a", days=90, **state), a_fact("b", "shop/other")
    proposal = proposed(vetoed, **fields)
    assert proposal.batches == ()
    (note,) = proposal.notes
    assert (words in note, "keeps subscriptions from deletion" in note) == (True, True), note
    if "versions" not in fields:
        limits = {**fields.get("limits", ASKED), "most_steps_per_plan": 1}
        assert deleted(proposed(vetoed, other, **{**fields, "limits": limits})) == [topic("b", "shop/other")]


def test_nothing_is_proposed_from_a_partial_snapshot_or_of_what_it_lacks() -> None:
    partial = proposed(unread=("broker-01:8080",))
    assert (partial.batches, "partial without broker-01:8080" in partial.notes[0]) == ((), True)
    proposal = proposed(subscriptions=())
    assert (proposal.batches, "the snapshot does not have them" in proposal.notes[0]) == ((), True)


def test_the_last_subscription_of_a_topic_says_what_that_means() -> None:
    (batch,) = proposed(a_fact(others=0)).batches
    assert "`brokerDeleteInactiveTopicsEnabled`" in batch.steps[0].effect


def test_the_text_of_the_question(golden: Golden) -> None:
    """The question states the loss by topic, that it cannot be undone, and the exact call."""
    facts = planning(a_fact(), a_fact("carts", days=50.5, entries=700, topic_bytes=9_000, others=0))
    plan = make_plan(facts)
    golden(question(plan, plan.batches[0], facts.policy))


FIGURES = {
    "beginning_seen": 1,
    "entries": 900,
    "entries_then": 400,
    "since_epoch_seconds": int((NOW - timedelta(days=40)).timestamp()),
    "without_consumer_seconds": 40 * DAYS,
}


def rows(name: str, subscription: str, **figures: Any) -> dict[str, Any]:
    known = {"topic": topic(name), "namespace": "shop/events"}
    return known | ({"subscription": subscription} if subscription else {}) | figures


MADE = msgspec.json.encode(CURSOR).decode()
TABLES: dict[str, Rows] = {
    "topics": [rows(f"wide-partition-{number}", "", backlog_bytes=1000 + number) for number in range(3)],
    "subscriptions": [
        *(
            rows(f"wide-partition-{number}", "audit", consumers=number, backlog_entries=900 + number)
            for number in range(3)
        ),
        rows("wide-partition-0", "billing", consumers=7, backlog_entries=0),
        rows("wide", "audit", consumers=5, backlog_entries=0),
    ],
    "drilled": [
        rows("wide-partition-0", "audit", last_consumed_milliseconds=5, last_acked_milliseconds=9, cursor_json=MADE),
        rows("wide-partition-0", "billing", last_consumed_milliseconds=99),
        {"topic": topic("wide-partition-0"), "namespace": "shop/events"},
    ],
}


def test_facts_are_read_of_what_a_warning_names(tmp_path: Path) -> None:
    """A fact is read for each warned subscription whose cursor is known, with the topic's other ones and consumers."""
    subject, other = (f"{topic(f'wide-partition-{number}')} subscription audit" for number in (0, 2))
    figures = {"figures_json": msgspec.json.encode(FIGURES).decode()}
    told = [
        *(a_finding("warning", CHECK.check_id, subject=each) | figures for each in (subject, other)),
        a_finding("info", CHECK.check_id, subject=f"{topic('wide-partition-1')} subscription audit"),
    ]
    snapshot = open_snapshot(written(tmp_path / "snapshot", findings=told, **TABLES))
    (fact,) = subscription_facts(snapshot, snapshot.findings())
    assert fact == SubscriptionFact(
        subject=subject,
        namespace="shop/events",
        topic=topic("wide-partition-0"),
        subscription="audit",
        cursor=CURSOR,
        state=SubscriptionState(
            consumers=0, entries=900, topic_bytes=1000, moved_milliseconds=9, cursor=CURSOR, others=1
        ),
        consumers_beside=1 + 2 + 5,
        since=NOW - timedelta(days=40),
        entries_then=400,
        seconds=40 * DAYS,
    )
