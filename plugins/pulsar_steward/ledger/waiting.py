"""Questions that wait for an answer, approved batches, and running batches. Cannot write."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import and_, exists, or_, select

from pulsar_steward.decoding import decode
from pulsar_steward.ledger import tables
from pulsar_steward.ledger.chain import place_of
from pulsar_steward.ledger.rows import NOES, Decision, from_row

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from sqlalchemy import ColumnElement, Connection, RowMapping, Select

    from pulsar_steward.ledger.rows import BatchKey, Lease

BatchKind = tuple[str, str]
"""Cluster and kind of a batch."""

ASKING_DAG = "pulsar_remediate"
"""The DAG that asks about published plans."""

UNASKED_AFTER = timedelta(minutes=20)
"""Time after which an unasked question is reported: by the usual schedule, it was published twice by then."""


class WaitingQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A batch with an approval request and no recorded answer yet.

    Attributes:
        run: The requesting run, ``dag/run/map index``.
        voice: Number of the approver: 1, or 2 for the second person.
        ends_at: Time limit of the answer; no answer by then is a rejection.
    """

    cluster: str
    plan_id: str
    batch_id: str
    kind: str
    title: str
    steps: int
    run: str
    voice: int
    asked_at: datetime
    ends_at: datetime


class UnaskedQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """An open question that nobody was ever asked: no run recorded a request.

    Attributes:
        since: Time at which its plan was recorded and first published.
    """

    cluster: str
    plan_id: str
    batch_id: str
    kind: str
    title: str
    steps: int
    since: datetime


def why_unasked(paused: bool | None) -> str:
    """Reason why nobody was asked, with the remedy, in a sentence without a full stop.

    Args:
        paused: True if the DAG that asks for approval is paused; None: not known here.
    """
    if paused:
        return f"{ASKING_DAG} is paused: unpause it, and the next observation asks"
    nobody = f"no run of {ASKING_DAG} has asked"
    if paused is None:
        return f"{nobody}: if that DAG is paused, unpause it; the next observation asks"
    return f"{nobody}: the next observation tries again; if that does not help, look at the runs of that DAG"


class RunningBatch(msgspec.Struct, frozen=True, kw_only=True):
    """A batch that is being carried out.

    Attributes:
        approved: Number of approved steps.
        ended: Number of steps that ended in this run, with any outcome.
        lease_ends_at: End of the run's lease on the cluster; a live run prolongs it.
    """

    cluster: str
    plan_id: str
    batch_id: str
    kind: str
    title: str
    run: str
    since: datetime
    approved: int
    ended: int
    lease_ends_at: datetime


def waiting_questions(connection: Connection, now: datetime, batch: BatchKey | None = None) -> list[WaitingQuestion]:
    """Questions that wait for an answer, oldest first.

    Four kinds of questions are left out: ended ones, those of superseded plans, those past their time limit, and those
    of a task that asked another question since, as a task asks one question at a time.

    Args:
        connection: Connection to the ledger.
        now: Current time, UTC.
        batch: Only the questions about this batch.
    """
    asked, answers, newer, ends = tables.REQUESTS, tables.ANSWERS, tables.SUPERSESSIONS, tables.QUESTION_ENDS
    later = asked.alias("later")
    answered = exists().where(
        *same(answers, asked, "plan_id", "batch_id", "run", "voice"),
        place_of(answers, answers.c.answer_id) > place_of(asked, asked.c.request_id),
    )
    asked_again = exists().where(*same(later, asked, "run", "voice"), later.c.request_id > asked.c.request_id)
    superseded = exists().where(newer.c.plan_id == asked.c.plan_id)
    ended = exists().where(*same(ends, asked, "plan_id", "batch_id"))
    query = (
        of_batches(asked, asked.c.plan_id, asked.c.batch_id, asked.c.run, asked.c.ends_at)
        .add_columns(tables.BATCHES.c.title, tables.BATCHES.c.steps, asked.c.at.label("asked_at"), asked.c.voice)
        .where(~answered, ~asked_again, ~superseded, ~ended, asked.c.ends_at > now)
        .order_by(asked.c.request_id)
    )
    if batch is not None:
        query = query.where(asked.c.plan_id == batch[0], asked.c.batch_id == batch[1])
    return [from_row(row, WaitingQuestion) for row in rows_of(connection, query)]


def unasked_questions(connection: Connection) -> list[UnaskedQuestion]:
    """Open questions that nobody was ever asked, oldest first."""
    questions = tables.QUESTIONS
    query = of_batches(questions, questions.c.plan_id, questions.c.batch_id, questions.c.at.label("since"))
    ended = exists().where(tables.QUESTION_ENDS.c.question_id == questions.c.question_id)
    concerned = (exists().where(*same(each, questions, "plan_id", "batch_id")) for each in _OF_ASKED)
    query = query.add_columns(tables.BATCHES.c.title, tables.BATCHES.c.steps).where(
        ~ended, *(~each for each in concerned)
    )
    return [from_row(row, UnaskedQuestion) for row in rows_of(connection, query.order_by(questions.c.question_id))]


