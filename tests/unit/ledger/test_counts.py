"""What a ledger counts, and which steps it knows as carried out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from pulsar_steward.ledger.counts import ClusterCounts, ledger_counts
from pulsar_steward.ledger.halts import EVERY_CLUSTER, Halt, say
from pulsar_steward.ledger.publishing import Ending, NewQuestion, QuestionChanges
from pulsar_steward.ledger.rows import Answer, CarriedOut, Decision, EndReason, Outcome, StepOutcome
from pulsar_steward.model.cluster import NamedCluster
from pulsar_steward.model.plan import ROLLBACK, Plan, approval_digest
from pulsar_steward.policy.schema import Policy
from tests.builders import ASKED_DIGEST, CLUSTER, NOW, a_batch, a_plan, a_policy, a_step, an_intended_call, an_outcome

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from pulsar_steward.ledger.read import LedgerReader
    from pulsar_steward.ledger.write import LedgerWriter

RUN = "pulsar_remediate/manual__1/0"
STEPS = (a_step(), a_step(step_id="b1.s02"))
PLAN = a_plan(a_batch(*STEPS))
MINUTE = timedelta(minutes=1)
TOLD = (a_policy(approval={"response_timeout_minutes": 60}), NOW)


def counts_at(engine: Engine, at: datetime = NOW) -> ClusterCounts:
    return ledger_counts(engine, at).clusters[CLUSTER]


def an_answer(decision: Decision = Decision.APPROVED, **fields: Any) -> Answer:
    """An answer to the first person's question, after ten minutes."""
    usual = Answer(
        asked_digest=ASKED_DIGEST,
        plan_id=PLAN.plan_id,
        batch_id="b1",
        run=RUN,
        decision=decision,
        answered_by="alice",
        answered_at=NOW + 10 * MINUTE,
        reason="",
        step_ids=("b1.s01", "b1.s02"),
        digest=approval_digest(PLAN, "b1", ["b1.s01", "b1.s02"]),
        expires_at=NOW + 70 * MINUTE,
        voice=1,
    )
    return msgspec.structs.replace(usual, **fields)


def asked(write: LedgerWriter, **fields: Any) -> None:
    """Records the plan, and a question about its batch that is open for an hour."""
    policy, at = TOLD
    write.record_plan(PLAN, at, policy=policy)
    write.record_request(PLAN, "b1", RUN, at, **{"policy": policy, "asked_digest": ASKED_DIGEST, **fields})


def test_a_question_waits_until_it_is_answered(engine: Engine, write: LedgerWriter) -> None:
    """An open question is listed with its batch, steps and times until it is answered."""
    asked(write)
    (question,) = counts_at(engine).waiting
    assert (question.kind, question.title, question.steps, question.voice) == ("tc_balance", "made up", 2, 1)
    assert (question.asked_at, question.ends_at) == (NOW, NOW + 60 * MINUTE)

    write.record_answer(an_answer(Decision.REJECTED))
    assert counts_at(engine).waiting == ()


def test_a_second_person_is_waited_for(engine: Engine, write: LedgerWriter) -> None:
    asked(write)
    write.record_answer(an_answer())
    write.record_request(PLAN, "b1", RUN, NOW + 11 * MINUTE, voice=2, asked_digest=ASKED_DIGEST, policy=Policy())
    (question,) = counts_at(engine).waiting
    assert (question.voice, question.ends_at) == (2, NOW + 11 * MINUTE + timedelta(days=1))


def test_a_question_that_is_asked_again_waits_once(engine: Engine, write: LedgerWriter) -> None:
    """A question that is asked again is listed once, with the later time."""
    asked(write)
    write.record_request(PLAN, "b1", RUN, NOW + MINUTE, asked_digest=ASKED_DIGEST, policy=Policy())
    assert [each.asked_at for each in counts_at(engine).waiting] == [NOW + MINUTE]


def test_what_no_longer_counts_does_not_wait(engine: Engine, write: LedgerWriter) -> None:
    """A question stops waiting when its time is over or when a newer plan supersedes its plan."""
    asked(write)
    assert counts_at(engine, NOW + 60 * MINUTE).waiting == ()

    newer = a_plan(snapshot_id="newer")
    write.record_plan(newer, NOW, supersede=[PLAN.plan_id])
    assert counts_at(engine).waiting == ()
    assert counts_at(engine).plans == 2


