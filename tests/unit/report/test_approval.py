"""The text that a person reads before agreeing holds all that they agree to, also for hundreds of steps."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.loss import NOTHING_LOST, InFlight, Loss, TopicLoss
from pulsar_steward.model.plan import BROKER_DRAIN, ROLLBACK, Placement, TakenBack
from pulsar_steward.model.setting import (
    BacklogQuota,
    DelayedDelivery,
    QuotaPolicy,
    Retention,
    Setting,
    SettingName,
    TimeToLive,
)
from pulsar_steward.model.step import ChangeSetting, GuardResult, Step, Touched
from pulsar_steward.planners.settings.facts import undo_note
from pulsar_steward.policy.approval import ApprovalPolicy
from pulsar_steward.policy.schema import Policy
from pulsar_steward.report.approval import body, labels, subject
from tests.builders import IDENTITY, NOW, a_batch, a_move, a_plan, a_split, a_step, broker
from tests.questions import DETAILS, FIRST, question

if TYPE_CHECKING:
    from pulsar_steward.model.plan import Batch
    from tests.golden import Golden

SPLIT = a_step(
    a_split(),
    step_id="b1.s01",
    effect="both halves stay",
    undo_note="A split cannot be undone",
    touched=Touched(producers=1, consumers=2, topics=3, coordinators=1),
    guards=(GuardResult(guard="owner", passed=True, reason="owns it"),),
)
MOVE = a_step(
    a_move(bundle="0x00000000_0x08000000"),
    step_id="b1.s02",
    effect="goes from 6 to 5",
    undo=a_move(source=broker(1), target=broker(0)),
    undo_note="Unload it back",
    touched=Touched(producers=1000, consumers=500, topics=3, coordinators=2),
    guards=(GuardResult(guard="owner", passed=True, reason="owns it"),),
    after=("b1.s01",),
)
BATCH = a_batch(
    SPLIT,
    MOVE,
    title="Even out",
    before=(Placement(broker(0), 6), Placement(broker(1), 4)),
    after=(Placement(broker(0), 5), Placement(broker(1), 5)),
)
PLAN = a_plan(BATCH)
POLICY = Policy(approval=ApprovalPolicy(valid_minutes=45, response_timeout_minutes=90))
BODY = question(PLAN, BATCH, POLICY)


def test_what_it_costs_and_what_it_means_is_said(golden: Golden) -> None:
    """The question tells the placement before and after, the clients, how long the approval counts, and the plan."""
    assert f"SHA-256 {PLAN.digest}" in body(PLAN, BATCH, POLICY)
    golden(BODY)


def test_a_batch_that_can_be_undone_says_so() -> None:
    """The question says that the change can be reverted if each step of the batch has an undo."""
    batch = a_batch(a_step(MOVE.change, undo=MOVE.undo, undo_note=MOVE.undo_note))
    words = question(a_plan(batch), batch, POLICY)
    assert "The change can be reverted." in words
    assert "cannot be undone" not in words


def test_a_veto_is_shown_and_not_hidden_by_passes() -> None:
    """The question shows a guard's veto at planning and does not say that all guards passed."""
    vetoed = a_step(MOVE.change, guards=(*MOVE.guards, GuardResult(guard="cooldown", passed=False, reason="rests")))
    batch = a_batch(vetoed)
    words = question(a_plan(batch), batch, POLICY)
    assert "b1.s01: cooldown: rests" in words
    assert "Guards passed for every step" not in words


def test_the_subject_and_the_ticks_name_things_briefly(golden: Golden) -> None:
    """The question's subject is one line with title and risk, and each tick has a one-line label."""
    assert subject(PLAN, BATCH) == "east: Even out (1 warning; medium risk)"
    assert list(labels(BATCH)) == ["b1.s01", "b1.s02"]
    golden("\n".join(labels(BATCH).values()))


