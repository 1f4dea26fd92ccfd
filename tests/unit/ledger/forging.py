"""A ledger with a row in every table, and what somebody with access to its database can do to it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sqlalchemy import Column, Connection, Engine, RowMapping, Table, create_engine, select, text, update

from pulsar_steward.ledger import tables
from pulsar_steward.ledger.chain import GENESIS, appending, link_hash, row_digest, row_key
from pulsar_steward.ledger.cluster_names import add_name
from pulsar_steward.ledger.halts import Halt, say
from pulsar_steward.ledger.messages import Queued
from pulsar_steward.ledger.outbox import Outbox
from pulsar_steward.ledger.publishing import Ending, NewQuestion, QuestionChanges
from pulsar_steward.ledger.rows import Answer, Decision, EndReason, Outcome, Proof, StepOutcome
from pulsar_steward.ledger.silences import SilenceEnd, take_back
from pulsar_steward.ledger.write import LedgerWriter
from pulsar_steward.model.cluster import NamedCluster
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.notice import Notice, Occasion
from pulsar_steward.policy.schema import Policy
from tests.builders import ASKED_DIGEST, IDENTITY, an_intended_call
from tests.unit.ledger.test_records import APPROVED, AT, LATER, NEWER, PLAN, RUN

if TYPE_CHECKING:
    from collections.abc import Iterator


CHAIN = tables.CHAIN

A_SNOOZE = Answer(
    asked_digest=ASKED_DIGEST,
    plan_id=PLAN.plan_id,
    batch_id="b2",
    run=RUN,
    decision=Decision.SNOOZED,
    answered_by="alice",
    answered_at=AT,
    reason="a person snoozed it",
    silent_until=LATER,
    until_worse=True,
    policy_entry="namespaces: {}",
)


def a_message(cluster: str) -> Queued:
    notice = Notice(
        key="0" * 64,
        occasion=Occasion.HALTED,
        cluster=cluster,
        severity=Severity.WARNING,
        at=AT,
        subject="halted",
        text="by bob",
        path="/steward/",
    )
    return Queued(message_id="1" * 32, recipient="ops", at=AT, notices=(notice,))


def filled(engine: Engine) -> Engine:
    """Adds, to a ledger that holds the plan, what is asked, answered and done of it until another supersedes it."""
    write = LedgerWriter(engine)
    with appending(engine) as chain:
        add_name(chain, NamedCluster(PLAN.cluster, IDENTITY), AT)
    write.record_request(PLAN, "b1", RUN, AT, requested_by="alice", policy=Policy(), asked_digest=ASKED_DIGEST)
    answer_id = write.record_answer(APPROVED)
    assert write.use_answer(answer_id, RUN, AT)
    lease = write.take_lease(PLAN.named_cluster, RUN, 600, AT)
    step = PLAN.batch("b1").step("b1.s01")
    intended = an_intended_call(PLAN, step, APPROVED, answer_id, before={"owner": "a"})
    intent_id = write.record_intent(intended, lease, AT)
    common: dict[str, Any] = {"plan_id": PLAN.plan_id, "batch_id": "b1", "run": RUN, "at": AT, "reason": "seen"}
    write.record_outcome(
        StepOutcome(**common, step_id="b1.s01", intent_id=intent_id, outcome=Outcome.DONE, proof={"owner": "b"})
    )
    write.record_proof(Proof(**common, proved=True, shown={}))
    write.record_dry_run(PLAN.plan_id, RUN, "PUT ...", AT)
    write.record_plan(NEWER, AT, supersede=[PLAN.plan_id])
    outbox, message = Outbox(engine), a_message(PLAN.cluster)
    outbox.queue([message])
    outbox.claim(message, AT)
    asked = NewQuestion(batch_id="b1", content_digest="0" * 64, goal="tc_balance")
    write.record_plan(PLAN, AT, questions=QuestionChanges(asked=(asked,)))
    write.record_confirmations(NEWER, [1], AT)
    ending = Ending(question_id=1, reason=EndReason.CHANGED, by_batch_id="b1", words="it changed")
    write.record_plan(NEWER, AT, questions=QuestionChanges(ended=(ending,)))
    snooze = write.record_answer(A_SNOOZE)
    assert take_back(engine, SilenceEnd(answer_id=snooze, at=AT, said_by="carol", reason="it is urgent by now"))
    say(engine, Halt(cluster=PLAN.cluster, at=AT, halted=False, said_by="bob", reason="all is well"))
    return engine


@contextmanager
def forging(engine: Engine) -> Iterator[Connection]:
    """A connection as a forger has it: no foreign keys."""
    own = create_engine(engine.url)
    with own.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(text("SET session_replication_role = replica"))
        yield connection
    own.dispose()


def other_value(row: RowMapping, column: Column[Any]) -> object:
    """Another value than a row has in a column."""
    kind = column.type.python_type
    return not row[column.name] if kind is bool else {str: "other", int: 77}.get(kind, LATER.replace(year=2031))


def mended(connection: Connection, table: Table, row: RowMapping) -> int:
    """Gives a row's link the digest that the row has now, and a hash that fits; returns its number."""
    link = CHAIN.c.table_name == table.name, CHAIN.c.row_key == row_key(table, row)
    number: int = connection.execute(select(CHAIN.c.sequence).where(*link)).scalar_one()
    connection.execute(update(CHAIN).where(*link).values(row_digest=row_digest(row), plan_id=row.get("plan_id")))
    _hashed(connection, number)
    return number


def written_anew(connection: Connection) -> None:
    """Makes every link follow from the one before it, and the head say where that ends."""
    numbers = connection.execute(select(CHAIN.c.sequence).order_by(CHAIN.c.sequence)).scalars().all()
    for number in numbers:
        end = _hashed(connection, number)
    connection.execute(update(tables.HEAD).values(sequence=numbers[-1], hash=end))


def _hashed(connection: Connection, number: int) -> str:
    before = connection.execute(select(CHAIN.c.hash).where(CHAIN.c.sequence == number - 1)).scalar() or GENESIS
    link = connection.execute(select(CHAIN).where(CHAIN.c.sequence == number)).mappings().one()
    forged = link_hash(number, link["table_name"], link["row_key"], link["row_digest"], before)
    connection.execute(update(CHAIN).where(CHAIN.c.sequence == number).values(hash=forged))
    return forged