def test_a_question_that_ended_does_not_wait(engine: Engine, write: LedgerWriter) -> None:
    """A question waits no longer after its end was recorded, and the other question of its plan still waits."""
    plan = a_plan(a_batch(), a_batch(a_step(step_id="b2.s01"), batch_id="b2"))
    both = [batch.batch_id for batch in plan.batches]
    questions = tuple(NewQuestion(batch_id=each, content_digest="0" * 64, goal=f"goal of {each}") for each in both)
    write.record_plan(plan, NOW, questions=QuestionChanges(asked=questions))
    for number, each in enumerate(both):
        write.record_request(plan, each, f"dag/run/{number}", NOW, asked_digest=ASKED_DIGEST, policy=Policy())
    assert [question.batch_id for question in counts_at(engine).waiting] == ["b1", "b2"]
    end = Ending(question_id=1, reason=EndReason.NO_LONGER_PROPOSED, words="it went")
    write.record_plan(a_plan(snapshot_id="newer"), NOW, questions=QuestionChanges(ended=(end,)))
    assert [question.batch_id for question in counts_at(engine).waiting] == ["b2"]


def test_a_batch_that_runs_says_how_far_it_is(engine: Engine, write: LedgerWriter) -> None:
    """A running batch is counted with its ended steps and open calls, until its lease is over."""
    asked(write)
    answer = an_answer()
    answer_id = write.record_answer(answer)
    assert counts_at(engine).running is None
    began = NOW + 11 * MINUTE
    lease = write.take_lease(NamedCluster(CLUSTER), f"{RUN}#0a1b2c3d", 60, began)
    write.use_answer(answer_id, RUN, began)
    for step, at in zip(STEPS, (began, began + MINUTE / 2), strict=True):
        intent_id = write.record_intent(an_intended_call(PLAN, step, answer, answer_id), lease, at)
        if step is STEPS[0]:
            write.record_outcome(
                StepOutcome(
                    plan_id=PLAN.plan_id,
                    batch_id="b1",
                    step_id=step.step_id,
                    intent_id=intent_id,
                    run=RUN,
                    at=at + MINUTE / 4,
                    outcome=Outcome.DONE,
                    reason="",
                    proof={"owner": "b", "health": {"level": "strained", "before": {}, "after": {}}},
                )
            )
    counts = counts_at(engine, began + MINUTE / 2)
    assert counts.running is not None
    assert (counts.running.approved, counts.running.ended, counts.running.since) == (2, 1, began)
    assert (counts.without_outcome, counts.oldest_without_outcome) == (1, began + MINUTE / 2)
    assert counts.outcomes == {("tc_balance", "done"): 1}
    assert counts.answers == {("tc_balance", "approved"): 1}
    assert counts.health == {"strained": 1}
    assert counts.answer_seconds == (600.0,)
    assert counts.batch_seconds == (15.0,)
    assert counts_at(engine, began + 5 * MINUTE).running is None


def test_a_halt_of_every_cluster_halts_this_one(engine: Engine, write: LedgerWriter) -> None:
    """A halt of every cluster counts for each that is known or was observed, and no halt makes a name a cluster."""
    asked(write)
    say(engine, Halt(cluster=EVERY_CLUSTER, at=NOW, halted=True, said_by="bob", reason="night"))
    say(engine, Halt(cluster="lokal", at=NOW, halted=True, said_by="bob", reason="misspelt"))
    counts = ledger_counts(engine, NOW, ["observed"])
    assert list(counts.clusters) == [CLUSTER, "observed"]
    assert None not in [each.halt for each in counts.clusters.values()]
    assert counts.rows > 0
    assert counts.newest_row == NOW


def test_an_empty_ledger_has_no_clusters(engine: Engine) -> None:
    """The counts of an empty ledger show no rows, no newest row and no clusters."""
    counts = ledger_counts(engine, NOW)
    assert (counts.rows, counts.newest_row, counts.clusters) == (0, None, {})


def test_an_approval_counts_as_unused_until_something_is_carried_out(engine: Engine, write: LedgerWriter) -> None:
    """An approval counts as unused until a run uses it or its time is over."""
    asked(write)
    kind = PLAN.batches[0].kind
    assert counts_at(engine).approved == {}
    write.record_answer(an_answer())
    assert counts_at(engine, NOW + 11 * MINUTE).approved == {kind: 1}
    assert counts_at(engine, NOW + 71 * MINUTE).approved == {}
    assert write.use_answer(1, RUN, NOW + 11 * MINUTE)
    assert counts_at(engine, NOW + 11 * MINUTE).approved == {}


