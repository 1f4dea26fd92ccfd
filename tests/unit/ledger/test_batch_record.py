"""The one state of a batch, which pages, messages, metrics and the decision on a new plan share."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from pulsar_steward.ledger.batch_record import BatchState
from pulsar_steward.ledger.rows import Decision, Origin, Outcome, RecordedAnswer, Request
from tests.builders import NOW, a_batch, a_batch_run, a_plan, a_step, an_outcome
from tests.cases import cases

if TYPE_CHECKING:
    from pulsar_steward.ledger.batch_record import BatchRecord

MINUTE = timedelta(minutes=1)
PLAN = a_plan(a_batch(a_step(step_id="b1.s01"), a_step(step_id="b1.s02")))
FIRST, SECOND = "dag/first/0", "dag/second/0"


def a_request(request_id: int = 1, run: str = FIRST, voice: int = 1, **fields: Any) -> Request:
    """A request for an answer within the hour."""
    return Request(
        request_id=request_id,
        plan_id=PLAN.plan_id,
        batch_id="b1",
        run=run,
        at=NOW,
        ends_at=NOW + 60 * MINUTE,
        voice=voice,
        requested_by=None,
        origin=Origin.SCHEDULE,
        policy_digest="0" * 64,
        asked_digest="0" * 64,
        **fields,
    )


def an_answer(
    answer_id: int = 1, decision: Decision = Decision.APPROVED, run: str = FIRST, voice: int = 1
) -> RecordedAnswer:
    """An answer; an approval of both steps, which counts for half an hour."""
    approved = decision is Decision.APPROVED
    return RecordedAnswer(
        answer_id=answer_id,
        plan_id=PLAN.plan_id,
        batch_id="b1",
        run=run,
        voice=voice,
        decision=decision,
        answered_by="operator",
        answered_at=NOW,
        reason="made up",
        step_ids=("b1.s01", "b1.s02") if approved else (),
        expires_at=NOW + 30 * MINUTE if approved else None,
    )


def a_record(**rows: Any) -> BatchRecord:
    """A batch with these rows."""
    return a_batch_run(PLAN, **rows).record


ASKED = {"requests": (a_request(),)}
CLOSED = {"requests": (a_request(closed=True),)}
APPROVED = {**CLOSED, "answers": (an_answer(),)}
USED = {**APPROVED, "used": frozenset({1})}
ENDS = [an_outcome(PLAN, f"b1.s0{number}", run=FIRST) for number in (1, 2)]
REFUSED = msgspec.structs.replace(ENDS[1], outcome=Outcome.REFUSED)
REJECTED_ELSEWHERE = {"answers": (an_answer(), an_answer(2, Decision.REJECTED, SECOND))}


@cases(
    "rows, minutes, state",
    ("nobody was asked", {}, 0, BatchState.NOT_ASKED),
    ("asked", ASKED, 59, BatchState.WAITING),
    ("nobody answered in time", ASKED, 60, BatchState.UNANSWERED),
    ("its task asks about another batch by now", CLOSED, 0, BatchState.UNANSWERED),
    ("superseded while it waited", {**ASKED, "over": "newer"}, 0, BatchState.SUPERSEDED),
    ("approved", APPROVED, 29, BatchState.APPROVED),
    ("approved, and expired before it began", APPROVED, 30, BatchState.STOPPED),
    ("approved, and superseded", {**APPROVED, "over": "newer"}, 0, BatchState.SUPERSEDED),
    (
        "a second person is asked",
        {"requests": (a_request(closed=True), a_request(2, voice=2)), "answers": (an_answer(),)},
        0,
        BatchState.WAITING,
    ),
    (
        "the second person says no",
        {"answers": (an_answer(), an_answer(2, Decision.REJECTED, voice=2))},
        0,
        BatchState.REJECTED,
    ),
    (
        "the second person does not answer",
        {"answers": (an_answer(), an_answer(2, Decision.NO_ANSWER, voice=2))},
        0,
        BatchState.UNANSWERED,
    ),
    ("rejected in another run", REJECTED_ELSEWHERE, 0, BatchState.REJECTED),
    (
        "not answered in another run",
        {"answers": (an_answer(), an_answer(2, Decision.NO_ANSWER, SECOND))},
        0,
        BatchState.APPROVED,
    ),
    ("a run acts on it", USED, 0, BatchState.CHANGING),
    ("one of two steps ended", {**USED, "outcomes": ENDS[:1]}, 29, BatchState.CHANGING),
    ("expired under way", {**USED, "outcomes": ENDS[:1]}, 30, BatchState.STOPPED),
    ("done", {**USED, "outcomes": ENDS}, 60, BatchState.DONE),
    ("a step was refused", {**USED, "outcomes": [ENDS[0], REFUSED]}, 60, BatchState.STOPPED),
    ("rejected after a call", {**REJECTED_ELSEWHERE, "called": frozenset({1})}, 0, BatchState.STOPPED),
    (
        "refused in one run, and approved again in another one",
        {"answers": (an_answer(), an_answer(2, run=SECOND)), "outcomes": [REFUSED, ENDS[0]]},
        0,
        BatchState.APPROVED,
    ),
    ("snoozed", {"answers": (an_answer(1, Decision.SNOOZED),)}, 0, BatchState.SNOOZED),
    ("never to be asked", {"answers": (an_answer(1, Decision.NEVER),)}, 0, BatchState.NEVER),
    ("malformed", {"answers": (an_answer(1, Decision.MALFORMED),)}, 0, BatchState.UNANSWERED),
)
def test_the_state_of_a_batch(rows: dict[str, Any], minutes: int, state: BatchState) -> None:
    """The state follows from the rows and the time alone, as the gate would decide: no policy is asked."""
    of_rows = {name: tuple(given) if isinstance(given, list) else given for name, given in rows.items()}
    assert a_record(**of_rows).state(NOW + minutes * MINUTE) is state


def test_a_batch_that_is_asked_elsewhere_is_over() -> None:
    """A batch without a question in a plan of questions is asked in an earlier plan, and waits for nothing here."""
    record = msgspec.structs.replace(a_record(**ASKED), asked_by_batch=True)
    assert (record.state(NOW), record.waiting(NOW)) == (BatchState.ASKED_ELSEWHERE, ())


def test_a_batch_is_open_or_being_changed_or_over() -> None:
    opened = {state for state in BatchState if state.is_open}
    assert opened == {BatchState.NOT_ASKED, BatchState.WAITING, BatchState.APPROVED}
    assert {state for state in BatchState if not state.is_over} - opened == {BatchState.CHANGING}