def test_names_from_outside_stay_names() -> None:
    """A namespace, a broker or a finding that looks like Markdown or HTML is shown as it is."""
    evil = "<img src=x onerror=alert(1)>|[a](b)`"
    change = a_move(namespace=f"t/{evil}", target=evil)
    finding = Finding(check_id="tc-skew", severity=Severity.CRITICAL, subject=evil, evidence=evil, figures={})
    batch = a_batch(a_step(change), title=evil, findings=(finding,))
    words = body(a_plan(batch), batch, POLICY)
    assert "<img" not in words.replace(r"\<img", "")
    assert "](" not in words.replace(r"\]\(", "")


def test_a_way_back_names_what_it_takes_back_first_and_what_stays(golden: Golden) -> None:
    batch = a_batch(
        a_step(
            MOVE.change,
            undo=MOVE.undo,
            undo_note=MOVE.undo_note,
            why="b1.s02 moved it",
            undoes="older/b1.s02",
            in_flight=InFlight(again=12_000, volatile_topics=1, lost=10_400),
        ),
        kind=ROLLBACK,
        title="Take back batch b1 of plan older, approved by operator",
        findings=(),
        before=BATCH.after,
        after=BATCH.before,
        takes_back=TakenBack(kind="tc_balance", findings=BATCH.findings),
    )
    plan = a_plan(batch, notes=("b1.s01: the split cannot be undone",))
    words = question(plan, batch, POLICY)
    golden(words)


def test_a_drain_that_is_taken_back_makes_no_circle() -> None:
    """The question of a rollback of a drain does not say that the namespace is left alone for it."""
    back = {
        kind: a_batch(a_step(MOVE.change, undoes="older/b1.s02"), kind=ROLLBACK, takes_back=TakenBack(kind=kind))
        for kind in (BROKER_DRAIN, "bundle_balance")
    }
    told = {kind: "guards.circle" in question(a_plan(batch), batch, POLICY) for kind, batch in back.items()}
    assert told == {BROKER_DRAIN: False, "bundle_balance": True}


def test_a_way_back_of_everything_mentions_nothing_that_stays() -> None:
    """The question of a complete rollback has no section on what stays, and states the reason of a step once."""
    change = ChangeSetting(namespace="shop/orders", name=SettingName.TTL, before=TimeToLive(seconds=60), after=None)
    batch = a_batch(a_step(change, why="b1.s01 changed it", undoes="older/b1.s01"), kind=ROLLBACK)
    words = question(a_plan(batch), batch, POLICY)
    assert "What is not taken back" not in words
    assert words.count("changed it") == 1


NOBODY = Touched(producers=0, consumers=0, topics=0, coordinators=0)
"""Whom a change of a setting disturbs."""


def asked(name: SettingName, after: Setting | None, before: Setting | None = None, **fields: Any) -> str:
    """Text about a step that changes a setting and can be taken back, without Markdown's backslashes."""
    change = ChangeSetting(namespace="shop/orders", name=name, before=before, after=after)
    batch = a_batch(a_step(change, touched=NOBODY, undo=change.inverse, undo_note=undo_note(change), **fields))
    plan = a_plan(batch)
    return question(plan, batch, POLICY)


EVICT = BacklogQuota(limit_bytes=1000, policy=QuotaPolicy.EVICT)
EVICTED = Loss(
    topics=(TopicLoss(topic="t1", messages=70, bytes=4096), TopicLoss(topic="t2", messages=5, bytes=1024)),
    more=3,
    messages=1080,
    bytes=6144,
)
ROOM = GuardResult(guard="age_room", passed=True, reason="the oldest is 1 h old")
KEPT, LESS = Retention(minutes=600, megabytes=-1), Retention(minutes=60, megabytes=-1)


DELETES = {
    "evicts": asked(SettingName.SIZE_QUOTA, EVICT, loss=EVICTED),
    "evicts as before": asked(SettingName.SIZE_QUOTA, EVICT, EVICT, loss=EVICTED),
    "would evict": asked(SettingName.SIZE_QUOTA, EVICT),
    "keeps less": asked(SettingName.RETENTION, LESS, KEPT, loss=Loss(messages=0, bytes=2048)),
    "keeps less of nothing": asked(SettingName.RETENTION, LESS, KEPT),
    "keeps as brokers do": asked(SettingName.RETENTION, None, KEPT),
}


