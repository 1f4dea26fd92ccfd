"""Questions: batches that are asked by themselves, later observations that confirm them, and their ends. Cannot write.

A question stands until it has an end. Plans of an earlier Steward, and rollbacks, have no questions: their batches
stand until a newer plan supersedes theirs.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec
from sqlalchemy import and_, exists, func, or_, select

from pulsar_steward.ledger.rows import Decision, Request, from_row
from pulsar_steward.ledger.silences import Silence, silences, taken_back
from pulsar_steward.ledger.store import transaction
from pulsar_steward.ledger.tables import (
    ANSWER_USES,
    ANSWERS,
    BATCHES,
    CONFIRMATIONS,
    PLANS,
    QUESTION_ENDS,
    QUESTIONS,
    REQUESTS,
    SUPERSESSIONS,
)
from pulsar_steward.model.plan import ROLLBACK
from pulsar_steward.model.units import time_in_words

if TYPE_CHECKING:
    from collections.abc import Collection

    from sqlalchemy import Connection, Engine

    from pulsar_steward.model.plan import Plan

BatchKey = tuple[str, str]
"""A batch by the ids of its plan and of itself."""

PLANS_AT_ONCE = 500
"""Plans that one query names; databases bound its parameters."""


class EndReason(StrEnum):
    """Reason why a question does not stand any more."""

    CHANGED = "changed"
    NO_LONGER_PROPOSED = "no_longer_proposed"
    POLICY_LOOSENED = "policy_loosened"
    ASKED_ANEW = "asked_anew"
    WORSE = "worse"


class QuestionRow(msgspec.Struct, frozen=True, kw_only=True):
    """A batch that is asked by itself.

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
        by_batch_id: The batch of that plan that takes its place; None: none does.
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
    """The last answer to a batch, where it is a rejection.

    Attributes:
        by: Who rejected it, as Airflow reports the name.
        comment: What they said to it; empty: nothing.
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
    """Reason why a batch must not be asked about or carried out any more; None: its question stands."""
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
    """Reasons as `why_over` has them of all of these batches that have one, by one query for some hundred plans."""
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
"""Plans with their questions, a row each, or one row where a plan has none."""


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
    """Reads questions. Every method raises `LedgerError` when the database cannot be read."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def over(self, plan_id: str, batch_id: str) -> str | None:
        """Reason why a batch's question does not stand any more; None: it stands."""
        with transaction(self._engine) as connection:
            return why_over(connection, plan_id, batch_id)

    def all_over(self, batches: Collection[BatchKey]) -> dict[BatchKey, str]:
        """Reasons of those of these batches whose questions do not stand any more."""
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

    def standing(self, cluster: str) -> tuple[QuestionRow, ...]:
        """A cluster's questions that have no end, oldest first."""
        ended = exists().where(QUESTION_ENDS.c.question_id == QUESTIONS.c.question_id)
        query = select(QUESTIONS).where(QUESTIONS.c.cluster == cluster, ~ended).order_by(QUESTIONS.c.question_id)
        with transaction(self._engine) as connection:
            return tuple(from_row(row, QuestionRow) for row in connection.execute(query).mappings())

    def asked_in(self, plan_id: str) -> frozenset[str] | None:
        """Batches of a plan that are questions; None: its batches stand and fall together."""
        with transaction(self._engine) as connection:
            of_plan = select(PLANS.c.asked_by_batch).where(PLANS.c.plan_id == plan_id)
            if not connection.execute(of_plan).scalar():
                return None
            asked = select(QUESTIONS.c.batch_id).where(QUESTIONS.c.plan_id == plan_id)
            return frozenset(connection.execute(asked).scalars())

    def replaced_by(self, plan_id: str, batch_id: str) -> tuple[QuestionEnd, ...]:
        """Ends of the questions whose place a batch takes, oldest question first; a group may take that of several."""
        table = QUESTION_ENDS
        query = select(table).where(table.c.by_plan_id == plan_id, table.c.by_batch_id == batch_id)
        with transaction(self._engine) as connection:
            rows = connection.execute(query.order_by(table.c.question_id)).mappings().all()
        return tuple(from_row(row, QuestionEnd) for row in rows)

    def seen_at(self, plan: Plan, batch_id: str) -> datetime:
        """Time of the newest snapshot of which exactly this batch was proposed: the plan's, or a later one's."""
        table = CONFIRMATIONS
        among = table.c.batch_ids.contains(msgspec.json.encode(batch_id).decode(), autoescape=True)
        of_batch = (table.c.plan_id == plan.plan_id, or_(table.c.batch_id == batch_id, among))
        with transaction(self._engine) as connection:
            confirmed = connection.execute(select(func.max(table.c.taken_at)).where(*of_batch)).scalar()
        return max(plan.taken_at, confirmed or plan.taken_at)

    def last_request(self, plan_id: str, batch_id: str) -> Request | None:
        """The last approval request for a batch, by whichever run; None: nobody was asked yet."""
        table = REQUESTS
        query = select(table).where(table.c.plan_id == plan_id, table.c.batch_id == batch_id)
        with transaction(self._engine) as connection:
            row = connection.execute(query.order_by(table.c.request_id.desc()).limit(1)).mappings().first()
        return None if row is None else from_row(row, Request)

    def asked_by(self, run: str) -> BatchKey | None:
        """The batch that a run asked about last, by ``dag/run/map index``; None: it asked about none."""
        table = REQUESTS
        query = select(table.c.plan_id, table.c.batch_id).where(table.c.run == run).order_by(table.c.request_id.desc())
        with transaction(self._engine) as connection:
            row = connection.execute(query.limit(1)).first()
        return None if row is None else (row.plan_id, row.batch_id)

    def is_used(self, answer_id: int) -> bool:
        """True if a run acts on an answer."""
        with transaction(self._engine) as connection:
            return (
                connection.execute(select(ANSWER_USES.c.run).where(ANSWER_USES.c.answer_id == answer_id)).first()
                is not None
            )

    def rejections(self, cluster: str, since: datetime) -> tuple[Rejection, ...]:
        """Batches of a cluster whose last answer is a rejection, given since then, the newest first."""
        later = ANSWERS.alias("later")
        of_batch = (later.c.plan_id == ANSWERS.c.plan_id, later.c.batch_id == ANSWERS.c.batch_id)
        answered_again = exists().where(*of_batch, later.c.answer_id > ANSWERS.c.answer_id)
        who = (ANSWERS.c.answered_at.label("at"), ANSWERS.c.answered_by.label("by"), ANSWERS.c.comment)
        query = (
            select(ANSWERS.c.plan_id, ANSWERS.c.batch_id, *who)
            .join(PLANS, PLANS.c.plan_id == ANSWERS.c.plan_id)
            .where(PLANS.c.cluster == cluster, ANSWERS.c.decision == Decision.REJECTED.value)
            .where(ANSWERS.c.answered_at > since, ~answered_again, ~taken_back())
            .order_by(ANSWERS.c.answer_id.desc())
        )
        with transaction(self._engine) as connection:
            return tuple(from_row(row, Rejection) for row in connection.execute(query).mappings())

    def silences(self, cluster: str, now: datetime) -> tuple[Silence, ...]:
        """Batches of a cluster that nobody is asked about for now; see `pulsar_steward.ledger.silences.silences_in`."""
        return silences(self._engine, now, cluster)

    def plans_without(self, cluster: str) -> tuple[str, ...]:
        """Plans of a cluster, no rollbacks, whose batches are no questions and that no newer plan superseded."""
        back = exists().where(and_(BATCHES.c.plan_id == PLANS.c.plan_id, BATCHES.c.kind == ROLLBACK))
        superseded = exists().where(SUPERSESSIONS.c.plan_id == PLANS.c.plan_id)
        query = select(PLANS.c.plan_id).where(PLANS.c.cluster == cluster, PLANS.c.asked_by_batch.is_(None))
        with transaction(self._engine) as connection:
            found = connection.execute(query.where(~back, ~superseded).order_by(PLANS.c.sequence.desc()))
            return tuple(found.scalars())
