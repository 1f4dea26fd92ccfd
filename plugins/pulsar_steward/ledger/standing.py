"""Validity of a grant, checked on one connection: in an intent's transaction, and right before its call.

Nothing here is cached. The newest time that Steward wrote is a lower bound of the current time: so a worker with a slow
clock carries out no expired approval.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import func, literal, or_, select, union_all

from pulsar_steward.decoding import decode
from pulsar_steward.errors import Halted, LeaseLost, Refused
from pulsar_steward.ledger import tables
from pulsar_steward.ledger.batch_record import headers
from pulsar_steward.ledger.chain import place_of
from pulsar_steward.ledger.halts import halt_in
from pulsar_steward.ledger.rows import NOES, Decision, Lease, Noes, from_row
from pulsar_steward.model.units import seconds_in_words, time_in_words

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection, Table

    from pulsar_steward.ledger.cluster_names import KnownCluster
    from pulsar_steward.ledger.rows import Grant

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
"""Columns with times from the clocks of Steward's workers.

An answer's time is not one of them: it is from Airflow, or from a person who can write there. A halt's time is not one
either: any machine may write it, and one with a fast clock would end pauses and windows too early for all.
"""


TOLERATED = timedelta(minutes=1)
"""Lag of this machine's clock behind the ledger that is not reported."""


def newest_row_in(connection: Connection) -> datetime | None:
    """Latest time that Steward wrote into the ledger, UTC; None: it is empty."""
    return max((at for at, _ in _newest_rows(connection)), default=None)


class RowAhead(NamedTuple):
    """A row of the ledger with a time ahead of a clock, in words, and the remedy."""

    words: str
    remedy: str


def row_ahead(connection: Connection, now: datetime) -> RowAhead | None:
    """The ledger's newest row, if a clock is behind it by more than `TOLERATED`; else None.

    Args:
        connection: A connection to the ledger.
        now: Time by this machine's clock, UTC.
    """
    newest, table = max(_newest_rows(connection), default=(now, ""))
    if newest - now <= TOLERATED:
        return None
    dated = f"the ledger's newest row (in {table}) is dated {time_in_words(newest, seconds=True)}"
    ahead = seconds_in_words((newest - now).total_seconds(), rounded=True)
    return RowAhead(
        f"{dated}, {ahead} ahead of this machine's clock, and the later of the two decides whether an approval counts",
        "set the clocks of all machines right, and wait until then or begin a new ledger",
    )


def _newest_rows(connection: Connection) -> list[tuple[datetime, str]]:
    """Latest time in each column of `_DATED`, with its table's name; empty tables are left out."""
    found = union_all(*(select(func.max(column), literal(column.table.name)) for column in _DATED))
    return [(at, table) for at, table in connection.execute(found) if at is not None]


def present_in(connection: Connection, at: datetime) -> datetime:
    """Current time from a clock and the ledger: not earlier than the ledger's newest row."""
    return max(at, newest_row_in(connection) or at)


