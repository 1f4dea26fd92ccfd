"""Questions that wait for an answer, approved batches, and those that are carried out. Cannot write."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import and_, exists, func, select

from pulsar_steward.ledger import tables
from pulsar_steward.ledger.rows import Decision, from_row
from pulsar_steward.policy.approval import ApprovalPolicy

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from sqlalchemy import ColumnElement, Connection, RowMapping, Select

    from pulsar_steward.ledger.rows import Lease

BatchKind = tuple[str, str]
"""Cluster, and kind of a batch."""


class WaitingQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A batch that somebody is asked about, and of which no answer is recorded yet.

    Attributes:
        run: The requesting run, ``dag/run/map index``.
        voice: Number of the approver: 1, or 2 where a second person is asked.
        ends_at: When no answer becomes a rejection.
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


class RunningBatch(msgspec.Struct, frozen=True, kw_only=True):
    """A batch that is being carried out.

    Attributes:
        approved: Number of steps that were approved.
        ended: Number of them that came to an end in this run, whatever their outcome.
        lease_ends_at: Until when the run holds the cluster; it extends that as long as it lives.
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


def waiting_questions(connection: Connection, now: datetime) -> list[WaitingQuestion]:
    """Questions that wait for an answer, oldest first.

    Left out are those that ended, or are of superseded plans, as their answers change nothing any more, and those whose
    time is over.
    """
    asked, answers, newer, ends = tables.REQUESTS, tables.ANSWERS, tables.SUPERSESSIONS, tables.QUESTION_ENDS
    later = asked.alias("later")
    voice = func.coalesce(asked.c.voice, 1)
    answered = exists().where(
        *same(answers, asked, "plan_id", "batch_id", "run"),
        func.coalesce(answers.c.voice, 1) == voice,
        answers.c.answered_at >= asked.c.at,
    )
    asked_again = exists().where(
        *same(later, asked, "plan_id", "batch_id", "run"),
        func.coalesce(later.c.voice, 1) == voice,
        later.c.request_id > asked.c.request_id,
    )
    superseded = exists().where(newer.c.plan_id == asked.c.plan_id)
    ended = exists().where(*same(ends, asked, "plan_id", "batch_id"))
    query = (
        of_batches(asked, asked.c.plan_id, asked.c.batch_id, asked.c.run, asked.c.policy_digest)
        .add_columns(tables.BATCHES.c.title, tables.BATCHES.c.steps, asked.c.at.label("asked_at"), voice.label("voice"))
        .where(~answered, ~asked_again, ~superseded, ~ended)
        .order_by(asked.c.request_id)
    )
    found, patience = [], _Patience(connection)
    for row in rows_of(connection, query):
        ends_at = row["asked_at"] + patience.of(row["policy_digest"])
        if now < ends_at:
            found.append(from_row(row, WaitingQuestion, ends_at=ends_at))
    return found


def unused_approvals(connection: Connection, waiting: Collection[WaitingQuestion], now: datetime) -> Counter[BatchKind]:
    """Number of approved batches of which nothing is carried out yet, by cluster and kind.

    They are about to begin, or wait for a maintenance window or for another batch. What a second person is asked about,
    what was answered otherwise since, and what ended or ran out is none.
    """
    answers, ends, newer, uses = tables.ANSWERS, tables.QUESTION_ENDS, tables.SUPERSESSIONS, tables.ANSWER_USES
    later = answers.alias("later")
    answered_since = exists().where(
        *same(later, answers, "plan_id", "batch_id", "run"), later.c.answer_id > answers.c.answer_id
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
    """The batch that a lease's holder carries out; None: nobody holds the cluster, or no approval is used yet."""
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
    steps = msgspec.json.decode(row["step_ids"], type=tuple[str, ...])
    ended = connection.execute(select(outcomes.c.step_id).where(*of_run).distinct()).scalars().all()
    return from_row(row, RunningBatch, run=run, approved=len(steps), ended=len(ended), lease_ends_at=lease.expires_at)


class _Patience:
    """How long an answer is waited for, by the digest of the policy that was in force for the question."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._known: dict[str | None, timedelta] = {None: _minutes(None)}

    def of(self, policy: str | None) -> timedelta:
        """Time from the question to its end; the default where the policy was not recorded."""
        if policy not in self._known:
            found = select(tables.POLICIES.c.document).where(tables.POLICIES.c.digest == policy)
            self._known[policy] = _minutes(self._connection.execute(found).scalar())
        return self._known[policy]


def _minutes(document: str | None) -> timedelta:
    policy = msgspec.json.decode(document or "{}", type=dict[str, Any])
    default = ApprovalPolicy().response_timeout_minutes
    return timedelta(minutes=policy.get("approval", {}).get("response_timeout_minutes", default))


def rows_of(connection: Connection, query: Select[Any]) -> Sequence[RowMapping]:
    """Rows of a query."""
    return connection.execute(query).mappings().all()


def same(table: Any, other: Any, *names: str) -> tuple[ColumnElement[bool], ...]:
    """Conditions that two tables' rows have the same values in these columns."""
    return tuple(table.c[name] == other.c[name] for name in names)


def of_batches(table: Any, *columns: Any) -> Select[Any]:
    """Query of rows that name a plan and a batch, with the plan's cluster and the batch's kind."""
    plans, batches = tables.PLANS, tables.BATCHES
    return (
        select(plans.c.cluster, batches.c.kind, *columns)
        .select_from(table)
        .join(plans, plans.c.plan_id == table.c.plan_id)
        .join(batches, and_(*same(batches, table, "plan_id", "batch_id")))
    )
