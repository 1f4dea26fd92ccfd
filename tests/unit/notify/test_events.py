"""Notices to people, word by word, and that the same event has the same key however often it is looked for."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.ledger.halts import EVERY_CLUSTER, way_out_of_variable
from pulsar_steward.ledger.questions import UNASKED_AFTER, UnaskedQuestion
from pulsar_steward.ledger.rows import Outcome
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.notice import Notice, Occasion
from pulsar_steward.notify.events import (
    batch_notices,
    halt_notices,
    question_notices,
    trouble_notices,
    unasked_notices,
    variable_notices,
)
from pulsar_steward.notify.variable import VariableHalt, seen_now
from tests.builders import CLUSTER, NOW
from tests.cases import cases
from tests.unit.notify.notices import NASTY, a_halt, a_question, a_snapshot, a_step, an_end

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pulsar_steward.ledger.batch_record import BatchRun
    from tests.golden import Golden

HOUR = timedelta(hours=1)
WORSE: dict[str, Any] = {"proof": {"health": {"level": "worse"}}, "reason": "12 of 40 consumers did not come back"}

OF_NOBODY: dict[str, Any] = {
    "cluster": CLUSTER,
    "plan_id": "plan-1",
    "batch_id": "b1",
    "kind": "tc_balance",
    "title": "move 3 bundles of transaction coordinators",
    "steps": 3,
    "since": NOW,
}


def texts(notices: Iterable[Notice]) -> str:
    """Notices as people read them."""
    return "\n\n".join(
        f"{each.occasion} ({each.severity}) at {each.at:%H:%M}\n{each.subject}\n{each.text}\n{each.path}"
        for each in notices
    )


def occasions(notices: Iterable[Notice]) -> list[str]:
    """Occasions of notices."""
    return [each.occasion.value for each in notices]


def test_a_question_that_waits(golden: Golden) -> None:
    """A notice says what is asked and until when, and links to the question of the first or second person."""
    questions = [a_question(), a_question(batch_id="b2", voice=2, steps=1)]
    golden(texts(question_notices(questions, NOW, HOUR)))


def test_a_question_that_is_about_to_end(golden: Golden) -> None:
    """A question is announced once more before it ends, and not earlier than the given time."""
    question = a_question()
    late = question.ends_at - HOUR
    assert occasions(question_notices([question], late - timedelta(seconds=1), HOUR)) == ["waiting"]
    golden(texts(list(question_notices([question], late, HOUR))[1:]))


@pytest.mark.parametrize("paused", [True, False, None])
def test_a_question_that_nobody_was_asked(golden: Golden, paused: bool | None) -> None:
    questions = [UnaskedQuestion(**OF_NOBODY), UnaskedQuestion(**{**OF_NOBODY, "title": NASTY, "plan_id": NASTY})]
    assert list(unasked_notices(questions, NOW + UNASKED_AFTER - timedelta(seconds=1), paused)) == []
    golden(texts(unasked_notices(questions, NOW + UNASKED_AFTER, paused)))


def test_a_short_question_is_not_about_to_end_when_it_begins() -> None:
    """A short question is announced as about to end only when half of its time is left."""
    question = a_question(ends_at=NOW + timedelta(minutes=10))
    assert occasions(question_notices([question], NOW + timedelta(minutes=4), HOUR)) == ["waiting"]
    assert occasions(question_notices([question], NOW + timedelta(minutes=5), HOUR)) == ["waiting", "expiring"]


def test_a_question_that_is_asked_again_is_the_same() -> None:
    """A question that is asked again keeps its key; another plan, batch, run or person has another key."""
    [first] = question_notices([a_question()], NOW, HOUR)
    [again] = question_notices([a_question(asked_at=NOW + HOUR, ends_at=NOW + timedelta(days=2))], NOW, HOUR)
    assert again.key == first.key
    others = [a_question(plan_id="p2"), a_question(batch_id="b2"), a_question(run="r/r/1"), a_question(voice=2)]
    assert len({first.key, *(each.key for each in question_notices(others, NOW, HOUR))}) == 5


def test_how_a_batch_ends(golden: Golden) -> None:
    """Each way in which a batch ends has its own text and severity, and names the steps."""
    refused, failed = a_step(Outcome.REFUSED, 2, reason="halted"), a_step(Outcome.FAILED, 2, reason="409 busy")
    ends = [
        an_end(a_step(), a_step(number=2)),
        an_end(a_step(Outcome.DRIFTED), refused, proved=None),
        an_end(a_step(**WORSE), refused, proved=False, proof_reason="b1.s01 did harm"),
        an_end(a_step(), failed, proved=False, proof_reason="b1.s02 failed"),
        an_end(a_step(), proved=False, proof_reason="b1.s01 was done, but now broker-00 owns it"),
        an_end(a_step(Outcome.UNKNOWN, reason="no answer"), failed, proved=False, proof_reason="b1.s01 unknown"),
        an_end(*(a_step(Outcome.REFUSED, number) for number in range(1, 9)), proved=False, proof_reason="refused"),
    ]
    golden(texts(batch_notices(ends)))


@cases(
    "end",
    ("not proved yet", an_end(a_step(), proved=None, approved=1)),
    ("steps are missing", an_end(a_step(Outcome.FAILED), proved=None, approved=2)),
    ("nothing approved", an_end(approved=0, proved=False)),
)
def test_a_batch_that_goes_on_is_not_told(end: BatchRun) -> None:
    """A batch that is not finished, or of which no step was approved, gives no notice."""
    assert occasions(batch_notices([end])) == []


def test_a_halt_and_its_end(golden: Golden) -> None:
    """A halt and its end are announced, and a halt of every cluster is announced for each cluster."""
    halts = [a_halt(), a_halt(halted=False, halt_id=8, reason="done"), a_halt(cluster=EVERY_CLUSTER, halt_id=9)]
    golden(texts(halt_notices(halts, [CLUSTER, "west"])))


def test_a_halt_by_the_variable_and_its_end(golden: Golden) -> None:
    """A notice about the halt variable links to Airflow's variables, and shows names in its value as text."""
    seen = {
        CLUSTER: VariableHalt(halted=True, at=NOW, value="east, west", way_out="take east out of it to go on"),
        "west": VariableHalt(halted=False, at=NOW + HOUR, value=""),
    }
    golden(texts(variable_notices(seen)))
    (nasty,) = variable_notices({CLUSTER: VariableHalt(halted=True, at=NOW, value=NASTY)})
    assert "\n" not in nasty.text
    assert "\u202e" not in nasty.text