@pytest.mark.parametrize("decision", [Decision.SNOOZED, Decision.NEVER])
def test_what_is_silent_is_counted_as_an_answer_of_a_person(
    engine: Engine, write: LedgerWriter, decision: Decision
) -> None:
    """A snooze counts as silent until its end, and a never for good. Both count as answers of a person."""
    asked(write)
    until = NOW + 13 * MINUTE if decision is Decision.SNOOZED else None
    write.record_answer(an_answer(decision, step_ids=(), digest=None, expires_at=None, silent_until=until))
    kind = PLAN.batches[0].kind
    first, later = (ledger_counts(engine, NOW + minutes * MINUTE).clusters[CLUSTER] for minutes in (11, 14))
    assert (first.silent, first.answers) == ({(kind, decision.value): 1}, {(kind, decision.value): 1})
    assert later.silent == ({} if until else first.silent)
    assert len(first.answer_seconds) == 1


AT = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
FIRST = a_plan(
    a_batch(a_step(step_id="b1.s01"), a_step(step_id="b1.s02")),
    a_batch(a_step(step_id="b2.s01"), batch_id="b2", kind="retention", title="settings"),
)
BACK = a_plan(a_batch(kind=ROLLBACK, title="takes it back"), snapshot_id="back")
ELSEWHERE = a_plan(cluster="west")
NOTHING = a_plan(snapshot_id="nothing", batches=())


def record(write: LedgerWriter, *plans: Plan) -> None:
    for plan in plans:
        write.record_plan(plan, AT)


def came_to(write: LedgerWriter, plan: Plan, step_id: str, outcome: Outcome, minutes: int) -> None:
    """Records what a step came to, so many minutes later."""
    at, batch_id = AT + timedelta(minutes=minutes), step_id.partition(".")[0]
    write.record_outcome(an_outcome(plan, step_id, outcome, batch_id=batch_id, at=at))


def test_batches_with_a_step_that_is_done_are_listed_by_their_last_one(read: LedgerReader, write: LedgerWriter) -> None:
    """Batches of a cluster with a step that is done are listed once each, ordered by their last such step."""
    record(write, FIRST, BACK, ELSEWHERE)
    came_to(write, FIRST, "b1.s01", Outcome.DONE, 1)
    came_to(write, FIRST, "b2.s01", Outcome.FAILED, 2)
    came_to(write, ELSEWHERE, "b1.s01", Outcome.DONE, 3)
    came_to(write, BACK, "b1.s01", Outcome.DONE, 4)
    came_to(write, FIRST, "b1.s02", Outcome.DONE, 5)
    first = CarriedOut(
        plan_id=FIRST.plan_id, batch_id="b1", kind="tc_balance", title="made up", at=AT + timedelta(minutes=5)
    )
    back = CarriedOut(
        plan_id=BACK.plan_id, batch_id="b1", kind=ROLLBACK, title="takes it back", at=AT + timedelta(minutes=4)
    )
    assert read.carried_out(CLUSTER) == (first, back)
    assert read.carried_out(CLUSTER, ways_back=True) == (back,)
    assert read.carried_out(CLUSTER, ways_back=False) == (first,)
    assert read.carried_out("nowhere") == ()


def test_ways_back_are_told_from_proposals(read: LedgerReader, write: LedgerWriter) -> None:
    """Plans are listed with rollbacks only, without rollbacks or both, and the limit counts only the listed kind."""
    record(write, FIRST, NOTHING, BACK)
    ids = [FIRST.plan_id, NOTHING.plan_id, BACK.plan_id]
    assert [row.plan_id for row in read.plans(CLUSTER)] == ids[::-1]
    assert [row.plan_id for row in read.plans(CLUSTER, ways_back=False)] == [NOTHING.plan_id, FIRST.plan_id]
    assert [row.plan_id for row in read.plans(CLUSTER, ways_back=True)] == [BACK.plan_id]
    assert [row.plan_id for row in read.plans(CLUSTER, ways_back=False, limit=1)] == [NOTHING.plan_id]
