"""State of the ledger's questions when a new plan is decided on."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from pulsar_steward.ledger.batch_record import BatchState
from pulsar_steward.ledger.read import LedgerReader
from pulsar_steward.ledger.rows import Answer, Decision, EndReason, Outcome
from pulsar_steward.ledger.silences import SilenceEnd, take_back
from pulsar_steward.ledger.write import LedgerWriter
from pulsar_steward.model.cluster import NamedCluster
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.plan import ROLLBACK, Plan, approval_digest
from pulsar_steward.orchestration.asked import QuestionBook
from pulsar_steward.orchestration.publish import Publication, SnapshotView, decide
from pulsar_steward.policy.approval import ApprovalPolicy
from pulsar_steward.policy.schema import ApplyPolicy, Policy
from tests.builders import (
    ASKED_DIGEST,
    CLUSTER,
    NAMED,
    NOW,
    a_batch,
    a_finding,
    a_move,
    a_plan,
    a_step,
    an_intended_call,
    an_outcome,
    broker,
)
from tests.cases import row_by_row
from tests.ledgers import ledger_at

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sqlalchemy import Engine


APPROVAL = ApprovalPolicy(response_timeout_minutes=60, ask_again_minutes=120)
POLICY = Policy(approval=APPROVAL)
LOOSER = Policy(approval=APPROVAL, apply=ApplyPolicy(most_clients_per_step=1_000_000))
NEW = a_plan(snapshot_id="new", policy_digest=POLICY.digest)
SAME = a_plan(snapshot_id="later", policy_digest=POLICY.digest)
OTHER = a_plan(a_batch(a_step(a_move(target=broker(2)))), snapshot_id="other", policy_digest=POLICY.digest)
CRITICAL = a_plan(
    a_batch(findings=(a_finding(Severity.CRITICAL),)), snapshot_id="critical", policy_digest=POLICY.digest
)
EMPTY = a_plan(snapshot_id="empty", policy_digest=POLICY.digest)
EMPTY = msgspec.structs.replace(EMPTY, batches=())
RUN = "dag/run/0"


def published(engine: Engine, plan: Plan, minutes: int, policy: Policy = POLICY) -> Publication:
    """Decides on a plan so many minutes from now, and records what comes of it."""
    now, ledger, writes = NOW + timedelta(minutes=minutes), LedgerReader(engine), LedgerWriter(engine)
    book = QuestionBook(ledger, NamedCluster(CLUSTER), policy, now)
    known = book.standing(), book.rejected()
    publication = decide(plan, SnapshotView.COMPLETE, *known, book.silenced())
    if publication.record:
        changes = publication.questions
        writes.record_plan(plan, now, policy=policy, questions=changes)
    else:
        writes.record_confirmations(plan, publication.questions.confirmed, now)
    return publication


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    """A ledger with one question, asked now."""
    engine = ledger_at(f"sqlite:///{tmp_path / 'ledger.db'}")
    published(engine, NEW, 0)
    yield engine
    engine.dispose()


def state(engine: Engine, minutes: int) -> BatchState | None:
    """State of the only question so many minutes from now; None: it was carried out."""
    standing = QuestionBook(
        LedgerReader(engine), NamedCluster(CLUSTER), POLICY, NOW + timedelta(minutes=minutes)
    ).standing()
    return standing[0].state if standing else None


def request(engine: Engine, minutes: int, policy: Policy = POLICY) -> None:
    """A run asks so many minutes from now."""
    at = NOW + timedelta(minutes=minutes)
    LedgerWriter(engine).record_request(NEW, "b1", RUN, at, policy=policy, asked_digest=ASKED_DIGEST)


def answer(engine: Engine, decision: Decision, plan: Plan = NEW, **fields: Any) -> Answer:
    """Records an answer, given five minutes from now."""
    at = NOW + timedelta(minutes=5)
    approved = decision is Decision.APPROVED
    given = Answer(
        plan_id=plan.plan_id,
        batch_id="b1",
        run=RUN,
        decision=decision,
        answered_by="operator",
        answered_at=at,
        reason="made up",
        step_ids=("b1.s01",) if approved else (),
        digest=approval_digest(plan, "b1", ["b1.s01"]) if approved else None,
        expires_at=at + timedelta(minutes=30) if approved else None,
        asked_digest=ASKED_DIGEST,
    )
    given = msgspec.structs.replace(given, **fields)
    LedgerWriter(engine).record_answer(given)
    return given


def test_a_question_waits_until_its_time_is_up(engine: Engine) -> None:
    assert [state(engine, minutes) for minutes in (0, 60, 400)] == [BatchState.NOT_ASKED] * 3
    request(engine, 0)
    request(engine, 50)
    assert [state(engine, minutes) for minutes in (60, 109, 110)] == [
        BatchState.WAITING,
        BatchState.WAITING,
        BatchState.UNANSWERED,
    ]


@row_by_row(
    "decision, after",
    (Decision.REJECTED, BatchState.REJECTED),
    (Decision.NO_ANSWER, BatchState.UNANSWERED),
    (Decision.MALFORMED, BatchState.UNANSWERED),
)
def test_an_answered_question_is_over_until_it_is_asked_again(
    engine: Engine, decision: Decision, after: BatchState
) -> None:
    """A question answered without an approval is over until a new request, and only a rejection is remembered."""
    answer(engine, decision)
    rejected = QuestionBook(LedgerReader(engine), NamedCluster(CLUSTER), POLICY, NOW + timedelta(minutes=6)).rejected()
    assert (state(engine, 6), len(rejected)) == (after, int(decision is Decision.REJECTED))
    request(engine, 10)
    assert state(engine, 11) is BatchState.WAITING


def test_an_approval_waits_is_used_and_is_over(engine: Engine) -> None:
    """An approval waits, is in use once it is claimed, and ends when it expires or a call's outcome is recorded."""
    request(engine, 0)
    given = answer(engine, Decision.APPROVED)
    writes = LedgerWriter(engine)
    assert [state(engine, minutes) for minutes in (6, 34, 35)] == [
        BatchState.APPROVED,
        BatchState.APPROVED,
        BatchState.STOPPED,
    ]
    assert writes.use_answer(1, RUN, NOW)
    assert [state(engine, minutes) for minutes in (6, 34, 35)] == [
        BatchState.CHANGING,
        BatchState.CHANGING,
        BatchState.STOPPED,
    ]
    lease = writes.take_lease(NAMED, RUN, 600, NOW)
    intended = an_intended_call(NEW, NEW.batches[0].steps[0], given, 1)
    intent_id = writes.record_intent(intended, lease, NOW)
    assert [state(engine, minutes) for minutes in (6, 34, 35)] == [BatchState.CHANGING, BatchState.CHANGING, None]
    writes.record_outcome(an_outcome(NEW, run=RUN, intent_id=intent_id))
    assert state(engine, 6) is None


