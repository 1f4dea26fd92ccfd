"""Questions: batches that are asked separately, later observations that confirm them, and their ends. Cannot write.

A question is open until it has an end. Rollbacks have no questions: their batches are open until a newer plan
supersedes their plan.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec
from sqlalchemy import exists, func, or_, select

from pulsar_steward.ledger.cluster_names import known_cluster
from pulsar_steward.ledger.rows import Decision, Request, from_row
from pulsar_steward.ledger.silences import Silence, silences, taken_back
from pulsar_steward.ledger.store import transaction
from pulsar_steward.ledger.tables import (
    ANSWER_USES,
    ANSWERS,
    CONFIRMATIONS,
    PLANS,
    QUESTION_ENDS,
    QUESTIONS,
    REQUESTS,
    SUPERSESSIONS,
)
from pulsar_steward.ledger.waiting import asked_by_another, unasked_questions, waiting_questions
from pulsar_steward.model.units import time_in_words

if TYPE_CHECKING:
    from collections.abc import Collection

    from sqlalchemy import Connection, Engine

    from pulsar_steward.ledger.rows import BatchKey
    from pulsar_steward.ledger.waiting import UnaskedQuestion, WaitingQuestion
    from pulsar_steward.model.cluster import NamedCluster
    from pulsar_steward.model.plan import Plan

PLANS_AT_ONCE = 500
"""Maximum number of plans in one query, as databases limit the number of parameters."""


class EndReason(StrEnum):
    """Reason for the end of a question."""

    CHANGED = "changed"
    NO_LONGER_PROPOSED = "no_longer_proposed"
    POLICY_LOOSENED = "policy_loosened"
    ASKED_ANEW = "asked_anew"
    WORSE = "worse"


class QuestionRow(msgspec.Struct, frozen=True, kw_only=True):
    """A batch that is asked separately.

    Attributes:
        plan_id: The plan in which it is asked.
        batch_id: Its batch there.
        content_digest: `pulsar_steward.model.content.content_digest` of the batch.
        goal: `pulsar_steward.model.content.goal_of` the batch.
    """

    question_id: int
    cluster: str
    plan_id: str
    batch_id: str
    content_digest: str
    goal: str
    at: datetime


class QuestionEnd(msgspec.Struct, frozen=True, kw_only=True):
    """End of a question.

    Attributes:
        by_plan_id: The plan of the observation that ended it; None: no observation did.
        by_batch_id: The batch of that plan that replaces it; None: no batch does.
        words: The reason in a sentence.
    """

    question_id: int
    plan_id: str
    batch_id: str
    at: datetime
    reason: EndReason
    by_plan_id: str | None
    by_batch_id: str | None
    words: str


class Rejection(msgspec.Struct, frozen=True, kw_only=True):
    """The last answer to a batch, if it is a rejection.

    Attributes:
        by: Name of the person, as Airflow reports it.
        comment: The person's comment, or empty.
    """

    plan_id: str
    batch_id: str
    at: datetime
    by: str | None
    comment: str


def end_in(connection: Connection, plan_id: str, batch_id: str) -> QuestionEnd | None:
    """End of a batch's question; None: it has none."""
    table = QUESTION_ENDS
    query = select(table).where(table.c.plan_id == plan_id, table.c.batch_id == batch_id)
    row = connection.execute(query).mappings().first()
    return None if row is None else from_row(row, QuestionEnd)


def why_over(connection: Connection, plan_id: str, batch_id: str) -> str | None:
    """Reason why a batch must not be asked about or carried out any more; None: its question is open."""
    by = SUPERSESSIONS.c.by_plan_id
    if newer := connection.execute(select(by).where(SUPERSESSIONS.c.plan_id == plan_id)).scalar():
        return _superseded(newer)
    if end := end_in(connection, plan_id, batch_id):
        return _ended(end.at, end.words)
    if not connection.execute(select(PLANS.c.asked_by_batch).where(PLANS.c.plan_id == plan_id)).scalar():
        return None
    asked = select(QUESTIONS.c.question_id).where(QUESTIONS.c.plan_id == plan_id, QUESTIONS.c.batch_id == batch_id)
    return _not_asked(plan_id, batch_id) if connection.execute(asked).first() is None else None