@pytest.mark.parametrize("words", DELETES.values(), ids=DELETES)
def test_what_is_deleted_is_told_in_the_largest_letters(words: str, golden: Golden) -> None:
    """A step that deletes messages has one top heading that says so, with known losses by topic, the largest first."""
    assert words.count("### LETS BROKERS DELETE MESSAGES (1 step)") == 1
    golden(words)


def test_a_quota_that_would_evict_nothing_is_named() -> None:
    """The card of an evicting quota says what is deleted now and for good, and which quota would delete nothing."""
    card = asked(SettingName.SIZE_QUOTA, EVICT, loss=EVICTED).split(DETAILS)[0]
    assert "The size quota can be reverted; deleted messages cannot." in card
    assert "A quota of 4.5 KiB would evict nothing now" in card


def test_what_stops_producers_is_told_in_large_letters(golden: Golden) -> None:
    """A step that stops producers has a heading that says so, with what its guard saw below it."""
    words = asked(SettingName.AGE_QUOTA, BacklogQuota(limit_seconds=60, policy=QuotaPolicy.HOLD), guards=(ROOM,))
    assert "stops producers" in words
    golden(words)


def test_a_retention_that_is_raised_deletes_nothing() -> None:
    assert "DELETE" not in asked(SettingName.RETENTION, KEPT, LESS)


def test_the_cluster_is_named_as_pulsar_names_it(golden: Golden) -> None:
    words = question(PLAN, BATCH, POLICY, now=NOW)
    (line,) = (line for line in words.splitlines() if "Only in Pulsar cluster" in line)
    assert str(IDENTITY.metadata_id) in line
    golden(line)


def test_what_rejecting_means_is_said_by_topic(golden: Golden) -> None:
    """The question about a longer time to live lists by topic the unread messages that expire after a rejection."""
    words = asked(SettingName.TTL, TimeToLive(seconds=7200), TimeToLive(seconds=3600), averts=EVICTED)
    golden(words)


def test_a_bound_of_delays_says_whom_it_refuses() -> None:
    """A step that bounds delays has a top heading that it refuses messages; a step that removes the bound has none."""
    any_delay = DelayedDelivery(active=True, tick_milliseconds=1000)
    bounded = DelayedDelivery(active=True, tick_milliseconds=1000, longest_milliseconds=3_600_000)
    words = asked(SettingName.DELAYED_DELIVERY, bounded)
    assert "### REFUSES MESSAGES that are to be delayed for longer (1 step)" in words
    assert "to be delayed for more than 1 h is taken" in words
    assert "REFUSES" not in asked(SettingName.DELAYED_DELIVERY, any_delay, bounded)


PAGE = "/steward/plans/made-up#b1"
PASSED = (GuardResult(guard="setting_as_planned", passed=True, reason="as it was"),)


def kept(minutes: int) -> Retention:
    """A retention of so many minutes."""
    return Retention(minutes=minutes, megabytes=-1)


def held(gibibytes: int) -> BacklogQuota:
    """A size quota that stops producers."""
    return BacklogQuota(limit_bytes=gibibytes << 30, policy=QuotaPolicy.HOLD)


def settings_of(number: int) -> tuple[tuple[SettingName, Setting, Setting], ...]:
    """Settings of a namespace; every third one had another retention before."""
    return (
        (SettingName.RETENTION, kept(10_080 + number % 3), kept(1440)),
        (SettingName.SIZE_QUOTA, held(9), held(4)),
        (SettingName.TTL, TimeToLive(seconds=600), TimeToLive(seconds=7200)),
    )


