"""Questions and silences in the ledger."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from sqlalchemy import Engine, event

from pulsar_steward.errors import LedgerError, NotInLedger, Refused
from pulsar_steward.ledger.history import EventKind, Filter, history
from pulsar_steward.ledger.publishing import Ending, NewQuestion, QuestionChanges
from pulsar_steward.ledger.rows import NOES, Answer, Decision, EndReason, Grant
from pulsar_steward.ledger.silences import Silence, SilenceEnd, silences, take_back
from pulsar_steward.ledger.verify import verify_ledger
from pulsar_steward.model.cluster import NamedCluster
from pulsar_steward.model.plan import ROLLBACK
from pulsar_steward.policy.approval import ApprovalPolicy
from pulsar_steward.policy.schema import Policy
from tests.builders import ASKED_DIGEST
from tests.cases import row_by_row
from tests.unit.ledger.test_records import APPROVED, AT, LATER, NEWER, NOT_APPROVED, PLAN, RUN

if TYPE_CHECKING:
    from pulsar_steward.ledger.read import LedgerReader
    from pulsar_steward.ledger.write import LedgerWriter

FIRST, SECOND = (
    NewQuestion(batch_id=batch, content_digest=batch * 32, goal=f"goal of {batch}") for batch in ("b1", "b2")
)
TWO = QuestionChanges(asked=(FIRST, SECOND))
CHANGED = Ending(question_id=1, reason=EndReason.CHANGED, by_batch_id="b2", words="it changed")
GRANT = Grant(
    cluster=PLAN.named_cluster, plan_id=PLAN.plan_id, batch_id="b1", run=RUN, answer_ids=(1,), expires_at=LATER
)


@pytest.fixture
def asked(write: LedgerWriter) -> LedgerWriter:
    """A writer of a ledger with a plan of two questions, of which the first was asked and approved."""
    write.record_plan(PLAN, AT, questions=TWO)
    write.record_request(PLAN, "b1", RUN, AT, asked_digest=ASKED_DIGEST, policy=Policy())
    write.record_answer(APPROVED)
    return write


def numbers(read: LedgerReader) -> list[int]:
    standing = read.questions.standing(PLAN.named_cluster)
    return [each.question.question_id for each in standing if each.question is not None]


def test_a_question_comes_back_whole(asked: LedgerWriter, read: LedgerReader, engine: Engine) -> None:
    """A question is read with its plan, batch, content and time, and is asked once if its plan is recorded twice."""
    asked.record_plan(PLAN, LATER, questions=TWO)
    first, second = read.questions.standing(PLAN.named_cluster)
    assert first.question is not None
    assert (first.question.content_digest, first.question.goal, first.question.at) == (
        FIRST.content_digest,
        FIRST.goal,
        AT,
    )
    assert first.key == (PLAN.plan_id, "b1")
    assert second.batch_id == "b2"
    assert read.questions.standing(NamedCluster("elsewhere")) == ()
    assert verify_ledger(engine).tampered == ()


def test_a_question_that_ended_permits_nothing(asked: LedgerWriter, read: LedgerReader) -> None:
    read.require_standing(GRANT, AT)
    asked.record_plan(NEWER, LATER, questions=QuestionChanges(ended=(CHANGED,)))
    with pytest.raises(Refused, match="the question ended at 2026-01-01 12:05 UTC: it changed"):
        read.require_standing(GRANT, AT)
    assert (numbers(read), read.questions.over(PLAN.plan_id, "b2")) == ([2], None)
    end = read.batch(PLAN.plan_id, "b1").end
    assert end is not None
    assert (end.reason, end.by_plan_id, end.by_batch_id, end.at) == (EndReason.CHANGED, NEWER.plan_id, "b2", LATER)
    assert read.batch(PLAN.plan_id, "b2").end is None
    assert read.questions.replaced_by(NEWER.plan_id, "b2") == (end,)
    assert read.questions.replaced_by(NEWER.plan_id, "b1") == ()


def test_a_question_ends_once(asked: LedgerWriter, read: LedgerReader) -> None:
    """A question keeps the first end that was recorded, and cannot be confirmed after it."""
    asked.record_plan(NEWER, LATER, questions=QuestionChanges(ended=(CHANGED,)))
    gone = Ending(question_id=1, reason=EndReason.NO_LONGER_PROPOSED, words="it went")
    asked.record_plan(NEWER, LATER, questions=QuestionChanges(ended=(gone,), confirmed=(1,)))
    end = read.batch(PLAN.plan_id, "b1").end
    assert end is not None
    assert end.words == "it changed"
    assert read.questions.seen_at(PLAN, "b1") == PLAN.taken_at


def test_a_batch_that_is_no_question_of_its_plan_permits_nothing(write: LedgerWriter, read: LedgerReader) -> None:
    write.record_plan(PLAN, AT, questions=QuestionChanges(asked=(SECOND,)))
    with pytest.raises(Refused, match="nobody is asked about batch b1 in plan"):
        read.require_standing(GRANT, AT)
    write.record_plan(NEWER, AT, questions=QuestionChanges())
    assert "nobody is asked about" in (read.questions.over(NEWER.plan_id, "b1") or "")


def test_a_question_is_as_fresh_as_what_confirmed_it_last(asked: LedgerWriter, read: LedgerReader) -> None:
    """A question counts as seen at the newest snapshot that confirmed it, without keeping the confirming plan."""
    later = [msgspec.structs.replace(NEWER, taken_at=PLAN.taken_at + timedelta(hours=hours)) for hours in (2, 1)]
    for plan in later:
        asked.record_confirmations(plan, [1], LATER)
    assert read.questions.seen_at(PLAN, "b1") == later[0].taken_at
    assert read.questions.seen_at(PLAN, "b2") == PLAN.taken_at
    assert [row.plan_id for row in read.plans(PLAN.cluster)] == [PLAN.plan_id]


def test_an_observation_is_one_row_however_many_questions_it_confirms(
    write: LedgerWriter, read: LedgerReader, engine: Engine
) -> None:
    many = [f"b{number}" for number in range(1, 41)]
    wide = msgspec.structs.replace(
        PLAN, batches=tuple(msgspec.structs.replace(PLAN.batches[0], batch_id=each) for each in many)
    )
    asked = tuple(NewQuestion(batch_id=each, content_digest=each * 8, goal=each) for each in many)
    write.record_plan(wide, AT, questions=QuestionChanges(asked=asked))
    write.record_plan(NEWER, AT, questions=QuestionChanges(asked=(FIRST,)))
    before = verify_ledger(engine).rows
    times = [wide.taken_at + timedelta(minutes=15 * number) for number in range(1, 5)]
    for number, taken_at in enumerate(times):
        plan = msgspec.structs.replace(wide, snapshot_id=f"later-{number}", taken_at=taken_at)
        some = range(2, 42) if number < 3 else [2, 11, 41]
        write.record_confirmations(plan, list(some), LATER)
    report = verify_ledger(engine)
    assert (report.rows - before, report.tampered) == (3 * 2 + 2, ())
    seen = {batch: read.questions.seen_at(wide, batch) for batch in many}
    assert [batch for batch in many if seen[batch] == times[3]] == ["b2", "b11"]
    assert {seen[batch] for batch in many if batch not in {"b1", "b2", "b11"}} == {times[2]}
    assert seen["b1"] == wide.taken_at
    assert read.questions.seen_at(NEWER, "b1") == max(NEWER.taken_at, times[3])
    (last, *_) = history(engine, Filter(plan_id=wide.plan_id)).events
    assert (last.batch_id, last.what, last.words.rpartition(": ")[2]) == (
        None,
        EventKind.CONFIRMED,
        "2 questions of the plan stand",
    )


def test_all_questions_are_looked_at_by_one_query(asked: LedgerWriter, read: LedgerReader, engine: Engine) -> None:
    """A single query finds which of many questions are over, with the same reasons as queries one by one."""
    back = msgspec.structs.replace(PLAN, snapshot_id="without questions")
    older = msgspec.structs.replace(PLAN, snapshot_id="superseded")
    for plan in (back, older):
        asked.record_plan(plan, AT)
    asked.record_plan(NEWER, LATER, supersede=[older.plan_id], questions=QuestionChanges(ended=(CHANGED,)))
    batches = [(plan.plan_id, batch) for plan in (PLAN, NEWER, back, older) for batch in ("b1", "b2")]
    batches += [("nowhere", "b1"), (PLAN.plan_id, "b9")]
    by_itself = {batch: read.questions.over(*batch) for batch in batches}
    statements: list[str] = []

    def keep(*given: Any) -> None:
        statements.append(given[2])

    event.listen(engine, "before_cursor_execute", keep)
    over = read.questions.all_over(batches)
    event.remove(engine, "before_cursor_execute", keep)
    assert over == {batch: reason for batch, reason in by_itself.items() if reason}
    assert over.keys() >= {(PLAN.plan_id, "b1"), (NEWER.plan_id, "b1"), (older.plan_id, "b1")}
    assert len([each for each in statements if "set_config" not in each]) == 1


def test_nothing_is_kept_where_the_plan_cannot_be(asked: LedgerWriter, read: LedgerReader) -> None:
    """Neither a plan nor ends of questions are recorded when the plan supersedes one that does not exist."""
    with pytest.raises(LedgerError):
        asked.record_plan(NEWER, AT, supersede=["no-such-plan"], questions=QuestionChanges(ended=(CHANGED,)))
    assert numbers(read) == [1, 2]
    assert [row.plan_id for row in read.plans(PLAN.cluster)] == [PLAN.plan_id]


def test_a_rejection_counts_until_somebody_answers_otherwise(asked: LedgerWriter, read: LedgerReader) -> None:
    """A rejection counts for as long as the policy of its request says, or until another answer approves the batch."""
    assert read.questions.silences(PLAN.named_cluster, AT) == ()
    rejected = next(each for each in NOT_APPROVED if each.decision is Decision.REJECTED)
    asked.record_answer(rejected)
    (rejection,) = read.questions.silences(PLAN.named_cluster, AT)
    assert (rejection.plan_id, rejection.batch_id, rejection.at) == (PLAN.plan_id, "b1", AT)
    assert read.questions.silences(PLAN.named_cluster, AT + timedelta(days=1)) == ()
    assert read.questions.silences(NamedCluster("elsewhere"), AT) == ()
    asked.record_answer(APPROVED)
    assert read.questions.silences(PLAN.named_cluster, AT) == ()


DAY = timedelta(days=1)
SILENCES_SECOND = timedelta(seconds=1)
GOAL = "retention shop/orders"
ASKED = QuestionChanges(asked=(NewQuestion(batch_id="b1", content_digest="0" * 64, goal=GOAL),))
POLICY = Policy(approval=ApprovalPolicy(ask_again_minutes=120))


def a_no(decision: Decision = Decision.SNOOZED, **fields: Any) -> Answer:
    """A no to the first batch; a snooze is for seven days."""
    usual = msgspec.structs.replace(
        APPROVED,
        decision=decision,
        reason="made up",
        comment="after the fair",
        step_ids=(),
        digest=None,
        expires_at=None,
        silent_until=AT + 7 * DAY if decision is Decision.SNOOZED else None,
        until_worse=True if decision is Decision.SNOOZED else None,
        policy_entry="namespaces: {}\n" if decision is Decision.NEVER else None,
    )
    return msgspec.structs.replace(usual, **fields)


@pytest.fixture
def silences_asked(write: LedgerWriter) -> LedgerWriter:
    write.record_plan(PLAN, AT, questions=ASKED)
    write.record_request(PLAN, "b1", RUN, AT, policy=POLICY, asked_digest=ASKED_DIGEST)
    return write


def held(engine: Engine, at: datetime = LATER) -> list[Decision]:
    return [each.decision for each in silences(engine, at)]


def test_a_silence_comes_back_whole(silences_asked: LedgerWriter, engine: Engine, read: LedgerReader) -> None:
    """A snooze is read with its goal, person, end and comment, and belongs to its own cluster only."""
    number = silences_asked.record_answer(a_no())
    batch = PLAN.batch("b1")
    (found,) = silences(engine, LATER)
    assert found == Silence(
        answer_id=number,
        cluster=PLAN.cluster,
        plan_id=PLAN.plan_id,
        batch_id="b1",
        kind=batch.kind,
        title=batch.title,
        goal=GOAL,
        decision=Decision.SNOOZED,
        by="alice",
        at=AT,
        until=AT + 7 * DAY,
        until_worse=True,
        comment="after the fair",
        policy_entry="",
    )
    assert read.questions.silences(PLAN.named_cluster, LATER) == (found,)
    assert read.questions.silences(NamedCluster("elsewhere"), LATER) == ()
    assert verify_ledger(engine).tampered == ()


@row_by_row(
    "decision, rests",
    (Decision.SNOOZED, 7 * DAY),
    (Decision.NEVER, None),
    (Decision.REJECTED, timedelta(hours=2)),
    (Decision.NO_ANSWER, timedelta()),
    (Decision.MALFORMED, timedelta()),
    (Decision.APPROVED, timedelta()),
)
def test_how_long_what_is_silent(
    silences_asked: LedgerWriter, engine: Engine, decision: Decision, rests: timedelta | None
) -> None:
    """A snooze is silent until its end, a never for good, and a rejection as long as the policy says.

    Other answers are not silent.
    """
    silences_asked.record_answer(a_no(decision))
    silent = [] if rests == timedelta() else [decision]
    end = AT + (1000 * DAY if rests is None else rests)
    assert (decision in NOES) is bool(silent)
    assert [held(engine, at) for at in (AT + SILENCES_SECOND, end - SILENCES_SECOND)] == [silent, silent]
    assert held(engine, end) == (silent if rests is None else [])


def test_a_rollback_is_never_silent(write: LedgerWriter, engine: Engine) -> None:
    back = msgspec.structs.replace(PLAN, batches=(msgspec.structs.replace(PLAN.batches[0], kind=ROLLBACK),))
    write.record_plan(back, AT)
    write.record_answer(a_no(Decision.REJECTED, plan_id=back.plan_id))
    assert held(engine) == []


@row_by_row(
    "later, expected",
    (Decision.APPROVED, []),
    (Decision.REJECTED, [Decision.REJECTED]),
    (Decision.SNOOZED, [Decision.SNOOZED]),
    (Decision.NO_ANSWER, [Decision.NEVER]),
    (Decision.MALFORMED, [Decision.NEVER]),
)
def test_the_last_word_of_a_person_holds(
    silences_asked: LedgerWriter, engine: Engine, later: Decision, expected: list[Decision]
) -> None:
    """The last decision of a person is in force, and a missing or malformed answer does not replace it."""
    silences_asked.record_answer(a_no(Decision.NEVER))
    silences_asked.record_answer(a_no(later, run="pulsar_remediate/by_hand/0"))
    assert held(engine) == expected


def test_any_no_of_two_people_holds(silences_asked: LedgerWriter, engine: Engine) -> None:
    """A never of the second person is in force although the first person approved."""
    silences_asked.record_answer(APPROVED)
    silences_asked.record_answer(a_no(Decision.NEVER, voice=2, answered_by="bob"))
    assert [(each.decision, each.by) for each in silences(engine, LATER)] == [(Decision.NEVER, "bob")]


@pytest.mark.parametrize(
    ("decision", "over"), [(Decision.SNOOZED, True), (Decision.NEVER, False), (Decision.REJECTED, False)]
)
def test_a_snooze_is_over_once_its_goal_was_asked_again(
    silences_asked: LedgerWriter, engine: Engine, decision: Decision, over: bool
) -> None:
    silences_asked.record_answer(a_no(decision))
    other = msgspec.structs.replace(ASKED.asked[0], goal="retention shop/carts", batch_id="b2")
    silences_asked.record_plan(NEWER, LATER, questions=QuestionChanges(asked=(other,)))
    assert held(engine) == [decision]
    silences_asked.record_plan(NEWER, LATER, questions=ASKED)
    assert (held(engine) == []) is over


@pytest.mark.parametrize("decision", NOES)
def test_a_no_is_taken_back(
    silences_asked: LedgerWriter, engine: Engine, read: LedgerReader, decision: Decision
) -> None:
    """A silence can be taken back once, and is then no longer in force."""
    number = silences_asked.record_answer(a_no(decision))
    end = SilenceEnd(answer_id=number, at=LATER, said_by="bob at his desk", reason="the fair is over")
    assert held(engine) == [decision]
    assert take_back(engine, end)
    assert (held(engine), read.questions.silences(PLAN.named_cluster, AT)) == ([], ())
    assert not take_back(engine, end)
    assert verify_ledger(engine).tampered == ()


def test_only_a_no_can_be_taken_back(silences_asked: LedgerWriter, engine: Engine) -> None:
    """An answer that silences nothing, or that does not exist, cannot be taken back."""
    number = silences_asked.record_answer(APPROVED)
    for each in (number, number + 1):
        with pytest.raises(NotInLedger, match=f"answer {each} silences nothing"):
            take_back(engine, SilenceEnd(answer_id=each, at=LATER, said_by="bob", reason="why not"))