def all_over(connection: Connection, batches: Collection[BatchKey]) -> dict[BatchKey, str]:
    """Reasons of `why_over` for the batches that have one, by one query for up to `PLANS_AT_ONCE` plans."""
    plans = sorted({plan_id for plan_id, _ in batches})
    rows = [
        row
        for begin in range(0, len(plans), PLANS_AT_ONCE)
        for row in connection.execute(_OF_PLANS.where(PLANS.c.plan_id.in_(plans[begin : begin + PLANS_AT_ONCE])))
    ]
    superseded = {row.plan_id: row.by_plan_id for row in rows if row.by_plan_id}
    by_batch = {row.plan_id for row in rows if row.asked_by_batch}
    asked = {(row.plan_id, row.batch_id): row for row in rows}
    found: dict[BatchKey, str] = {}
    for plan_id, batch_id in batches:
        question = asked.get((plan_id, batch_id))
        if plan_id in superseded:
            found[plan_id, batch_id] = _superseded(superseded[plan_id])
        elif question is not None and question.words is not None:
            found[plan_id, batch_id] = _ended(question.at, question.words)
        elif question is None and plan_id in by_batch:
            found[plan_id, batch_id] = _not_asked(plan_id, batch_id)
    return found


_OF_PLANS = (
    select(PLANS.c.plan_id, PLANS.c.asked_by_batch, SUPERSESSIONS.c.by_plan_id, QUESTIONS.c.batch_id)
    .add_columns(QUESTION_ENDS.c.at, QUESTION_ENDS.c.words)
    .select_from(PLANS)
    .outerjoin(SUPERSESSIONS, SUPERSESSIONS.c.plan_id == PLANS.c.plan_id)
    .outerjoin(QUESTIONS, QUESTIONS.c.plan_id == PLANS.c.plan_id)
    .outerjoin(QUESTION_ENDS, QUESTION_ENDS.c.question_id == QUESTIONS.c.question_id)
)
"""Plans with their questions: a row for each question, or one row for a plan without questions."""


def _superseded(newer: str) -> str:
    return f"superseded by the newer plan {newer}: the cluster was seen otherwise since; answer that one"


def _ended(at: datetime, words: str) -> str:
    return f"the question ended at {time_in_words(at)}: {words}"


def _not_asked(plan_id: str, batch_id: str) -> str:
    return (
        f"nobody is asked about batch {batch_id} in plan {plan_id}: the same is asked in an earlier plan, or was"
        " rejected there"
    )