def test_an_approval_that_was_refused_before_any_call_is_over(engine: Engine) -> None:
    answer(engine, Decision.APPROVED)
    LedgerWriter(engine).record_outcome(an_outcome(NEW, outcome=Outcome.REFUSED, run=RUN))
    assert state(engine, 6) is BatchState.STOPPED
    assert published(engine, SAME, 6).ask


def test_the_same_is_asked_once_and_stays_as_fresh_as_it_was_seen(engine: Engine) -> None:
    """A batch that later snapshots propose again is not asked again until its question times out."""
    request(engine, 0)
    later = msgspec.structs.replace(SAME, taken_at=NOW + timedelta(minutes=15))
    assert not published(engine, later, 15).ask
    ledger = LedgerReader(engine)
    assert ledger.questions.seen_at(NEW, "b1") == later.taken_at
    assert [row.plan_id for row in ledger.plans(CLUSTER)] == [NEW.plan_id]
    assert published(engine, SAME, 61).ask
    end = ledger.batch(NEW.plan_id, "b1").end
    assert end is not None
    assert (end.reason.value, end.by_plan_id) == ("asked_anew", SAME.plan_id)


def test_a_question_is_asked_anew_where_its_answer_would_be_refused(engine: Engine) -> None:
    looser = msgspec.structs.replace(SAME, policy_digest=LOOSER.digest)
    assert published(engine, looser, 1, LOOSER).ask
    end = LedgerReader(engine).batch(NEW.plan_id, "b1").end
    assert end is not None
    assert (end.reason, end.by_plan_id) == (EndReason.POLICY_LOOSENED, looser.plan_id)
    assert "asked under a stricter policy" in end.words
    assert not published(engine, msgspec.structs.replace(looser, snapshot_id="still looser"), 2, LOOSER).record
    assert not published(engine, msgspec.structs.replace(SAME, snapshot_id="restored"), 3).record


