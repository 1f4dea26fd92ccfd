"""What a person reads before agreeing holds all that they agree to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from pulsar_steward.changes import kind_of
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.loss import Loss, TopicLoss
from pulsar_steward.model.plan import ROLLBACK, Placement
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, Retention, SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting, GuardResult, Touched
from pulsar_steward.policy.approval import ApprovalPolicy
from pulsar_steward.policy.schema import Policy
from pulsar_steward.report.approval import body, labels, subject
from pulsar_steward.report.markdown import text
from tests.builders import IDENTITY, a_batch, a_move, a_plan, a_split, a_step, broker

if TYPE_CHECKING:
    from pulsar_steward.model.setting import Setting

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
BODY = body(PLAN, BATCH, POLICY)


@pytest.mark.parametrize("step", [SPLIT, MOVE], ids=["split", "move"])
def test_each_step_is_told_whole(step: object) -> None:
    """Its id, the change, the effect, the way back, and the exact call."""
    chosen = SPLIT if step is SPLIT else MOVE
    for words in (chosen.step_id, kind_of(chosen.change).describe(), chosen.effect, chosen.undo_note):
        assert text(words) in BODY
    assert f"- `{kind_of(chosen.change).call()}`\n" in BODY


@pytest.mark.parametrize(
    "words",
    [
        "| broker-00:8080 | 6 | 5 |",
        "| broker-01:8080 | 4 | 5 |",
        "1,503 clients will reconnect; 3 transaction coordinators pause for a moment.",
        "**b1.s01 cannot be undone.**",
        "(after b1.s01)".replace("(", r"\(").replace(")", r"\)"),
        "1,000 / 500",
        "within 45 minutes of your answer",
        "No answer within 1 h 30 min is a rejection",
        "- WARNING: made up",
        PLAN.digest[:12],
        "Guards passed for every step: owner.",
    ],
)
def test_what_it_costs_and_what_it_means_is_said(words: str) -> None:
    """Placement before and after, clients, the end of the approval, the reasons, and which plan it is."""
    assert words in BODY


def test_a_batch_that_can_be_undone_says_so() -> None:
    """Where every step has its inverse, the reader is told."""
    batch = a_batch(a_step(MOVE.change, undo=MOVE.undo, undo_note=MOVE.undo_note))
    words = body(a_plan(batch), batch, POLICY)
    assert "Every step can be undone." in words
    assert "cannot be undone" not in words


def test_a_veto_is_shown_and_not_hidden_by_passes() -> None:
    """Where a guard objected at planning, that is what is read."""
    vetoed = a_step(MOVE.change, guards=(*MOVE.guards, GuardResult(guard="cooldown", passed=False, reason="rests")))
    batch = a_batch(vetoed)
    words = body(a_plan(batch), batch, POLICY)
    assert "b1.s01: cooldown: rests" in words
    assert "Guards passed for every step" not in words


def test_the_subject_and_the_ticks_name_things_briefly() -> None:
    """One line for the list of what waits, and one beside each tick."""
    assert subject(PLAN, BATCH) == "east: Even out"
    assert labels(BATCH) == {
        "b1.s01": "b1.s01: split 0x00000000_0x10000000 on broker-00:8080",
        "b1.s02": "b1.s02: move 0x00000000_0x08000000 from broker-00:8080 to broker-01:8080",
    }


def test_names_from_outside_stay_names() -> None:
    """A namespace, a broker or a finding that looks like Markdown or HTML is shown as it is."""
    evil = "<img src=x onerror=alert(1)>|[a](b)`"
    change = a_move(namespace=f"t/{evil}", target=evil)
    finding = Finding(check_id="tc-skew", severity=Severity.CRITICAL, subject=evil, evidence=evil, figures={})
    batch = a_batch(
        a_step(change, effect=evil, undo_note=evil),
        unit=evil,
        findings=(finding,),
        before=(Placement(evil, 1),),
        after=(Placement(evil, 2),),
    )
    words = body(a_plan(batch), batch, POLICY)
    outside_code = words.split("### The exact calls")[0]
    assert "<img" not in outside_code.replace(r"\<img", "")
    assert "](" not in outside_code.replace(r"\]\(", "")
    assert "<img" not in words.split("### The exact calls")[1].split("\n\nPlan")[0]  # quoted in the path


def test_a_way_back_names_what_it_takes_back_first_and_what_stays() -> None:
    """The title opens the text; what is not taken back and why each step is there follow, once each."""
    batch = a_batch(
        a_step(MOVE.change, undo=MOVE.undo, undo_note=MOVE.undo_note, why="b1.s02 moved it", undoes="older/b1.s02"),
        kind=ROLLBACK,
        title="Take back batch b1 of plan older, approved by operator",
        findings=(),
    )
    words = body(a_plan(batch, notes=("b1.s01: the split cannot be undone",)), batch, POLICY)
    assert words.startswith("**Take back batch b1 of plan older, approved by operator.**")
    assert f"### What is not taken back\n\n- {text('b1.s01: the split cannot be undone')}" in words
    assert f"### Why\n\n- {text('b1.s01: b1.s02 moved it.')}\n" in words
    assert "A newer way back of the same batch takes this one's place" in words


def test_a_way_back_of_everything_mentions_nothing_that_stays() -> None:
    """No empty list is shown; nor are a setting's reasons told twice."""
    change = ChangeSetting(namespace="shop/orders", name=SettingName.TTL, before=TimeToLive(seconds=60), after=None)
    batch = a_batch(a_step(change, why="b1.s01 changed it", undoes="older/b1.s01"), kind=ROLLBACK)
    words = body(a_plan(batch), batch, POLICY)
    assert "What is not taken back" not in words
    assert words.count("changed it") == 1


