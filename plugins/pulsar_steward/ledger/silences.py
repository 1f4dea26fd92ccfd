"""Batches that nobody is asked about, after a person's no, and how a person takes the no back.

A rejection silences its content; a snooze or a never silences its goal. Taking one back permits no change: the next
observation asks again. So each person with access to the ledger may do it, also by the command line.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import and_, exists, or_, select

from pulsar_steward.errors import LedgerTampered, NotInLedger
from pulsar_steward.ledger import tables
from pulsar_steward.ledger.batch_record import of_batches, rows_of, same
from pulsar_steward.ledger.chain import appending
from pulsar_steward.ledger.cluster_names import in_one_cluster, known_cluster
from pulsar_steward.ledger.policies import recorded_policy
from pulsar_steward.ledger.rows import NOES, Decision, from_row
from pulsar_steward.ledger.store import transaction
from pulsar_steward.model.plan import ROLLBACK
from pulsar_steward.model.units import time_in_words
from pulsar_steward.policy.recorded import RecordedPolicy

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection, Engine, Select

    from pulsar_steward.model.cluster import NamedCluster

LAST_WORDS = (*NOES, Decision.APPROVED)
"""Decisions that replace an earlier snooze or never for the same batch; after other decisions it stays in force."""


class Silence(msgspec.Struct, frozen=True, kw_only=True):
    """An answer after which something is not asked for a time.

    Attributes:
        answer_id: The answer.
        goal: Goal of the batch's question; None: the batch was no separate question.
        by: The person who answered.
        until: End of the silence; None: until it is taken back.
        until_worse: True if the silence also ends when the problem gets worse.
        policy_entry: Lines to copy into the policy, as YAML; empty but for the answer never.
    """

    answer_id: int
    cluster: str
    plan_id: str
    batch_id: str
    kind: str
    title: str
    goal: str | None
    decision: Decision
    by: str
    at: datetime
    until: datetime | None
    until_worse: bool
    comment: str
    policy_entry: str

    @property
    def words(self) -> str:
        """The silence in a sentence."""
        worse = ", or until it gets worse" if self.until_worse else ""
        end = "until it is taken back" if self.until is None else f"until {time_in_words(self.until)}{worse}"
        comment = f' "{self.comment}"' if self.comment else ""
        return (
            f"answer {self.answer_id}: {self.cluster}: {self.title} ({self.kind}): {self.decision} by {self.by} at"
            f" {time_in_words(self.at)}, {end}.{comment}"
        )


class SilenceEnd(msgspec.Struct, frozen=True, kw_only=True):
    """End of a silence: a person lets the batch be asked again.

    Attributes:
        said_by: The person, as a phrase.
    """

    answer_id: int
    at: datetime
    said_by: str
    reason: str


def silences_in(connection: Connection, now: datetime, cluster: NamedCluster | None = None) -> tuple[Silence, ...]:
    """Silences in force, newest first, of one cluster under all of its names, or of all clusters.

    A rejection's silence is as long as the policy of its request says. Only the next observation can tell if a snoozed
    problem got worse: the snooze counts until a new question for its goal is asked.
    """
    query = _answers(connection, NOES).order_by(tables.ANSWERS.c.answer_id.desc())
    if cluster is not None:
        query = query.where(tables.PLANS.c.cluster.in_(known_cluster(connection, cluster).ever))
    rest = cache(partial(_rest_of, connection))
    found = []
    for row in rows_of(connection, query):
        until = row["silent_until"]
        if row["decision"] == Decision.REJECTED.value:
            until = row["at"] + rest(row["policy_digest"])
        if until is None or now < until:
            texts = {name: row[name] or "" for name in ("by", "policy_entry")}
            found.append(from_row(row, Silence, until=until, until_worse=bool(row["until_worse"]), **texts))
    return tuple(found)


def silences(engine: Engine, now: datetime, cluster: NamedCluster | None = None) -> tuple[Silence, ...]:
    """Silences in force, of one cluster or of all; see `silences_in`.

    Raises:
        LedgerError: If the ledger cannot be read.
    """
    with transaction(engine) as connection:
        return silences_in(connection, now, cluster)


def take_back(engine: Engine, end: SilenceEnd) -> bool:
    """Records that a silence is over; False if it was taken back before.

    Raises:
        NotInLedger: If there is no such answer, or it silences nothing.
        LedgerError: If it could not be stored; then the silence stays in force.
    """
    answers, ends = tables.ANSWERS, tables.SILENCE_ENDS
    with appending(engine) as chain:
        row = chain.connection.execute(select(answers).where(answers.c.answer_id == end.answer_id)).mappings().first()
        if row is None or row["decision"] not in NOES:
            raise NotInLedger(
                f"answer {end.answer_id} silences nothing: `steward questions silent` lists those that do"
            )
        if chain.connection.execute(select(ends.c.answer_id).where(ends.c.answer_id == end.answer_id)).first():
            return False
        chain.add(ends, {**msgspec.structs.asdict(end), "plan_id": row["plan_id"], "batch_id": row["batch_id"]})
        return True


def taken_back() -> ColumnElement[bool]:
    """Condition that an answer was taken back."""
    return exists().where(tables.SILENCE_ENDS.c.answer_id == tables.ANSWERS.c.answer_id)


def _answers(connection: Connection, decisions: tuple[Decision, ...]) -> Select[Any]:
    """Answers with these decisions that no later answer replaced and nobody took back."""
    answers, plans, batches, questions = tables.ANSWERS, tables.PLANS, tables.BATCHES, tables.QUESTIONS
    later, again, asked = answers.alias("later"), questions.alias("again"), tables.REQUESTS
    replaced = exists().where(
        *same(later, answers, "plan_id", "batch_id"),
        later.c.answer_id > answers.c.answer_id,
        or_(later.c.decision.in_([each.value for each in LAST_WORDS]), answers.c.decision == Decision.REJECTED.value),
    )
    # A snooze ends once its goal was asked again, even if the problem got better since.
    asked_since = exists().where(
        in_one_cluster(connection, again.c.cluster, plans.c.cluster),
        again.c.goal == questions.c.goal,
        again.c.at > answers.c.answered_at,
    )
    policy = (
        select(asked.c.policy_digest)
        .where(*same(asked, answers, "plan_id", "batch_id", "run"))
        .order_by(asked.c.request_id.desc())
        .limit(1)
        .scalar_subquery()
    )
    names = (answers.c[name] for name in ("answer_id", "plan_id", "batch_id", "decision", "silent_until"))
    more = (answers.c[name] for name in ("until_worse", "comment", "policy_entry"))
    who = (answers.c.answered_by.label("by"), answers.c.answered_at.label("at"))
    query = of_batches(answers, *names, *more, *who, batches.c.title, questions.c.goal, policy.label("policy_digest"))
    return query.outerjoin(questions, and_(*same(questions, answers, "plan_id", "batch_id"))).where(
        answers.c.decision.in_([each.value for each in decisions]),
        batches.c.kind != ROLLBACK,
        ~replaced,
        ~taken_back(),
        ~and_(answers.c.decision == Decision.SNOOZED.value, asked_since),
    )


def _rest_of(connection: Connection, policy: str | None) -> timedelta:
    """Time from a rejection until it may be asked again; the default if the request's policy cannot be read."""
    try:
        recorded = RecordedPolicy() if policy is None else recorded_policy(connection, policy)
    except (NotInLedger, LedgerTampered):
        recorded = RecordedPolicy()
    return recorded.rest
