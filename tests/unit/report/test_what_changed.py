"""Text about the difference to the question that was asked before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from pulsar_steward.changes import kind_of
from pulsar_steward.ledger.rows import EndReason, QuestionEnd
from pulsar_steward.model.loss import Loss
from pulsar_steward.model.setting import SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting, GuardResult
from pulsar_steward.policy.schema import Policy
from pulsar_steward.report.approval import body
from pulsar_steward.report.what_changed import Former, what_changed
from tests.builders import NOW, a_batch, a_move, a_plan, a_step, broker

if TYPE_CHECKING:
    from pulsar_steward.model.step import Step

MOVE, OTHER = a_step(), a_step(a_move(bundle="0x10000000_0x20000000"), step_id="b1.s02")
BATCH = a_batch(MOVE, OTHER)


def former(*steps: Step, reason: EndReason = EndReason.CHANGED) -> Former:
    """A question with these steps that ended."""
    end = QuestionEnd(
        question_id=1,
        plan_id="p",
        batch_id="b1",
        at=NOW,
        reason=reason,
        by_plan_id="new",
        by_batch_id="b1",
        words="made up",
    )
    return Former(end=end, steps=steps)


def differences(*steps: Step) -> tuple[str, ...]:
    """Lines about the steps."""
    return what_changed(BATCH, former(*steps))[1:]


def test_steps_that_were_added_and_left_out() -> None:
    """Steps that were added or left out are listed by what they do, and unchanged ones are counted."""
    assert differences(MOVE) == (f"Added: b1.s02, {kind_of(OTHER.change).describe()}.", "1 step as before.")
    third = a_step(a_move(bundle="0x20000000_0x30000000"))
    assert differences(MOVE, OTHER, third) == (f"Left out: {kind_of(third.change).describe()}.", "2 steps as before.")


def test_a_group_may_take_the_place_of_several_questions() -> None:
    """A group's question is compared with all questions that it replaces, in any order, by steps and by losses."""
    both = msgspec.structs.replace(former(OTHER, MOVE), others=1)
    why, rest = what_changed(BATCH, both)
    assert "plan p, batch b1, and 1 other question" in why
    assert rest == "The steps are the same, with the same values."
    loses = a_batch(MOVE, msgspec.structs.replace(OTHER, loss=Loss(messages=1, bytes=0)))
    assert what_changed(loses, both)[1:] == ("More would be lost, or delivered again, than was asked before.",)


def test_another_value() -> None:
    """A changed step is listed with its new value and its former one."""
    was = a_step(a_move(target=broker(2)))
    said, _ = differences(was, OTHER)
    assert said == f"Changed: b1.s01, {kind_of(MOVE.change).describe()}; it was: {kind_of(was.change).describe()}."


def test_another_way_back_and_another_verdict() -> None:
    """A step whose undo or guard verdict changed is listed as changed."""
    undone = msgspec.structs.replace(MOVE, undo=a_move())
    assert differences(undone, OTHER)[0] == "Changed: b1.s01 cannot be undone by now."
    looked = msgspec.structs.replace(MOVE, guards=(GuardResult(guard="owner", passed=False, reason=""),))
    assert differences(looked, OTHER)[0] == "Changed: b1.s01 is judged otherwise by owner (objects)."


def test_more_would_be_lost() -> None:
    """A larger loss is named as the change if the steps are the same."""
    ttl = ChangeSetting(namespace="a/b", name=SettingName.TTL, before=None, after=TimeToLive(seconds=60))
    now, then = (a_step(ttl, loss=Loss(messages=number, bytes=1)) for number in (6, 5))
    assert what_changed(a_batch(now), former(then))[1:] == (
        "More would be lost, or delivered again, than was asked before.",
    )


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (EndReason.CHANGED, "It takes the place of plan p, batch b1"),
        (EndReason.ASKED_ANEW, "Asked before (plan p, batch b1), and not carried out"),
        (EndReason.POLICY_LOOSENED, "under a stricter policy: that answer"),
    ],
)
def test_why_it_is_asked_again(reason: EndReason, words: str) -> None:
    """The text gives the reason why a question is asked again, also if its steps are the same."""
    why, same = what_changed(BATCH, former(MOVE, OTHER, reason=reason))
    assert words in why
    assert same == "The steps are the same, with the same values."


def test_the_question_says_it() -> None:
    """The question has a section about changes only if it takes the place of a former question."""
    heading = "### What changed since it was asked before"
    plan = a_plan(BATCH)
    assert heading in body(plan, BATCH, Policy(), former=former(MOVE))
    assert heading not in body(plan, BATCH, Policy())
