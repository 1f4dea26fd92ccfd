"""Records of the ledger come out as they went in, once, and in order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from sqlalchemy import Engine, insert, select, update
from sqlalchemy.exc import StatementError

from pulsar_steward.errors import LeaseLost, LedgerError, NotInLedger, Refused
from pulsar_steward.ledger import tables
from pulsar_steward.ledger.past import MoveTimes, move_times
from pulsar_steward.ledger.read import LedgerReader
from pulsar_steward.ledger.rows import Answer, Decision, Outcome, Proof, RecordedAnswer
from pulsar_steward.model.cluster import NamedCluster
from pulsar_steward.model.plan import approval_digest
from pulsar_steward.policy.schema import Policy
from tests.builders import ASKED_DIGEST, an_intended_call, an_outcome
from tests.cases import row_by_row
from tests.unit.model.builders import BUNDLES, move, plan, split

if TYPE_CHECKING:
    from pulsar_steward.ledger.write import LedgerWriter

LOCAL, OTHER = NamedCluster("local"), NamedCluster("other")
AT = datetime(2026, 1, 1, 12, 0, 0, 123456, tzinfo=UTC)
LATER = AT + timedelta(minutes=5)
PLAN = plan()
NEWER = plan(snapshot_id="local-20260102T000000Z")
RUN = "pulsar_remediate/manual__1/0"

APPROVED = Answer(
    asked_digest=ASKED_DIGEST,
    plan_id=PLAN.plan_id,
    batch_id="b1",
    run=RUN,
    decision=Decision.APPROVED,
    answered_by="alice",
    answered_at=AT,
    reason="approved in the Airflow UI",
    comment='after lunch, please: "quotes", ünïcode',
    step_ids=("b1.s01", "b1.s02"),
    digest=approval_digest(PLAN, "b1", ["b1.s01", "b1.s02"]),
    expires_at=LATER,
)
NOT_APPROVED = [
    msgspec.structs.replace(
        APPROVED,
        decision=decision,
        answered_by=by,
        reason=reason,
        comment="",
        step_ids=(),
        digest=None,
        expires_at=None,
    )
    for decision, by, reason in [
        (Decision.REJECTED, "bob", "rejected"),
        (Decision.NO_ANSWER, None, "nobody answered within 24 h"),
        (Decision.MALFORMED, "eve", "the answer names a step that the batch has not: b9.s99"),
    ]
]


@pytest.fixture
def answer_id(write: LedgerWriter) -> int:
    """An approved answer to the first batch of the recorded plan."""
    write.record_plan(PLAN, AT)
    write.record_request(PLAN, "b1", RUN, AT, asked_digest=ASKED_DIGEST, policy=Policy())
    return write.record_answer(APPROVED)


def test_a_plan_comes_back_whole(write: LedgerWriter, read: LedgerReader) -> None:
    """A plan is read with the document, digests and time that were recorded."""
    write.record_plan(PLAN, AT)
    assert read.plan(PLAN.plan_id) == PLAN
    row = read.plan_row(PLAN.plan_id)
    assert (row.cluster, row.snapshot_id, row.created_at) == (PLAN.cluster, PLAN.snapshot_id, AT)
    assert (row.digest, row.proposal_digest) == (PLAN.digest, PLAN.proposal_digest)
    assert (row.superseded_by, row.superseded_at) == (None, None)


def test_recording_a_plan_again_changes_nothing(write: LedgerWriter, read: LedgerReader) -> None:
    """A plan that is recorded twice is one row with the first time."""
    write.record_plan(PLAN, AT)
    write.record_plan(PLAN, LATER)
    assert [row.created_at for row in read.plans(PLAN.cluster)] == [AT]


def test_plans_are_listed_newest_first(write: LedgerWriter, read: LedgerReader) -> None:
    other = plan(cluster="other")
    for each in (PLAN, NEWER, other):
        write.record_plan(each, AT)
    assert [row.plan_id for row in read.plans("local")] == [NEWER.plan_id, PLAN.plan_id]
    assert [row.plan_id for row in read.plans("local", limit=1)] == [NEWER.plan_id]
    assert [row.plan_id for row in read.plans("other")] == [other.plan_id]
    assert read.plans("nowhere") == ()


def test_a_plan_is_superseded_once(write: LedgerWriter, read: LedgerReader) -> None:
    """A plan stays superseded by the first plan that replaced it, also when that plan is recorded again."""
    write.record_plan(PLAN, AT)
    for _ in range(2):
        write.record_plan(NEWER, LATER, supersede=[PLAN.plan_id, PLAN.plan_id])
    newest = plan(snapshot_id="local-20260103T000000Z")
    write.record_plan(newest, LATER + timedelta(days=1), supersede=[PLAN.plan_id, NEWER.plan_id])
    rows = {row.plan_id: (row.superseded_by, row.superseded_at) for row in read.plans("local")}
    assert rows == {
        PLAN.plan_id: (NEWER.plan_id, LATER),
        NEWER.plan_id: (newest.plan_id, LATER + timedelta(days=1)),
        newest.plan_id: (None, None),
    }


def test_nothing_is_kept_of_a_plan_that_fails(write: LedgerWriter, read: LedgerReader) -> None:
    with pytest.raises(LedgerError):
        write.record_plan(PLAN, AT, supersede=["no-such-plan"])
    assert read.plans("local") == ()


@pytest.mark.parametrize("ask", [LedgerReader.plan, LedgerReader.plan_row])
def test_an_unknown_plan_is_said_so(ask: Any, read: LedgerReader) -> None:
    """An unknown plan raises an error that names its id."""
    with pytest.raises(NotInLedger, match="no plan 'p-1'"):
        ask(read, "p-1")


@row_by_row(
    "before, after, words",
    ("b:8080", "c:8080", "was changed after it was recorded"),
    ('"cluster"', '"clutter"', "cannot be read any more"),
)
def test_a_plan_that_was_tampered_with_is_refused(
    before: str, after: str, words: str, write: LedgerWriter, read: LedgerReader, engine: Engine
) -> None:
    """A plan whose document was changed after it was recorded is not returned."""
    write.record_plan(PLAN, AT)
    document = PLAN.encoded().decode().replace(before, after, 1)
    with engine.begin() as connection:
        connection.execute(update(tables.PLANS).values(document=document))
    with pytest.raises(LedgerError, match=words):
        read.plan(PLAN.plan_id)


def test_a_batch_comes_with_all_of_its_requests(write: LedgerWriter, read: LedgerReader) -> None:
    """A batch is returned with the requests of it alone, oldest first; each is closed by the next one of its run."""
    write.record_plan(PLAN, AT)
    for batch_id, at in (("b1", AT), ("b2", AT), ("b1", LATER)):
        write.record_request(PLAN, batch_id, RUN, at, asked_digest=ASKED_DIGEST, policy=Policy())
    found = read.batches(PLAN)
    assert [(each.at, each.closed) for each in found["b1"].requests] == [(AT, True), (LATER, False)]
    assert [(each.at, each.closed) for each in found["b2"].requests] == [(AT, True)]
    with pytest.raises(NotInLedger, match="no batch 'b1' of plan 'no-such-plan'"):
        read.batch("no-such-plan", "b1")


@pytest.mark.parametrize("answer", [APPROVED, *NOT_APPROVED], ids=lambda answer: answer.decision)
def test_an_answer_comes_back_as_it_was_given(answer: Answer, write: LedgerWriter, read: LedgerReader) -> None:
    """An answer is read as it was recorded, whether it is approved, rejected, missing or malformed."""
    write.record_plan(PLAN, AT)
    answer_id = write.record_answer(answer)
    assert read.answers(PLAN.plan_id, "b1") == (RecordedAnswer(answer_id=answer_id, **msgspec.structs.asdict(answer)),)
    assert read.answers(PLAN.plan_id, "b2") == ()


def test_answers_stay_in_order(write: LedgerWriter, read: LedgerReader) -> None:
    write.record_plan(PLAN, AT)
    given = [write.record_answer(each) for each in (*NOT_APPROVED, APPROVED)]
    assert [each.answer_id for each in read.answers(PLAN.plan_id, "b1")] == sorted(given)


def test_an_answer_to_no_plan_is_refused(write: LedgerWriter) -> None:
    with pytest.raises(LedgerError):
        write.record_answer(msgspec.structs.replace(APPROVED, plan_id="no-such-plan"))


def test_an_answer_is_used_by_one_run(answer_id: int, write: LedgerWriter) -> None:
    assert write.use_answer(answer_id, "run 1", AT)
    assert write.use_answer(answer_id, "run 1", LATER)
    assert not write.use_answer(answer_id, "run 2", LATER)


def test_an_answer_that_is_not_there_cannot_be_used(write: LedgerWriter) -> None:
    with pytest.raises(NotInLedger, match="no answer 77"):
        write.use_answer(77, "run 1", AT)


def test_an_intent_is_there_before_its_outcome(answer_id: int, write: LedgerWriter, read: LedgerReader) -> None:
    lease = write.take_lease(LOCAL, "run 1", 60, AT)
    before = {"owner": "a:8080", "clients": 7}
    call = an_intended_call(PLAN, move(1), APPROVED, answer_id, before=before)
    intent_id = write.record_intent(call, lease, AT)
    (intent,) = read.intents(PLAN.plan_id, "b1")
    assert (intent.intent_id, intent.step_id, intent.attempt, intent.at) == (intent_id, "b1.s01", 1, AT)
    assert (intent.change, intent.before) == (move(1).change, before)
    assert read.outcomes(PLAN.plan_id, "b1") == ()
    proof = {"owner": "b:8080"}
    outcome = an_outcome(PLAN, intent_id=intent_id, run=RUN, at=LATER, reason="b:8080 owns it", proof=proof)
    write.record_outcome(outcome)
    assert read.outcomes(PLAN.plan_id, "b1") == (outcome,)
    other = msgspec.structs.replace(outcome, intent_id=None, outcome=Outcome.REFUSED)
    for again in (outcome, other):
        with pytest.raises(LeaseLost, match=r"recorded that b1\.s01 is done"):
            write.record_outcome(again)  # one outcome a step and run
    assert read.outcomes(PLAN.plan_id, "b1") == (outcome,)


def test_an_outcome_without_an_intent_is_a_refusal(answer_id: int, write: LedgerWriter, read: LedgerReader) -> None:
    refused = an_outcome(PLAN, outcome=Outcome.REFUSED, run=RUN, at=AT, reason="not approved")
    for step_id in ("b1.s01", "b1.s02"):
        write.record_outcome(msgspec.structs.replace(refused, step_id=step_id))
    assert [each.step_id for each in read.outcomes(PLAN.plan_id, "b1")] == ["b1.s01", "b1.s02"]
    with pytest.raises(LedgerError):
        write.record_outcome(msgspec.structs.replace(refused, step_id="b1.s03", intent_id=99))


def test_attempts_are_counted_by_step(answer_id: int, write: LedgerWriter, read: LedgerReader) -> None:
    """A second intent of a step is attempt 2, and the first one is kept."""
    lease = write.take_lease(LOCAL, "run 1", 60, AT)
    for step in (move(1), move(2), move(1)):
        write.record_intent(an_intended_call(PLAN, step, APPROVED, answer_id), lease, AT)
    assert [(each.step_id, each.attempt) for each in read.intents(PLAN.plan_id, "b1")] == [
        ("b1.s01", 1),
        ("b1.s02", 1),
        ("b1.s01", 2),
    ]


def test_an_intent_needs_an_answer(answer_id: int, write: LedgerWriter, read: LedgerReader) -> None:
    """An intent whose answer is not in the ledger is refused and not recorded."""
    lease = write.take_lease(LOCAL, "run 1", 60, AT)
    call = an_intended_call(PLAN, move(1), APPROVED, answer_id + 1)
    with pytest.raises(Refused):
        write.record_intent(call, lease, AT)
    assert read.intents(PLAN.plan_id, "b1") == ()


def test_moves_and_changes_are_found_by_time(answer_id: int, write: LedgerWriter, read: LedgerReader) -> None:
    lease = write.take_lease(LOCAL, "run 1", 3600, AT)
    times = [AT, AT + timedelta(seconds=1), AT + timedelta(seconds=2), AT + timedelta(seconds=3)]
    for step, at in zip((move(1), move(2), split(), move(1)), times, strict=True):
        call = an_intended_call(PLAN, step, APPROVED, answer_id, clients=step.touched.clients)
        write.record_intent(call, lease, at)
    moved = {f"pulsar/system/{BUNDLES[0]}": times[3], f"pulsar/system/{BUNDLES[1]}": times[1]}
    assert read.past(LOCAL).moves_since(AT) == moved
    assert read.past(LOCAL).moves_since(times[2]) == {f"pulsar/system/{BUNDLES[0]}": times[3]}
    assert read.past(LOCAL).changes_since(times[1]) == ((times[1], 7), (times[2], 0), (times[3], 7))
    assert read.past(LOCAL).changes_since(times[3] + timedelta(microseconds=1)) == ()
    assert read.past(OTHER).moves_since(AT) == {}


def test_how_long_moves_took_is_known_of_those_that_came_to_be(
    answer_id: int, write: LedgerWriter, read: LedgerReader
) -> None:
    """Durations are known for successful moves of the cluster only, from the intent to the outcome."""
    lease = write.take_lease(LOCAL, "run 1", 3600, AT)
    ends = [(move(1), 0.5, Outcome.DONE), (move(2), 3.0, Outcome.FAILED), (split(), 2.0, Outcome.DONE)]
    ends += [(move(2), 1.5, Outcome.DONE), (move(1), 4.0, Outcome.DONE)]
    assert move_times(read.past(LOCAL), AT, Policy()) is None
    for number, (step, seconds, outcome) in enumerate(ends):
        at = AT + timedelta(seconds=10 * number)
        intent_id = write.record_intent(an_intended_call(PLAN, step, APPROVED, answer_id), lease, at)
        seen = at + timedelta(seconds=seconds)
        ended = an_outcome(PLAN, step.step_id, outcome, intent_id=intent_id, run=f"run {number}", at=seen)
        write.record_outcome(ended)
    assert read.past(LOCAL).move_seconds_since(AT, 2) == (4.0, 1.5)
    known = move_times(read.past(LOCAL), AT + timedelta(hours=1), Policy())
    assert known == MoveTimes(moves=3, middle=1.5, nine_in_ten=4.0, days=90)
    assert read.past(LOCAL).move_seconds_since(AT + timedelta(seconds=41), 9) == ()
    assert move_times(read.past(OTHER), AT + timedelta(hours=1), Policy()) is None


def test_proofs_and_dry_runs_are_kept(write: LedgerWriter, read: LedgerReader) -> None:
    """Proofs and dry runs are read as they were recorded, in order."""
    write.record_plan(PLAN, AT)
    proof = Proof(
        plan_id=PLAN.plan_id, batch_id="b1", run=RUN, at=AT, proved=True, reason="8 and 8", shown={"a:8080": 8}
    )
    write.record_proof(proof)
    for text in ("PUT /one", "PUT /two"):
        write.record_dry_run(PLAN.plan_id, RUN, text, AT)
    assert read.proofs(PLAN.plan_id) == (proof,)
    assert [(each.text, each.run, each.at) for each in read.dry_runs(PLAN.plan_id)] == [
        ("PUT /one", RUN, AT),
        ("PUT /two", RUN, AT),
    ]


@pytest.mark.parametrize("hours", [-11, 0, 2])
def test_times_are_utc_whatever_zone_they_come_in(hours: int, write: LedgerWriter, read: LedgerReader) -> None:
    write.record_plan(PLAN, AT.astimezone(timezone(timedelta(hours=hours))))
    created = read.plan_row(PLAN.plan_id).created_at
    assert created == AT
    assert created.utcoffset() == timedelta(0)


def test_a_time_without_a_zone_is_refused(engine: Engine, write: LedgerWriter, read: LedgerReader) -> None:
    with pytest.raises(LedgerError, match="has no time zone"):
        write.record_plan(PLAN, AT.replace(tzinfo=None))
    with engine.connect() as connection, pytest.raises(StatementError, match="has no time zone"):
        connection.execute(select(tables.LEASES).where(tables.LEASES.c.expires_at < AT.replace(tzinfo=None)))
    assert read.plans("local") == ()


def test_a_row_without_its_plan_is_refused(engine: Engine) -> None:
    """A row of a plan that is not in the ledger is refused by a foreign key."""
    row = {"plan_id": "no-such-plan", "run": RUN, "at": AT, "text": ""}
    with engine.connect() as connection, pytest.raises(Exception, match=r"(?i)foreign key"):
        connection.execute(insert(tables.DRY_RUNS), row)