def require_standing(connection: Connection, grant: Grant, at: datetime) -> None:
    """Checks that nobody halted the cluster, that the batch's question is open, and that its approvals are valid.

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
        raise Halted(halt.words_for(grant.cluster.name))
    record = headers(connection, {grant.plan_id}).get((grant.plan_id, grant.batch_id))
    if record is None:
        raise Refused(f"the ledger holds no batch {grant.batch_id} of plan {grant.plan_id}")
    if record.over:
        raise Refused(record.over)
    if present_in(connection, at) > grant.expires_at:
        until = time_in_words(grant.expires_at, seconds=True)
        ahead = row_ahead(connection, datetime.now(UTC))
        why = f"{ahead.words}: {ahead.remedy}" if ahead else "observe and ask again"
        raise Refused(f"the approval has expired: it was good until {until}; {why}")
    uses = tables.ANSWER_USES
    for user in connection.execute(select(uses.c.run).where(uses.c.answer_id.in_(grant.answer_ids))).scalars():
        if user != grant.run:
            raise Refused(f"the approval was used already, by run {user}")
    _require_last_word(connection, grant)


def noes_since(connection: Connection, grant: Grant) -> Noes:
    """Changes and goals that people rejected or silenced since a grant's first approval, and since its first request.

    A no counts in any run, plan and question. It also counts after a person took it back: then the batch may be asked
    again, but earlier approvals stay invalid.

    Args:
        connection: Connection to the ledger; for an intent, within its transaction.
        grant: The grant that is acted on.
    """
    table, requests, first = tables.ANSWERS, tables.REQUESTS, min(grant.answer_ids)
    approved_at = select(table.c.answered_at).where(table.c.answer_id == first).scalar_subquery()
    asked_first = select(requests.c.request_id, requests.c.at).where(*_of_run(requests, grant))
    asked = connection.execute(asked_first.order_by(requests.c.request_id).limit(1)).one()
    # Later by record or by time of answer: a worker may be slow to record an approval or a no.
    since_approval = or_(table.c.answer_id > first, table.c.answered_at > approved_at)
    recorded_since = place_of(table, table.c.answer_id) > place_of(requests, asked.request_id)
    since_request = or_(recorded_since, table.c.answered_at > asked.at)
    return Noes(_noes(connection, since_approval, "approval"), _noes(connection, since_request, "question"))


def _noes(connection: Connection, since: ColumnElement[bool], ended: str) -> dict[str, str]:
    """Digests of the changes and goals of recorded noes, each with the words for it; the newest counts."""
    table = tables.ANSWERS
    is_no = table.c.decision.in_([each.value for each in NOES])
    query = select(table).where(since, is_no, table.c.contents.is_not(None)).order_by(table.c.answer_id)
    found: dict[str, str] = {}
    for row in connection.execute(query).mappings():
        when = time_in_words(row["answered_at"], seconds=True)
        words = (
            f"{row['answered_by']} said no to it ({row['decision']}) at {when}, in run {row['run']}: an earlier {ended}"
            " is void; it has to be asked again"
        )
        found.update(dict.fromkeys(decode(row["contents"], list[str]), words))
    return found


def require_lease(connection: Connection, lease: Lease, at: datetime) -> None:
    """Checks that a writer still holds its cluster.

    Raises:
        LeaseLost: If another writer holds it by now, or the lease expired.
    """
    table = tables.LEASES
    mine = (table.c.cluster == lease.cluster, table.c.holder == lease.holder, table.c.fence == lease.fence)
    expires_at = connection.execute(select(table.c.expires_at).where(*mine)).scalar()
    if expires_at is None:
        raise LeaseLost(f"another writer holds cluster {lease.cluster} by now")
    if expires_at <= at:
        until = time_in_words(expires_at, date=False, seconds=True)
        raise LeaseLost(f"the lease on cluster {lease.cluster} ran out at {until}")


def leases_of(connection: Connection, cluster: KnownCluster) -> list[Lease]:
    """Leases of a cluster, including expired ones: one for each name under which a lease was taken."""
    table = tables.LEASES
    theirs = or_(table.c.cluster == cluster.name, table.c.name_id.in_(cluster.name_ids))
    return [from_row(row, Lease) for row in connection.execute(select(table).where(theirs)).mappings()]


def _require_last_word(connection: Connection, grant: Grant) -> None:
    """Checks that the grant's answers are the latest ones, and belong to the text of the latest requests."""
    answers, requests = tables.ANSWERS, tables.REQUESTS
    given = select(answers.c.answer_id, answers.c.voice, answers.c.decision, answers.c.asked_digest)
    given = given.where(*_of_run(answers, grant)).order_by(answers.c.answer_id)
    last = {row.voice: row for row in connection.execute(given)}
    if tuple(last[voice].answer_id for voice in sorted(last)) != grant.answer_ids:
        said = next((row.decision for row in last.values() if row.decision != Decision.APPROVED), Decision.APPROVED)
        raise Refused(f"a later answer took the approval's place: {Decision(said)}")
    asked = select(requests.c.request_id, requests.c.voice, requests.c.asked_digest).where(*_of_run(requests, grant))
    asked_last = {row.voice: row for row in connection.execute(asked.order_by(requests.c.request_id))}
    answered = 0
    for voice in sorted(last):
        if voice not in asked_last:
            which = "the first approval" if voice == 1 else "the second approval"
            raise Refused(f"nobody was asked for {which}: the ledger holds an answer, and no request for it")
        question, answer = asked_last[voice], last[voice]
        requested = connection.execute(select(place_of(requests, question.request_id))).scalar_one()
        if requested < answered:
            raise Refused("the first approval was given anew since the second person was asked: start a new run")
        answered = connection.execute(select(place_of(answers, answer.answer_id))).scalar_one()
        if answered < requested:
            raise Refused("it was asked for anew since the approval: the new question has to be answered")
        if answer.asked_digest != question.asked_digest:
            raise Refused("the approval was not given to the text that was shown for this question: ask again")


def _of_run(table: Table, grant: Grant) -> tuple[ColumnElement[bool], ...]:
    return table.c.plan_id == grant.plan_id, table.c.batch_id == grant.batch_id, table.c.run == grant.run
