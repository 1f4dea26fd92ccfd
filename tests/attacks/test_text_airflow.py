"""Outside text in Airflow: questions and outcomes hold nothing hidden, and answers of any size or shape are bounded."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from pulsar_steward.errors import Refused
from pulsar_steward.ledger.read import LedgerReader
from pulsar_steward.ledger.rows import Answer, Decision, Outcome, RecordedAnswer
from pulsar_steward.ledger.write import LedgerWriter
from pulsar_steward.orchestration import applying, batch_tasks, batches, remediating
from pulsar_steward.orchestration.applying import ApplyBatch
from pulsar_steward.orchestration.approval_response import ApprovalQuestion, interpret
from pulsar_steward.orchestration.batches import BatchRef
from pulsar_steward.orchestration.question_form import APPROVE, QUESTION, REJECT
from pulsar_steward.orchestration.question_trigger import END
from pulsar_steward.policy.approval import ApprovalPolicy
from tests.apply.worksite import Worksite
from tests.asking import a_context, answer_of, asked
from tests.attacks.hostile import HOSTILE, READ, a_plan_of, a_run_of, unseen
from tests.builders import ASKED_DIGEST, CLUSTER, NOW, a_batch, a_plan, a_step
from tests.ledgers import ledger_at

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pulsar_steward.model.plan import Plan
    from tests.apply.worksite import Worksite
    from tests.asking import AirflowRows
    from tests.attacks.conftest import Connect


@pytest.fixture
def site(site: Worksite, home: Path, connect: Connect) -> Worksite:
    """The usual one behind connections of Airflow's; only alice may answer."""
    (home / "policy.yaml").write_text("approval: {assigned_users: [alice]}", encoding="utf-8")
    connect(site.simulator)
    return site


def a_recorded_plan(site: Worksite) -> Plan:
    """A plan of a move whose title, effect and way back are hostile."""
    step = a_step(site.move(0), effect=HOSTILE, undo_note=HOSTILE)
    plan = a_plan(a_batch(step, title=HOSTILE), taken_at=site.clock(), notes=(HOSTILE,))
    return site.record(plan)


@pytest.mark.usefixtures("airflow_rows")
def test_a_question_in_airflow_holds_nothing_hidden(site: Worksite) -> None:
    """The headline, text and tick labels of a question hold no invisible characters, also for hostile names."""
    task = asked(a_recorded_plan(site))
    for words in (task.subject, task.body or "", json.dumps(task.serialized_params, ensure_ascii=False)):
        assert unseen(words, lines=True) == set()
    assert READ in task.subject


def test_what_an_answer_came_to_holds_nothing_hidden(site: Worksite, airflow_rows: AirflowRows) -> None:
    """The approval task returns values in which the hidden characters of a user's name are spelled out."""
    task = asked(a_recorded_plan(site))
    form = airflow_rows.form() | {"comment": HOSTILE}
    told = task.execute_complete(a_context(), answer_of(APPROVE, form, datetime.now(UTC), name=HOSTILE))
    assert told["decision"] == "malformed"
    assert told["reason"].startswith(f"{READ} may not answer")
    assert [value for value in told.values() if unseen(str(value))] == []


def test_a_dry_run_has_no_line_but_its_own(site: Worksite) -> None:
    """The text of a dry run holds no invisible characters and no line that a name adds."""
    plan = a_recorded_plan(site)
    text = remediating.dry_run([remediating.RemediateParams(cluster=CLUSTER, plan_id=plan.plan_id)], "dag/run")
    assert unseen(text, lines=True) == set()
    assert text.count("\n") == 5
    assert text.count(READ) == 3


def test_a_dry_run_of_nothing_says_why_in_one_line(site: Worksite) -> None:
    """A dry run without batches gives the plan's notes in one line, with hidden characters spelled out."""
    plan = msgspec.structs.replace(a_plan(notes=(HOSTILE, HOSTILE)), batches=(), taken_at=site.clock())
    site.writes.record_plan(plan, site.clock())
    text = remediating.dry_run([remediating.RemediateParams(cluster=CLUSTER, plan_id=plan.plan_id)], "dag/run")
    assert text.endswith(f"changes nothing: {READ}; {READ}")


