"""Noes in the ledger: which hold, until when, and how one is taken back."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from pulsar_steward.errors import NotInLedger
from pulsar_steward.ledger.publishing import NewQuestion, QuestionChanges
from pulsar_steward.ledger.rows import NOES, Answer, Decision
from pulsar_steward.ledger.silences import Silence, SilenceEnd, silences, take_back
from pulsar_steward.ledger.verify import verify_ledger
from pulsar_steward.model.cluster import NamedCluster
from pulsar_steward.model.plan import ROLLBACK
from pulsar_steward.policy.approval import ApprovalPolicy
from pulsar_steward.policy.schema import Policy
from tests.builders import ASKED_DIGEST
from tests.cases import row_by_row
from tests.unit.ledger.test_records import APPROVED, AT, LATER, NEWER, PLAN, RUN

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from pulsar_steward.ledger.read import LedgerReader
    from pulsar_steward.ledger.write import LedgerWriter

DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)
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
def asked(write: LedgerWriter) -> LedgerWriter:
    write.record_plan(PLAN, AT, questions=ASKED)
    write.record_request(PLAN, "b1", RUN, AT, policy=POLICY, asked_digest=ASKED_DIGEST)
    return write


def held(engine: Engine, at: datetime = LATER) -> list[Decision]:
    return [each.decision for each in silences(engine, at)]


def test_a_silence_comes_back_whole(asked: LedgerWriter, engine: Engine, read: LedgerReader) -> None:
    """A snooze is read with its goal, person, end and comment, and belongs to its own cluster only."""
    number = asked.record_answer(a_no())
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
    asked: LedgerWriter, engine: Engine, decision: Decision, rests: timedelta | None
) -> None:
    """A snooze is silent until its end, a never for good, and a rejection as long as the policy says.

    Other answers are not silent.
    """
    asked.record_answer(a_no(decision))
    silent = [] if rests == timedelta() else [decision]
    end = AT + (1000 * DAY if rests is None else rests)
    assert (decision in NOES) is bool(silent)
    assert [held(engine, at) for at in (AT + SECOND, end - SECOND)] == [silent, silent]
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
    asked: LedgerWriter, engine: Engine, later: Decision, expected: list[Decision]
) -> None:
    """The last decision of a person is in force, and a missing or malformed answer does not replace it."""
    asked.record_answer(a_no(Decision.NEVER))
    asked.record_answer(a_no(later, run="pulsar_remediate/by_hand/0"))
    assert held(engine) == expected


def test_any_no_of_two_people_holds(asked: LedgerWriter, engine: Engine) -> None:
    """A never of the second person is in force although the first person approved."""
    asked.record_answer(APPROVED)
    asked.record_answer(a_no(Decision.NEVER, voice=2, answered_by="bob"))
    assert [(each.decision, each.by) for each in silences(engine, LATER)] == [(Decision.NEVER, "bob")]


@pytest.mark.parametrize(
    ("decision", "over"), [(Decision.SNOOZED, True), (Decision.NEVER, False), (Decision.REJECTED, False)]
)
def test_a_snooze_is_over_once_its_goal_was_asked_again(
    asked: LedgerWriter, engine: Engine, decision: Decision, over: bool
) -> None:
    asked.record_answer(a_no(decision))
    other = msgspec.structs.replace(ASKED.asked[0], goal="retention shop/carts", batch_id="b2")
    asked.record_plan(NEWER, LATER, questions=QuestionChanges(asked=(other,)))
    assert held(engine) == [decision]
    asked.record_plan(NEWER, LATER, questions=ASKED)
    assert (held(engine) == []) is over


@pytest.mark.parametrize("decision", NOES)
def test_a_no_is_taken_back(asked: LedgerWriter, engine: Engine, read: LedgerReader, decision: Decision) -> None:
    """A silence can be taken back once, and is then no longer in force."""
    number = asked.record_answer(a_no(decision))
    end = SilenceEnd(answer_id=number, at=LATER, said_by="bob at his desk", reason="the fair is over")
    assert held(engine) == [decision]
    assert take_back(engine, end)
    assert (held(engine), read.questions.silences(PLAN.named_cluster, AT)) == ([], ())
    assert not take_back(engine, end)
    assert verify_ledger(engine).tampered == ()


def test_only_a_no_can_be_taken_back(asked: LedgerWriter, engine: Engine) -> None:
    """An answer that silences nothing, or that does not exist, cannot be taken back."""
    number = asked.record_answer(APPROVED)
    for each in (number, number + 1):
        with pytest.raises(NotInLedger, match=f"answer {each} silences nothing"):
            take_back(engine, SilenceEnd(answer_id=each, at=LATER, said_by="bob", reason="why not"))