def a_group(namespaces: int) -> Batch:
    """A batch of three settings in each of so many namespaces; the later ones lose more."""
    steps: list[Step] = []
    for number in range(namespaces):
        name = f"{'shop' if number % 2 else 'bank'}/ns-{number:03d}"
        for setting, before, after in settings_of(number):
            loses = setting is SettingName.RETENTION and number % 2
            topics = (TopicLoss(topic=f"persistent://{name}/t", messages=0, bytes=number << 20),)
            lost = Loss(topics=topics, messages=0, bytes=number << 20) if loses else NOTHING_LOST
            more: dict[str, Any] = {"loss": lost} if setting is SettingName.RETENTION else {}
            if setting is SettingName.TTL:
                more["averts"] = Loss(topics=topics, messages=number, bytes=number << 10)
            change = ChangeSetting(namespace=name, name=setting, before=before, after=after)
            steps.append(
                a_step(
                    change,
                    step_id=f"b1.s{len(steps) + 1:02d}",
                    why=f"reason {number}",
                    touched=Touched(producers=0, consumers=0, topics=number, coordinators=0),
                    guards=PASSED,
                    undo=change.inverse,
                    **more,
                )
            )
    findings = tuple(
        Finding(
            check_id="retention-unbounded" if number % 2 else "backlog-near-quota",
            severity=Severity.CRITICAL if number % 5 == 0 else Severity.WARNING,
            subject=f"ns-{number}",
            evidence=f"Made up {number}.",
            figures={},
            first_seen=NOW - timedelta(hours=number),
            snapshots_in_a_row=number,
        )
        for number in range(namespaces)
    )
    return a_batch(*steps, kind="retention", title="many namespaces", findings=findings, parts=(3,) * namespaces)


def words_of(batch: Batch, **fields: Any) -> str:
    """Text of the question."""
    return question(a_plan(batch), batch, **{"page": PAGE, **fields})


def test_many_steps_are_told_by_sums(golden: Golden) -> None:
    words = words_of(a_group(60))
    golden(words)


def test_the_text_does_not_grow_with_the_namespaces() -> None:
    """The question about 600 steps is less than a tenth longer than one about 150, and each step has its tick."""
    large, larger = words_of(a_group(50)), words_of(batch := a_group(200))
    assert len(larger) < 1.1 * len(large)
    assert len(labels(batch)) == 600


def test_the_page_of_the_plan_is_the_only_link() -> None:
    """The question's only link leads to the plan's page, and is left out if the page's address is not known."""
    assert re.findall(r"\]\([^)]*\)", words_of(a_group(20))) == [f"]({PAGE})"]
    assert re.findall(r"\]\([^)]*\)", words_of(a_group(20), page="")) == []


def test_what_is_lost_is_summed_up() -> None:
    """Headings count the steps that delete messages or stop producers, and the headline tells the total loss."""
    words, lost = words_of(a_group(60)), sum(number << 20 for number in range(1, 60, 2))
    assert words.startswith(
        f"east: Deletes up to {lost >> 20} MiB of consumed messages of 30 topics in 30 namespaces, now ("
    )
    assert "### LETS BROKERS DELETE MESSAGES (60 steps)" in words
    assert "### Stops producers of topics over the new limit (60 steps)" in words
    assert f"in 30 namespaces together at once: {lost >> 20} MiB at most" in words


def test_what_cannot_be_undone_is_said_of_many() -> None:
    """The question says of many splits that they cannot be undone; splits have no new values."""
    steps = [a_step(a_split(namespace=f"a/n{n}"), step_id=f"b1.s{n:02d}") for n in range(1, 41)]
    words = words_of(a_batch(*steps, kind="bundle_split", parts=(1,) * 40))
    assert "It cannot be undone." in words
    assert "120 clients reconnect" in words
    assert "### New values" not in words


def test_a_second_person_reads_how_much_the_first_one_approved() -> None:
    batch = a_group(60)
    ids = tuple(step.step_id for step in batch.steps)
    first = msgspec.structs.replace(FIRST, step_ids=ids[:100])
    assert "alice approved 100 of 180 steps" in words_of(batch, first=first)