def test_a_question_that_was_asked_under_a_stricter_policy_is_asked_anew(engine: Engine) -> None:
    stricter = Policy(approval=APPROVAL, apply=ApplyPolicy(most_clients_per_step=1))
    request(engine, 1, stricter)
    assert published(engine, SAME, 2).ask


def test_a_rejection_outlives_a_healthy_moment(engine: Engine) -> None:
    """A moment in which nothing is proposed does not make a rejected proposal a new question."""
    request(engine, 0)
    answer(engine, Decision.REJECTED)
    assert published(engine, EMPTY, 6).questions.ended
    assert not published(engine, SAME, 7).ask
    assert published(engine, SAME, 126).ask


def test_a_rejection_is_respected_for_as_long_as_its_question_promised(engine: Engine) -> None:
    """A rejection counts for the time of the question's policy, whatever a later policy says."""
    request(engine, 0)
    answer(engine, Decision.REJECTED)
    sooner = Policy(approval=APPROVAL.model_copy(update={"ask_again_minutes": 1}))
    assert not published(engine, SAME, 120, sooner).ask
    assert published(engine, SAME, 126, sooner).ask


def test_a_rollback_is_no_proposal(engine: Engine) -> None:
    """A rollback has no question, and a later plan does not supersede it."""
    back = a_plan(a_batch(kind=ROLLBACK), snapshot_id="back")
    LedgerWriter(engine).record_plan(back, NOW)
    LedgerWriter(engine).record_request(
        back, "b1", "pulsar_rollback/manual/0", NOW, policy=Policy(), asked_digest=ASKED_DIGEST
    )
    answer(engine, Decision.REJECTED, back)
    publication = published(engine, EMPTY, 6)
    assert [each.question_id for each in publication.questions.ended] == [1]
    assert LedgerReader(engine).questions.over(back.plan_id, "b1") is None


def test_a_plan_that_nobody_was_asked_about_is_asked_when_its_task_is_tried_again(engine: Engine) -> None:
    """A plan is handed on again when its task is tried again, until its question was requested."""
    assert published(engine, NEW, 1).ask
    request(engine, 2)
    assert not published(engine, NEW, 3).ask


DAY = 24 * 60


@pytest.mark.parametrize("until_worse", [True, False])
def test_a_snooze_holds_for_its_days(engine: Engine, until_worse: bool) -> None:
    """A snoozed goal is not asked again for the days of the snooze, and is asked anew after them."""
    request(engine, 0)
    until = NOW + timedelta(days=2)
    answer(engine, Decision.SNOOZED, silent_until=until, until_worse=until_worse, comment="after the fair")
    again, other = published(engine, SAME, DAY), published(engine, OTHER, DAY)
    assert (again.ask, again.questions.ended, other.ask, other.questions.ended) == (False, (), False, ())
    assert '"after the fair"' in again.reason
    after = published(engine, SAME, 2 * DAY)
    assert (after.ask, [each.reason for each in after.questions.ended]) == (True, [EndReason.ASKED_ANEW])


def test_a_snooze_ends_as_it_gets_worse_and_does_not_come_back(engine: Engine) -> None:
    request(engine, 0)
    answer(engine, Decision.SNOOZED, silent_until=NOW + timedelta(days=9), until_worse=True)
    worse = published(engine, CRITICAL, DAY)
    assert (worse.ask, [each.reason for each in worse.questions.ended]) == (True, [EndReason.WORSE])
    better = published(engine, OTHER, 2 * DAY)
    assert (better.ask, [each.reason for each in better.questions.ended]) == (True, [EndReason.CHANGED])


def test_a_never_holds_until_it_is_taken_back(engine: Engine) -> None:
    """A "never" keeps its goal from being asked for any time and severity, until it is taken back."""
    request(engine, 0)
    answer(engine, Decision.NEVER, policy_entry="namespaces: {}")
    assert not published(engine, CRITICAL, 400 * DAY).ask
    published(engine, EMPTY, 401 * DAY)
    assert not published(engine, SAME, 402 * DAY).ask
    end = SilenceEnd(answer_id=1, at=NOW, said_by="bob", reason="it may")
    assert take_back(engine, end)
    assert published(engine, SAME, 403 * DAY).ask