def test_what_the_variable_says_is_noticed_when_it_changes() -> None:
    """Each change of the halt variable keeps the time at which it was first seen, and has a notice key of its own."""

    def seen(before: Mapping[str, VariableHalt], value: str, clusters: list[str], at: datetime) -> Any:
        return seen_now(
            before, value, lambda each: way_out_of_variable(value, each, {CLUSTER, "west"}.__contains__), clusters, at
        )

    halted = seen({}, "west , east", [CLUSTER, "north"], NOW)
    way_out = "take east out of it to go on"
    assert halted == {CLUSTER: VariableHalt(halted=True, at=NOW, value="west , east", way_out=way_out)}
    assert seen(halted, "east", [CLUSTER, "west"], NOW + HOUR) == halted
    assert seen(halted, "", ["north"], NOW + HOUR) == halted
    over = seen(halted, "", [CLUSTER, "north"], NOW + HOUR)
    assert over == {CLUSTER: VariableHalt(halted=False, at=NOW + HOUR, value="")}
    every = seen(over, EVERY_CLUSTER, [CLUSTER, "north"], NOW + 2 * HOUR)
    assert {name: (each.halted, each.at) for name, each in every.items()} == dict.fromkeys(
        (CLUSTER, "north"), (True, NOW + 2 * HOUR)
    )
    keys = [each.key for some in (halted, over, every) for each in variable_notices(some)]
    assert len(set(keys)) == len(keys) == 4


def test_troubles_come_grow_and_go(golden: Golden) -> None:
    """Troubles of the first snapshot give no notice; later ones do when they appear, grow, disappear or come back."""
    looks = [a_snapshot(0), a_snapshot(1, "a/b"), a_snapshot(2, "a/b", "c/d"), a_snapshot(3, "c/d"), a_snapshot(4)]
    golden(texts(trouble_notices(CLUSTER, looks)))
    assert occasions(trouble_notices(CLUSTER, looks[:1])) == []
    assert occasions(trouble_notices(CLUSTER, [])) == []


def test_what_nobody_could_judge_is_not_gone() -> None:
    """A finding is gone only when a later snapshot judges its check and does not show it."""
    looks = [a_snapshot(0, "a/b"), a_snapshot(1, judged=()), a_snapshot(2)]
    assert occasions(trouble_notices(CLUSTER, looks[:2])) == []
    [gone] = trouble_notices(CLUSTER, looks)
    assert (gone.occasion, gone.at) == (Occasion.FINDING_GONE, looks[2].taken_at)


def test_a_partial_snapshot_makes_no_later_one_worse() -> None:
    """A complete snapshot is compared with the last complete one; what a partial one shows anew is told at once."""
    four = ("a", "b", "c", "d")
    looks = [a_snapshot(0, *four), a_snapshot(1, "a", judged=()), a_snapshot(2, *four), a_snapshot(3, *four, "e")]
    assert occasions(trouble_notices(CLUSTER, looks[:3])) == []
    [worse] = trouble_notices(CLUSTER, looks)
    assert "(4 → 5)" in worse.subject


def test_the_same_snapshots_give_the_same_keys() -> None:
    """A notice about a finding stays the same where older snapshots are missing."""
    looks = [a_snapshot(0), a_snapshot(1, "a/b"), a_snapshot(2, "a/b"), a_snapshot(3)]
    [new, gone] = trouble_notices(CLUSTER, looks)
    [later] = trouble_notices(CLUSTER, looks[1:])
    assert later == gone
    assert new.key != gone.key
    assert new.severity is Severity.CRITICAL


def test_hostile_names_are_text(golden: Golden) -> None:
    """Hostile names are shown on one line without hidden characters, and are escaped in paths."""
    question = a_question(title=NASTY, plan_id=NASTY, run=f"dag/{NASTY}/3")
    end = an_end(a_step(Outcome.FAILED, reason=NASTY * 100), title=NASTY * 20, plan_id=NASTY, proof_reason=NASTY)
    halt = a_halt(said_by=NASTY, reason=NASTY)
    finding = a_snapshot(1, NASTY)
    notices = [
        *question_notices([question], NOW, HOUR),
        *batch_notices([end]),
        *halt_notices([halt], [CLUSTER]),
        *trouble_notices(CLUSTER, [a_snapshot(0), finding]),
    ]
    for each in notices:
        assert "\n" not in each.subject
        assert each.path.isascii()
        assert "<" not in each.path
        assert "\u202e" not in f"{each.subject}{each.text}"
    golden(texts(notices))


def test_nothing_here_needs_airflow() -> None:
    """Deriving events imports no module of Airflow, neither directly nor by way of other modules."""
    code = "import sys, pulsar_steward.notify.events; print(*{name.partition('.')[0] for name in sys.modules})"
    path = os.pathsep.join(entry for entry in sys.path if entry)
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": path}, check=True, capture_output=True, text=True
    )
    packages = done.stdout.split()
    assert "pulsar_steward" in packages
    assert "airflow" not in packages
