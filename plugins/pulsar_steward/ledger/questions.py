"""Questions: batches that are asked separately, later observations that confirm them, and their ends. Cannot write.

A question is open until it has an end. Rollbacks have no questions: their batches are open until a newer plan
supersedes their plan.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import msgspec
from sqlalchemy import exists, func, or_, select

from pulsar_steward.ledger.batch_record import BatchRecord, batch_records, why_over
from pulsar_steward.ledger.cluster_names import known_cluster
from pulsar_steward.ledger.rows import Decision, QuestionEnd, Request, from_row
from pulsar_steward.ledger.silences import Silence, silences, taken_back
from pulsar_steward.ledger.store import transaction
from pulsar_steward.ledger.tables import (
    ANSWERS,
    CONFIRMATIONS,
    PLANS,
    QUESTION_ENDS,
    QUESTIONS,
    REQUESTS,
)
from pulsar_steward.ledger.waiting import asked_by_another

if TYPE_CHECKING:
    from collections.abc import Collection

    from sqlalchemy import Engine

    from pulsar_steward.ledger.rows import BatchKey
    from pulsar_steward.model.cluster import NamedCluster
    from pulsar_steward.model.plan import Plan


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


class QuestionReader:
    """Reads questions. Every method raises `LedgerError` if the database cannot be read."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def over(self, plan_id: str, batch_id: str) -> str | None:
        """Reason for the end of a batch's question; None: it is open."""
        return self.all_over([(plan_id, batch_id)]).get((plan_id, batch_id))

    def all_over(self, batches: Collection[BatchKey]) -> dict[BatchKey, str]:
        """Reasons for the end of these batches' questions; open questions are left out."""
        with transaction(self._engine) as connection:
            return why_over(connection, batches)

    def standing(self, cluster: NamedCluster) -> tuple[BatchRecord, ...]:
        """Questions without an end, asked under any name that leads or led to a cluster, oldest first."""
        ended = exists().where(QUESTION_ENDS.c.question_id == QUESTIONS.c.question_id)
        with transaction(self._engine) as connection:
            names = known_cluster(connection, cluster).ever
            plans = select(QUESTIONS.c.plan_id).where(QUESTIONS.c.cluster.in_(names), ~ended)
            found = batch_records(connection, plans).values()
        return tuple(each for each in found if each.question is not None and each.end is None)

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
