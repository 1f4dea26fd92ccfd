"""Validity of a grant, checked on one connection: in an intent's transaction, and right before its call.

Nothing here is cached. The newest row that Steward dated is a lower bound of the current time, so that a worker whose
clock is behind carries out nothing that has expired.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select, union_all

from pulsar_steward.errors import Halted, LeaseLost, Refused
from pulsar_steward.ledger import tables
from pulsar_steward.ledger.chain import key_of_number
from pulsar_steward.ledger.halts import halt_in
from pulsar_steward.ledger.questions import why_over
from pulsar_steward.ledger.rows import Decision
from pulsar_steward.model.units import time_in_words

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import ColumnElement, Connection, Table

    from pulsar_steward.ledger.rows import Grant, Lease

_DATED = (
    tables.PLANS.c.created_at,
    tables.QUESTIONS.c.at,
    tables.QUESTION_ENDS.c.at,
    tables.CONFIRMATIONS.c.at,
    tables.REQUESTS.c.at,
    tables.ANSWER_USES.c.at,
    tables.INTENTS.c.at,
    tables.OUTCOMES.c.at,
    tables.PROOFS.c.at,
)
"""Times by the clocks of Steward's workers.

The time of an answer is none of them: Airflow reports it, or who can write there. Nor is that of a halt, which any
machine may write: one whose clock is ahead would let rest times and windows pass too early for all.
"""


def newest_row_in(connection: Connection) -> datetime | None:
    """Latest time that Steward wrote into the ledger, UTC; None: it is empty."""
    latest = union_all(*(select(func.max(column).label("at")) for column in _DATED)).subquery()
    newest: datetime | None = connection.execute(select(func.max(latest.c.at))).scalar()
    return newest


def present_in(connection: Connection, at: datetime) -> datetime:
    """Current time by a clock and the ledger: not earlier than the ledger's newest row."""
    return max(at, newest_row_in(connection) or at)


def require_standing(connection: Connection, grant: Grant, at: datetime) -> None:
    """Checks that nobody halted the cluster, and that the batch's question and its approvals stand.

    Args:
        connection: Connection to the ledger; for an intent, within its transaction.
        grant: The grant that is acted on.
        at: Current time by the caller's clock, UTC.

    Raises:
        Halted: If a person stopped all changes of the cluster.
        Refused: If the approval is no longer valid: expired, used by another run, withdrawn, or requested again since;
            or if the question has ended, or a newer plan superseded the plan.
    """
    if halt := halt_in(connection, grant.cluster):
        raise Halted(f"{halt.words} (`steward resume` ends it)")
    if over := why_over(connection, grant.plan_id, grant.batch_id):
        raise Refused(over)
    if present_in(connection, at) > grant.expires_at:
        until = time_in_words(grant.expires_at, seconds=True)
        raise Refused(f"the approval has expired: it was good until {until}; observe and ask again")
    uses = tables.ANSWER_USES
    for user in connection.execute(select(uses.c.run).where(uses.c.answer_id.in_(grant.answer_ids))).scalars():
        if user != grant.run:
            raise Refused(f"the approval was used already, by run {user}")
    _require_last_word(connection, grant)


def require_lease(connection: Connection, lease: Lease, at: datetime) -> None:
    """Checks that a writer still holds its cluster.

    Raises:
        LeaseLost: If another one does by now, or the lease expired.
    """
    table = tables.LEASES
    mine = (table.c.cluster == lease.cluster, table.c.holder == lease.holder, table.c.fence == lease.fence)
    expires_at = connection.execute(select(table.c.expires_at).where(*mine)).scalar()
    if expires_at is None:
        raise LeaseLost(f"another writer holds cluster {lease.cluster} by now")
    if expires_at <= at:
        until = time_in_words(expires_at, date=False, seconds=True)
        raise LeaseLost(f"the lease on cluster {lease.cluster} ran out at {until}")


def _require_last_word(connection: Connection, grant: Grant) -> None:
    """Checks that the grant's answers are the latest ones, and were given to the latest requests."""
    answers, requests = tables.ANSWERS, tables.REQUESTS
    given = select(answers.c.answer_id, answers.c.voice, answers.c.decision).where(*_of_run(answers, grant))
    last = {row.voice or 1: row for row in connection.execute(given.order_by(answers.c.answer_id))}
    if tuple(last[voice].answer_id for voice in sorted(last)) != grant.answer_ids:
        said = next((row.decision for row in last.values() if row.decision != Decision.APPROVED), Decision.APPROVED)
        raise Refused(f"a later answer took the approval's place: {Decision(said)}")
    asked = select(requests.c.request_id, requests.c.voice).where(*_of_run(requests, grant))
    asked_last = {row.voice or 1: row.request_id for row in connection.execute(asked.order_by(requests.c.request_id))}
    for voice, answer in last.items():
        if voice not in asked_last:
            raise Refused(f"nobody was asked for what was answered as word {voice}: the ledger holds no request of it")
        if _place(connection, answers, answer.answer_id) < _place(connection, requests, asked_last[voice]):
            raise Refused("it was asked for anew since the approval: the new question has to be answered")


def _of_run(table: Table, grant: Grant) -> tuple[ColumnElement[bool], ...]:
    return table.c.plan_id == grant.plan_id, table.c.batch_id == grant.batch_id, table.c.run == grant.run


def _place(connection: Connection, table: Table, number: Any) -> int:
    """Position of a row in the order in which all rows were added."""
    link = (tables.CHAIN.c.table_name == table.name, tables.CHAIN.c.row_key == key_of_number(number))
    return int(connection.execute(select(tables.CHAIN.c.sequence).where(*link)).scalar_one())