@pytest.mark.parametrize("outcome", [Outcome.DONE, Outcome.FAILED])
def test_what_a_task_of_a_batch_says_holds_nothing_hidden(monkeypatch: pytest.MonkeyPatch, outcome: Outcome) -> None:
    """The tasks `apply` and `verify` spell out the hidden characters of brokers' reasons, done or failed."""
    told, plan = a_run_of(HOSTILE), a_plan_of(HOSTILE)
    outcomes = tuple(msgspec.structs.replace(each, outcome=outcome) for each in told.outcomes)
    proof = msgspec.structs.replace(told.proof, proved=outcome is Outcome.DONE) if told.proof else None
    monkeypatch.setattr(batch_tasks, "_named_run", lambda _: "dag/run/0")
    monkeypatch.setattr(applying, "run_key", lambda _: "dag/run/0")
    monkeypatch.setattr(batches, "opening_of", lambda *_: None)
    monkeypatch.setattr(batches, "ended_unbegun", lambda *_: None)
    monkeypatch.setattr(batches, "apply_batch", lambda *_: outcomes)
    monkeypatch.setattr(batches, "verify_batch", lambda *_: proof)
    monkeypatch.setattr(batches, "was_approved", lambda *_: True)
    ref = msgspec.to_builtins(BatchRef.of(plan, plan.batches[0]))
    context: Any = {}
    apply = ApplyBatch(task_id="apply", batch=ref)
    for task in (lambda: apply.execute(context), lambda: batch_tasks._verify.function(ref)):
        try:
            said = str(task())
        except AirflowFailException as error:
            said = str(error)
        assert READ.replace("\\", "\\\\") in said or READ in said
        assert unseen(said) == set()


def test_what_a_skipped_task_of_a_batch_says_holds_nothing_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tasks `apply` and `verify` skip with the hidden characters of the reason spelled out."""
    told, plan = a_run_of(HOSTILE), a_plan_of(HOSTILE)

    def refuse(*_: object) -> None:
        raise Refused(HOSTILE)

    monkeypatch.setattr(batch_tasks, "_named_run", lambda _: "dag/run/0")
    monkeypatch.setattr(applying, "run_key", lambda _: "dag/run/0")
    monkeypatch.setattr(batches, "opening_of", lambda *_: None)
    monkeypatch.setattr(batches, "apply_batch", refuse)
    monkeypatch.setattr(batches, "was_approved", lambda *_: False)
    monkeypatch.setattr(batches, "verify_batch", lambda *_: told.proof)
    ref = msgspec.to_builtins(BatchRef.of(plan, plan.batches[0]))
    context: Any = {}
    apply = ApplyBatch(task_id="apply", batch=ref)
    cases: list[tuple[str | None, Callable[[], object]]] = [
        (None, lambda: apply.execute(context)),
        (HOSTILE, lambda: apply.execute_in_window(context, {END: True})),
        (None, lambda: batch_tasks._verify.function(ref)),
        (HOSTILE, lambda: batch_tasks._verify.function(ref)),
    ]
    for over, task in cases:
        monkeypatch.setattr(batches, "ended_unbegun", lambda *_, over=over: over)
        with pytest.raises(AirflowSkipException) as skipped:
            task()
        assert READ in str(skipped.value)
        assert unseen(str(skipped.value)) == set()


IDS = ("b1.s01", "b1.s02")
ASKED = ApprovalQuestion(
    plan=a_plan(a_batch(*(a_step(step_id=each) for each in IDS))),
    batch_id="b1",
    run="dag/run/0",
    asked_digest=ASKED_DIGEST,
)
LONG = "x" * 5000


def deep() -> list[Any]:
    """A list in a list in a list, a hundred thousand times."""
    made: list[Any] = []
    for _ in range(100_000):
        made = [made]
    return made


def answered(option: str = APPROVE, *, name: str = "alice", **form: Any) -> Answer:
    """Answer recorded for a person's, with these fields of the form."""
    event = {
        "chosen_options": [option],
        "params_input": {QUESTION: ASKED_DIGEST, "steps": list(IDS), "comment": "", **form},
        "responded_at": NOW,
        "responded_by_user": {"id": "7", "name": name},
    }
    return interpret(event, ASKED, ApprovalPolicy(), NOW)


def recorded(answer: Answer, folder: Path) -> RecordedAnswer:
    """The same as the ledger gives it back."""
    engine = ledger_at(f"sqlite:///{folder / 'answers.db'}")
    writer = LedgerWriter(engine)
    writer.record_plan(ASKED.plan, NOW)
    writer.record_answer(answer)
    (read,) = LedgerReader(engine).answers(ASKED.plan.plan_id, "b1")
    engine.dispose()
    return read


@pytest.mark.parametrize("comment", [LONG, "\n" * 3 + LONG, "x" * 1_000_000, "\0" + LONG])
def test_a_comment_without_end_is_cut_and_the_answer_says_so(comment: str) -> None:
    """An overlong comment is cut and the reason says so; a rejection stays valid, an approval is malformed."""
    no, yes = answered(REJECT, comment=comment), answered(comment=comment)
    assert (no.decision, yes.decision, yes.step_ids, yes.digest) == (Decision.REJECTED, Decision.MALFORMED, (), None)
    for answer in (no, yes):
        assert len(answer.comment) < 4100
        assert answer.comment.endswith("…")
        assert f"{len(comment.strip()):,} characters, of which 4,000 are kept" in answer.reason


