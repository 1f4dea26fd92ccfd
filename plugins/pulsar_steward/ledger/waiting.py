"""Questions that wait for an answer, approved batches, and running batches. Cannot write."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import select

from pulsar_steward.decoding import decode
from pulsar_steward.ledger import tables
from pulsar_steward.ledger.batch_record import BatchRecord, BatchState, of_batches
from pulsar_steward.ledger.rows import BatchName, from_row

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import Connection

    from pulsar_steward.ledger.rows import Lease

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
