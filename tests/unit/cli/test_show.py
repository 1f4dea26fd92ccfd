"""``steward show``."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from pulsar_steward.ledger.publishing import Ending, NewQuestion, QuestionChanges
from pulsar_steward.ledger.rows import EndReason, Outcome, Proof, StepOutcome
from pulsar_steward.ledger.write import LedgerWriter
from pulsar_steward.policy.schema import Policy
from tests.builders import ASKED_DIGEST, NOW, a_batch, a_plan, a_step, an_intended_call
from tests.ledgers import ledger_at
from tests.unit.cli.recorded import RUN, approved

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.golden import Golden
    from tests.unit.cli.conftest import Ended

    Steward = Callable[..., Ended]

PLAN = a_plan(a_batch(a_step()), notes=("a note",))
NEWER = a_plan(a_batch(a_step(why="else")))
COMMON: dict[str, Any] = {"plan_id": PLAN.plan_id, "batch_id": "b1", "run": RUN, "at": NOW}


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A ledger with an answered, carried out, proved and superseded plan, and the newer one."""
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    engine = ledger_at(url)
    writer = LedgerWriter(engine)
    writer.record_plan(PLAN, NOW)
    writer.record_request(PLAN, "b1", RUN, NOW, asked_digest=ASKED_DIGEST, policy=Policy())
    writer.record_answer(approved(PLAN, NOW))
    outcome = StepOutcome(**COMMON, step_id="b1.s01", intent_id=None, outcome=Outcome.DRIFTED, reason="moved", proof={})
    writer.record_outcome(outcome)
    writer.record_proof(Proof(**COMMON, proved=False, reason="still there", shown={}))
    writer.record_plan(NEWER, NOW, supersede=[PLAN.plan_id])
    engine.dispose()
    return url


def without_digests(text: str) -> str:
    """Printed lines, whatever else a plan may hold one day."""
    for plan, name in ((PLAN, "PLAN"), (NEWER, "NEWER")):
        text = text.replace(plan.plan_id, name).replace(plan.digest, f"DIGEST OF {name}")
    return text


def test_a_plan_is_shown_with_what_became_of_it(steward: Steward, url: str, golden: Golden) -> None:
    """A plan is shown with its steps, question, answer and comment, outcome, proof and successor."""
    ended = steward("show", PLAN.plan_id, "--ledger", url)

    assert ended.code == 0
    golden(without_digests(ended.out))


def test_a_plan_that_nobody_answered_says_so(
    steward: Steward, url: str, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    """A plan without an answer is shown as such, and the ledger may be named in the environment."""
    monkeypatch.setenv("STEWARD_LEDGER", url)

    ended = steward("show", NEWER.plan_id)

    assert ended.code == 0
    golden(without_digests(ended.out))


def test_a_question_that_ended_is_shown_with_its_reason(steward: Steward, tmp_path: Path) -> None:
    """An ended question is shown with its reason and with the last snapshot that proposed the same."""
    url = f"sqlite:///{tmp_path / 'questions.db'}"
    engine = ledger_at(url)
    writer = LedgerWriter(engine)
    asked = NewQuestion(batch_id="b1", content_digest="0" * 64, goal="tc_balance")
    writer.record_plan(PLAN, NOW, questions=QuestionChanges(asked=(asked,)))
    later = msgspec.structs.replace(NEWER, taken_at=NOW + timedelta(hours=1))
    writer.record_confirmations(later, [1], NOW)
    end = Ending(question_id=1, reason=EndReason.NO_LONGER_PROPOSED, words="a later observation no longer proposes it")
    writer.record_plan(NEWER, NOW, questions=QuestionChanges(ended=(end,)))
    engine.dispose()

    read = " ".join(steward("show", PLAN.plan_id, "--ledger", url).out.split())

    assert "proposed the same again, at last by the snapshot of 2026-03-01 13:00:00" in read
    assert "the question ended 2026-03-01 12:00:00" in read
    assert "a later observation no longer proposes it" in read


def test_a_plan_that_is_not_there_is_told_with_those_that_are(steward: Steward, url: str) -> None:
    """An unknown plan is an error that suggests a similar id, or another ledger."""
    ended = steward("show", PLAN.plan_id[:-3], "--ledger", url)

    assert ended.code == 2
    assert f"did you mean {PLAN.plan_id}" in ended.err
    assert "another ledger" in steward("show", "nowhere-20260101T000000Z-0123", "--ledger", url).err


def test_a_batch_under_way_is_shown_as_such(steward: Steward, tmp_path: Path, golden: Golden) -> None:
    """A batch under way is shown with the step whose call is being made and the number of steps that have ended."""
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    engine = ledger_at(url)
    writer = LedgerWriter(engine)
    writer.record_plan(PLAN, NOW)
    writer.record_request(PLAN, "b1", RUN, NOW, asked_digest=ASKED_DIGEST, policy=Policy())
    answer_id = writer.record_answer(approved(PLAN, NOW))
    lease = writer.take_lease(PLAN.named_cluster, RUN, 60, NOW)
    step = PLAN.batch("b1").steps[0]
    intended = an_intended_call(PLAN, step, approved(PLAN, NOW), answer_id)
    writer.record_intent(intended, lease, NOW)
    engine.dispose()

    golden(without_digests(steward("show", PLAN.plan_id, "--ledger", url).out))