def test_a_comment_that_just_fits_is_kept_whole() -> None:
    """A comment of exactly 4,000 characters is kept whole, without the white space around it."""
    answer = answered(comment=f" {'x' * 4000}\n")
    assert (answer.decision, answer.comment) == (Decision.APPROVED, "x" * 4000)


@pytest.mark.parametrize("option", [APPROVE, REJECT])
@pytest.mark.parametrize(
    ("comment", "kept"),
    [
        ("a\0b", r"a\x00b"),
        (f"a{chr(0xD800)}b", r"a\ud800b"),
        ("two\nlines \u202e\x1b[31m", "two\nlines \u202e\x1b[31m"),
    ],
)
def test_no_comment_keeps_an_answer_out_of_the_ledger(option: str, comment: str, kept: str, tmp_path: Path) -> None:
    """An answer with any comment is recorded, and only characters that no database stores are spelled out."""
    answer = recorded(answered(option, comment=comment), tmp_path)
    assert answer.decision is (Decision.APPROVED if option == APPROVE else Decision.REJECTED)
    assert answer.comment == kept


@pytest.mark.parametrize("comment", [7, ["x"], {"a": LONG}, True])
def test_a_no_is_a_no_whatever_stands_in_the_comment(comment: object) -> None:
    """A comment that is no text leaves a rejection valid and makes an approval malformed."""
    no, yes = answered(REJECT, comment=comment), answered(comment=comment)
    assert (no.decision, yes.decision) == (Decision.REJECTED, Decision.MALFORMED)
    assert "the comment is not a text but" in no.reason
    assert len(no.reason) < 400


@pytest.mark.parametrize("name", ["x" * 201, "a\0b", f"a{chr(0xD800)}b"])
def test_nobody_approves_by_a_name_that_cannot_be_kept(name: str, tmp_path: Path) -> None:
    """A name that the ledger cannot keep makes an approval malformed, while a rejection is recorded."""
    no = recorded(answered(REJECT, name=name), tmp_path)
    assert answered(name=name).decision is Decision.MALFORMED
    assert no.decision is Decision.REJECTED
    assert no.answered_by is not None
    assert len(no.answered_by) <= 200


@pytest.mark.parametrize(
    "ticks",
    [
        pytest.param(["b1.s01"] * 1_000_000, id="a million"),
        pytest.param([*IDS, "b1.s01"], id="more than there are"),
        pytest.param(["x" * 1_000_000], id="a million letters"),
        pytest.param("x" * 1_000_000, id="a text"),
        pytest.param([["b1.s01"] * 1000] * 2, id="lists"),
        pytest.param([{str(number): LONG for number in range(1000)}], id="objects"),
        pytest.param({str(number): LONG for number in range(1000)}, id="an object"),
        pytest.param([10**5000], id="a number of 5,000 digits"),
        pytest.param([chr(0xD800), "\0\n\u202e"], id="no characters"),
        pytest.param(deep(), id="depths"),
        pytest.param([deep()], id="depths below"),
    ],
)
def test_ticks_without_end_are_no_approval_and_their_reason_is_short(ticks: object, tmp_path: Path) -> None:
    """Ticks that are no list of the batch's steps make an answer malformed, and its short reason is recorded."""
    answer = answered(steps=ticks)
    assert (answer.decision, answer.step_ids, answer.digest) == (Decision.MALFORMED, (), None)
    assert "not a list of steps of this batch" in answer.reason
    assert len(answer.reason) < 400
    assert recorded(answer, tmp_path).reason == answer.reason


@pytest.mark.parametrize(
    "event",
    [
        {"error": LONG},
        {"error": [LONG] * 1000},
        {"error": deep()},
        {"chosen_options": [LONG] * 1000, "responded_at": NOW, "responded_by_user": {"id": "7", "name": "alice"}},
        {"chosen_options": LONG, "responded_at": NOW, "responded_by_user": {"id": "7", "name": "alice"}},
        {"chosen_options": [deep()], "responded_at": LONG, "responded_by_user": deep()},
    ],
    ids=["error", "errors", "a deep error", "options", "no options", "depths"],
)
def test_whatever_cannot_be_understood_is_told_in_a_few_words(event: dict[str, Any]) -> None:
    """An event that cannot be understood gives no approval, and the reason in the answer is short."""
    answer = interpret(event, ASKED, ApprovalPolicy(), NOW)
    assert answer.decision in {Decision.MALFORMED, Decision.NO_ANSWER}
    assert len(answer.reason) < 400
