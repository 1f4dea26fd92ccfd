"""Questions: batches that are asked separately, later observations that confirm them, and their ends. Cannot write.

A question is open until it has an end, which a later observation writes. Rollbacks have no questions: their batches
are open until a newer plan supersedes their plan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from sqlalchemy import exists, func, select

from pulsar_steward.ledger.batch_record import BatchRecord, batch_records, headers
from pulsar_steward.ledger.cluster_names import known_cluster
from pulsar_steward.ledger.rows import QuestionEnd, Request, from_row
from pulsar_steward.ledger.silences import Silence, silences
from pulsar_steward.ledger.store import transaction
from pulsar_steward.ledger.tables import CONFIRMATIONS, QUESTION_ENDS, QUESTIONS, REQUESTS

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from sqlalchemy import Engine

    from pulsar_steward.ledger.rows import BatchKey
    from pulsar_steward.model.cluster import NamedCluster
    from pulsar_steward.model.plan import Plan


class QuestionReader:
    """Reads questions. Every method raises `LedgerError` if the database cannot be read."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def over(self, plan_id: str, batch_id: str) -> str | None:
        """Reason why a batch must not be asked about or carried out any more; None: its question is open."""
        return self.all_over([(plan_id, batch_id)]).get((plan_id, batch_id))

    def all_over(self, batches: Collection[BatchKey]) -> dict[BatchKey, str]:
        """Reasons of `over` for the batches that have one, by one query."""
        with transaction(self._engine) as connection:
            found = headers(connection, {plan_id for plan_id, _ in batches})
        return {key: over for key in batches if key in found and (over := found[key].over)}

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
        of_batch = (table.c.plan_id == plan.plan_id, among)
        with transaction(self._engine) as connection:
            confirmed = connection.execute(select(func.max(table.c.taken_at)).where(*of_batch)).scalar()
        return max(plan.taken_at, confirmed or plan.taken_at)

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

    def silences(self, cluster: NamedCluster, now: datetime) -> tuple[Silence, ...]:
        """Batches of a cluster that nobody is asked about for now; see `pulsar_steward.ledger.silences.silences_in`."""
        return silences(self._engine, now, cluster)
