"""Questions: batches that are asked separately, their confirmations and ends; who waits for what. Cannot write.

A question stands until a later observation writes its end, or its batch was carried out, which writes none. Rollbacks
have no questions: their batches stand until a newer plan supersedes their plan.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import exists, func, select

from pulsar_steward.decoding import decode
from pulsar_steward.ledger import tables
from pulsar_steward.ledger.batch_record import BatchRecord, BatchState, batch_records, headers, of_batches
from pulsar_steward.ledger.cluster_names import known_cluster
from pulsar_steward.ledger.rows import BatchName, QuestionEnd, Request, from_row
from pulsar_steward.ledger.silences import Silence, silences
from pulsar_steward.ledger.store import transaction
from pulsar_steward.ledger.tables import CONFIRMATIONS, QUESTION_ENDS, QUESTIONS, REQUESTS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from sqlalchemy import Connection, Engine

    from pulsar_steward.ledger.rows import BatchKey, Lease
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
        """Questions without an end, carried-out ones too, by any name that leads or led to a cluster, oldest first."""
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


ASKING_DAG = "pulsar_remediate"
"""The DAG that asks about published plans."""

ROLLBACK_DAG = "pulsar_rollback"
"""The DAG that takes a batch back; it asks by itself."""

ROLLBACK_IS_PAUSED = f"{ROLLBACK_DAG} is paused: a run of it stays queued, and asks nobody, until you unpause it"

UNASKED_AFTER = timedelta(minutes=20)
"""Time after which an unasked question is reported: by the usual schedule, it was published twice by then."""


class WaitingQuestion(BatchName, frozen=True, kw_only=True):
    """A batch with an approval request and no recorded answer yet.

    Attributes:
        run: The requesting run, ``dag/run/map index``.
        voice: Number of the approver: 1, or 2 for the second person.
        ends_at: Time limit of the answer; no answer by then is a rejection.
    """

    run: str
    voice: int
    asked_at: datetime
    ends_at: datetime


class UnaskedQuestion(BatchName, frozen=True, kw_only=True):
    """An open question that nobody was ever asked: no run recorded a request.

    Attributes:
        since: Time at which its plan was recorded and first published.
    """

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


def waiting_questions(batches: Iterable[BatchRecord], now: datetime) -> list[WaitingQuestion]:
    """Questions that wait for an answer, oldest first."""
    found = [(each, request) for each in batches for request in each.waiting(now)]
    return [
        WaitingQuestion(
            **_named(each), run=request.run, voice=request.voice, asked_at=request.at, ends_at=request.ends_at
        )
        for each, request in sorted(found, key=lambda pair: pair[1].request_id)
    ]


def unasked_questions(batches: Iterable[BatchRecord], now: datetime) -> list[UnaskedQuestion]:
    """Open questions that nobody was ever asked, oldest first."""
    return [
        UnaskedQuestion(**_named(each), since=each.question.at)
        for each in batches
        if each.question is not None and each.state(now) is BatchState.NOT_ASKED
    ]


def _named(batch: BatchRecord) -> dict[str, Any]:
    return {name: getattr(batch, name) for name in BatchName.__struct_fields__}


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