def asked(name: SettingName, after: Setting | None, before: Setting | None = None, **fields: Any) -> str:
    """What is read of a step that changes a setting, without Markdown's backslashes."""
    change = ChangeSetting(namespace="shop/orders", name=name, before=before, after=after)
    batch = a_batch(a_step(change, undo=change.inverse, **fields))
    return body(a_plan(batch), batch, POLICY).replace("\\", "")


EVICT = BacklogQuota(limit_bytes=1000, policy=QuotaPolicy.EVICT)
EVICTED = Loss(
    topics=(TopicLoss(topic="t1", messages=70, bytes=4096), TopicLoss(topic="t2", messages=5, bytes=1024)),
    more=3,
    messages=1080,
    bytes=6144,
)
ROOM = GuardResult(guard="age_room", passed=True, reason="the oldest is 1 h old")
KEPT, LESS = Retention(minutes=600, megabytes=-1), Retention(minutes=60, megabytes=-1)
LETS = "# b1.s01 LETS BROKERS DELETE MESSAGES"


@pytest.mark.parametrize(
    ("words", "there"),
    [
        (asked(SettingName.SIZE_QUOTA, EVICT, loss=EVICTED), LETS),
        (asked(SettingName.SIZE_QUOTA, EVICT, loss=EVICTED), "AT ONCE 1,080 MESSAGES (6 KiB) THAT NOBODY HAS READ ARE"),
        (asked(SettingName.SIZE_QUOTA, EVICT, loss=EVICTED), "ARE LOST, of 5 topics"),
        (
            asked(SettingName.SIZE_QUOTA, EVICT, loss=EVICTED),
            "- t1: 70 messages, 4 KiB\n- t2: 5 messages, 1 KiB\n- and 3 topics more, each with less",
        ),
        (asked(SettingName.SIZE_QUOTA, EVICT, EVICT, loss=EVICTED), LETS),
        (asked(SettingName.SIZE_QUOTA, EVICT), "no topic is over it now, so nothing is lost at once"),
        (asked(SettingName.RETENTION, LESS, KEPT, loss=Loss(bytes=2048)), LETS),
        (
            asked(SettingName.RETENTION, LESS, KEPT, loss=Loss(bytes=2048)),
            "up to 2 KiB, as of the snapshot, is deleted",
        ),
        (asked(SettingName.RETENTION, None, KEPT), "what is kept beyond it is deleted, and cannot be read again"),
        (asked(SettingName.RETENTION, LESS, KEPT), "What brokers have deleted by then does not come back."),
        (
            asked(SettingName.AGE_QUOTA, BacklogQuota(limit_seconds=60, policy=QuotaPolicy.HOLD), guards=(ROOM,)),
            "STOPS PRODUCERS of a topic that is over it\n\n- age quota of shop/orders: the oldest is 1 h old",
        ),
    ],
)
def test_what_is_deleted_is_told_in_the_largest_letters(words: str, there: str) -> None:
    """By topic where it is known, the worst first, with how many there are beyond those."""
    assert there in words


def test_a_retention_that_is_raised_deletes_nothing() -> None:
    """And is not said to."""
    assert "DELETE" not in asked(SettingName.RETENTION, KEPT, LESS)


def test_the_cluster_is_named_as_pulsar_names_it() -> None:
    """It is what the plan is held to; one that does not say it promises nothing."""
    named = msgspec.structs.replace(PLAN, pulsar_cluster=IDENTITY)
    assert "Only in Pulsar cluster local (metadata 0123456789abcdef), and" in body(named, BATCH, POLICY).replace(
        "\\", ""
    )
    assert "Only in Pulsar cluster" not in body(PLAN, BATCH, POLICY)