class QuestionReader:
    """Reads questions. Every method raises `LedgerError` if the database cannot be read."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def over(self, plan_id: str, batch_id: str) -> str | None:
        """Reason for the end of a batch's question; None: it is open."""
        with transaction(self._engine) as connection:
            return why_over(connection, plan_id, batch_id)

    def all_over(self, batches: Collection[BatchKey]) -> dict[BatchKey, str]:
        """Reasons for the end of these batches' questions; open questions are left out."""
        with transaction(self._engine) as connection:
            return all_over(connection, batches)

    def end(self, plan_id: str, batch_id: str) -> QuestionEnd | None:
        """End of a batch's question; None: it has none."""
        with transaction(self._engine) as connection:
            return end_in(connection, plan_id, batch_id)

    def ends(self, plan_id: str) -> dict[str, QuestionEnd]:
        """Ends of a plan's questions, by batch id."""
        table = QUESTION_ENDS
        with transaction(self._engine) as connection:
            rows = connection.execute(select(table).where(table.c.plan_id == plan_id)).mappings().all()
        return {row["batch_id"]: from_row(row, QuestionEnd) for row in rows}

    def standing(self, cluster: NamedCluster) -> tuple[QuestionRow, ...]:
        """Questions without an end, asked under any name that leads or led to a cluster, oldest first."""
        ended = exists().where(QUESTION_ENDS.c.question_id == QUESTIONS.c.question_id)
        with transaction(self._engine) as connection:
            names = known_cluster(connection, cluster).ever
            query = select(QUESTIONS).where(QUESTIONS.c.cluster.in_(names), ~ended).order_by(QUESTIONS.c.question_id)
            return tuple(from_row(row, QuestionRow) for row in connection.execute(query).mappings())

    def asked_in(self, plan_id: str) -> frozenset[str] | None:
        """Batches of a plan that are questions; None: the plan has no separate questions, as a rollback."""
        with transaction(self._engine) as connection:
            of_plan = select(PLANS.c.asked_by_batch).where(PLANS.c.plan_id == plan_id)
            if not connection.execute(of_plan).scalar():
                return None
            asked = select(QUESTIONS.c.batch_id).where(QUESTIONS.c.plan_id == plan_id)
            return frozenset(connection.execute(asked).scalars())

    def replaced_by(self, plan_id: str, batch_id: str) -> tuple[QuestionEnd, ...]:
        """Ends of the questions that a batch replaces, oldest question first; a group may replace several."""
        table = QUESTION_ENDS
        query = select(table).where(table.c.by_plan_id == plan_id, table.c.by_batch_id == batch_id)
        with transaction(self._engine) as connection:
            rows = connection.execute(query.order_by(table.c.question_id)).mappings().all()
        return tuple(from_row(row, QuestionEnd) for row in rows)

    def seen_at(self, plan: Plan, batch_id: str) -> datetime:
        """Time of the newest snapshot for which exactly this batch was proposed: the plan's own, or a later one."""
        table = CONFIRMATIONS
        among = table.c.batch_ids.contains(msgspec.json.encode(batch_id).decode(), autoescape=True)
        of_batch = (table.c.plan_id == plan.plan_id, or_(table.c.batch_id == batch_id, among))
        with transaction(self._engine) as connection:
            confirmed = connection.execute(select(func.max(table.c.taken_at)).where(*of_batch)).scalar()
        return max(plan.taken_at, confirmed or plan.taken_at)

    def waiting(self, now: datetime, batch: BatchKey | None = None) -> list[WaitingQuestion]:
        """Questions that wait for an answer, of all clusters or about one batch, oldest first."""
        with transaction(self._engine) as connection:
            return waiting_questions(connection, now, batch)

    def unasked(self) -> list[UnaskedQuestion]:
        """Open questions of all clusters that nobody was ever asked, oldest first."""
        with transaction(self._engine) as connection:
            return unasked_questions(connection)

    def asked_by_another(self, batch: BatchKey, run: str, now: datetime) -> str | None:
        """Another run that asks this question and can still get an answer, ``dag/run/map index``; or None."""
        with transaction(self._engine) as connection:
            return asked_by_another(connection, batch, run, now)

    def last_of_run(self, run: str, voice: int | None = None) -> Request | None:
        """The last approval request of a run to this approver; None: the run made no request.

        Args:
            run: The run, ``dag/run/map index``.
            voice: Number of the approver; None: any approver.
        """
        table = REQUESTS
        query = select(table).where(table.c.run == run).order_by(table.c.request_id.desc())
        if voice is not None:
            query = query.where(table.c.voice == voice)
        with transaction(self._engine) as connection:
            row = connection.execute(query.limit(1)).mappings().first()
        return None if row is None else from_row(row, Request)

    def is_used(self, answer_id: int) -> bool:
        """True if a run acts on an answer."""
        with transaction(self._engine) as connection:
            return (
                connection.execute(select(ANSWER_USES.c.run).where(ANSWER_USES.c.answer_id == answer_id)).first()
                is not None
            )

    def rejections(self, cluster: NamedCluster, since: datetime) -> tuple[Rejection, ...]:
        """Rejections since `since` that are a batch's last answer, newest first; under the same names as `standing`."""
        later = ANSWERS.alias("later")
        of_batch = (later.c.plan_id == ANSWERS.c.plan_id, later.c.batch_id == ANSWERS.c.batch_id)
        answered_again = exists().where(*of_batch, later.c.answer_id > ANSWERS.c.answer_id)
        who = (ANSWERS.c.answered_at.label("at"), ANSWERS.c.answered_by.label("by"), ANSWERS.c.comment)
        query = (
            select(ANSWERS.c.plan_id, ANSWERS.c.batch_id, *who)
            .join(PLANS, PLANS.c.plan_id == ANSWERS.c.plan_id)
            .where(ANSWERS.c.decision == Decision.REJECTED.value)
            .where(ANSWERS.c.answered_at > since, ~answered_again, ~taken_back())
            .order_by(ANSWERS.c.answer_id.desc())
        )
        with transaction(self._engine) as connection:
            query = query.where(PLANS.c.cluster.in_(known_cluster(connection, cluster).ever))
            return tuple(from_row(row, Rejection) for row in connection.execute(query).mappings())

    def silences(self, cluster: NamedCluster, now: datetime) -> tuple[Silence, ...]:
        """Batches of a cluster that nobody is asked about for now; see `pulsar_steward.ledger.silences.silences_in`."""
        return silences(self._engine, now, cluster)