_OF_ASKED = (tables.REQUESTS, tables.ANSWERS, tables.INTENTS)
"""Tables in which a row of a batch proves that people were asked about it."""


def asked_by_another(connection: Connection, batch: BatchKey, run: str, now: datetime) -> str | None:
    """Another run that asks this question and can still get an answer, ``dag/run/map index``; or None.

    Rollbacks have no questions, so several runs may ask about the same one.

    Args:
        connection: Connection to the ledger.
        batch: The batch.
        run: The run that wants to ask, ``dag/run/map index``; all of its tasks count as this run.
        now: Current time, UTC.
    """
    table = tables.QUESTIONS
    question = select(table.c.question_id).where(table.c.plan_id == batch[0], table.c.batch_id == batch[1])
    if connection.execute(question).first() is None:
        return None
    mine = run.rpartition("/")[0]
    others = (each.run for each in waiting_questions(connection, now, batch))
    return next((other for other in others if other.rpartition("/")[0] != mine), None)


def unused_approvals(connection: Connection, waiting: Collection[WaitingQuestion], now: datetime) -> Counter[BatchKind]:
    """Number of approved batches that have not begun, by cluster and kind.

    They are about to begin, or wait for a maintenance window or for another batch. A batch does not count if a second
    person is being asked, if a later answer replaced the approval, or if its question or approval has ended.
    """
    answers, ends, newer, uses = tables.ANSWERS, tables.QUESTION_ENDS, tables.SUPERSESSIONS, tables.ANSWER_USES
    later = answers.alias("later")
    answered_since = exists().where(
        *same(later, answers, "plan_id", "batch_id"),
        later.c.answer_id > answers.c.answer_id,
        or_(later.c.run == answers.c.run, later.c.decision.in_([each.value for each in NOES])),
    )
    query = of_batches(answers, answers.c.plan_id, answers.c.batch_id).where(
        answers.c.decision == Decision.APPROVED,
        answers.c.expires_at > now,
        ~answered_since,
        ~exists().where(uses.c.answer_id == answers.c.answer_id),
        ~exists().where(newer.c.plan_id == answers.c.plan_id),
        ~exists().where(*same(ends, answers, "plan_id", "batch_id")),
    )
    open_questions = {(each.plan_id, each.batch_id) for each in waiting}
    rows = rows_of(connection, query)
    return Counter(
        (row["cluster"], row["kind"]) for row in rows if (row["plan_id"], row["batch_id"]) not in open_questions
    )


def running_batch(connection: Connection, lease: Lease | None, now: datetime) -> RunningBatch | None:
    """The batch that a lease's holder carries out; None: the lease has expired, or no approval is used yet."""
    if lease is None or lease.expires_at <= now:
        return None
    uses, answers, outcomes = tables.ANSWER_USES, tables.ANSWERS, tables.OUTCOMES
    run = lease.holder.partition("#")[0]
    query = (
        of_batches(answers, answers.c.plan_id, answers.c.batch_id, answers.c.step_ids, uses.c.at.label("since"))
        .add_columns(tables.BATCHES.c.title)
        .join(uses, uses.c.answer_id == answers.c.answer_id)
        .where(uses.c.run == run, tables.PLANS.c.cluster == lease.cluster)
        .order_by(answers.c.answer_id.desc())
    )
    row = connection.execute(query.limit(1)).mappings().first()
    if row is None:
        return None
    of_run = (outcomes.c.plan_id == row["plan_id"], outcomes.c.batch_id == row["batch_id"], outcomes.c.run == run)
    steps = decode(row["step_ids"], tuple[str, ...])
    ended = connection.execute(select(outcomes.c.step_id).where(*of_run).distinct()).scalars().all()
    return from_row(row, RunningBatch, run=run, approved=len(steps), ended=len(ended), lease_ends_at=lease.expires_at)


def rows_of(connection: Connection, query: Select[Any]) -> Sequence[RowMapping]:
    """Rows of a query."""
    return connection.execute(query).mappings().all()


def same(table: Any, other: Any, *names: str) -> tuple[ColumnElement[bool], ...]:
    """Conditions that two tables' rows have the same values in these columns."""
    return tuple(table.c[name] == other.c[name] for name in names)


def of_batches(table: Any, *columns: Any) -> Select[Any]:
    """Query for rows with a plan and a batch, plus the plan's cluster and the batch's kind."""
    plans, batches = tables.PLANS, tables.BATCHES
    return (
        select(plans.c.cluster, batches.c.kind, *columns)
        .select_from(table)
        .join(plans, plans.c.plan_id == table.c.plan_id)
        .join(batches, and_(*same(batches, table, "plan_id", "batch_id")))
    )
