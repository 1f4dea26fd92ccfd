"""Batches that nobody is asked about, as a person said no: until when, by whom, and how that is taken back.

A rejection silences its content, a snooze and a never their goal. Taking one back permits nothing, so that anybody with
access to the ledger may, also by the command line: the next observation asks again.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import and_, exists, or_, select

from pulsar_steward.errors import NotInLedger
from pulsar_steward.ledger import tables
from pulsar_steward.ledger.chain import appending
from pulsar_steward.ledger.rows import Decision, from_row
from pulsar_steward.ledger.store import transaction
from pulsar_steward.ledger.waiting import of_batches, rows_of, same
from pulsar_steward.model.plan import ROLLBACK
from pulsar_steward.model.units import time_in_words
from pulsar_steward.policy.approval import ApprovalPolicy

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection, Engine, Select

SILENT = (Decision.REJECTED, Decision.SNOOZED, Decision.NEVER)
"""Decisions of a person after which the same is not asked for a while."""

LAST_WORDS = (*SILENT, Decision.APPROVED)
"""Decisions that take the place of a snooze or a never about the same batch; otherwise that still holds."""


class Silence(msgspec.Struct, frozen=True, kw_only=True):
    """An answer by which something is not asked for the time being.

    Attributes:
        answer_id: The answer.
        goal: Goal of the batch's question; None: it was no question by itself.
        by: Who answered.
        until: Its end; None: until it is taken back.
        until_worse: True if it ends as well when it gets worse.
        policy_entry: The policy entry that a never proposes, as YAML; empty: none.
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
    """Word of a person that what was silent may be asked again.

    Attributes:
        said_by: The person, as a phrase.
    """

    answer_id: int
    at: datetime
    said_by: str
    reason: str


def silences_in(connection: Connection, now: datetime, cluster: str | None = None) -> tuple[Silence, ...]:
    """Silences in force, the newest first; those of rejections by the policy under which was asked.

    Whether it got worse only the next observation can tell: a snooze counts until a question was asked in its place.
    """
    query = _answers(SILENT).order_by(tables.ANSWERS.c.answer_id.desc())
    if cluster is not None:
        query = query.where(tables.PLANS.c.cluster == cluster)
    rest = _Rest(connection)
    found = []
    for row in rows_of(connection, query):
        until = row["silent_until"]
        if row["decision"] == Decision.REJECTED.value:
            until = row["at"] + rest.of(row["policy_digest"])
        if until is None or now < until:
            texts = {name: row[name] or "" for name in ("by", "policy_entry")}
            found.append(from_row(row, Silence, until=until, until_worse=bool(row["until_worse"]), **texts))
    return tuple(found)


def silences(engine: Engine, now: datetime, cluster: str | None = None) -> tuple[Silence, ...]:
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
        LedgerError: If it could not be stored: it is as silent as before then.
    """
    answers, ends = tables.ANSWERS, tables.SILENCE_ENDS
    with appending(engine) as chain:
        row = chain.connection.execute(select(answers).where(answers.c.answer_id == end.answer_id)).mappings().first()
        if row is None or row["decision"] not in SILENT:
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


def _answers(decisions: tuple[Decision, ...]) -> Select[Any]:
    """Answers of these decisions that are the last word on their batch, and that nobody took back."""
    answers, plans, batches, questions = tables.ANSWERS, tables.PLANS, tables.BATCHES, tables.QUESTIONS
    later, again, asked = answers.alias("later"), questions.alias("again"), tables.REQUESTS
    replaced = exists().where(
        *same(later, answers, "plan_id", "batch_id"),
        later.c.answer_id > answers.c.answer_id,
        or_(later.c.decision.in_([each.value for each in LAST_WORDS]), answers.c.decision == Decision.REJECTED.value),
    )
    # What was snoozed until it gets worse is over once it was asked again, also where it got better since.
    asked_since = exists().where(
        again.c.cluster == plans.c.cluster, again.c.goal == questions.c.goal, again.c.at > answers.c.answered_at
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


class _Rest:
    """How long what was rejected rests, by the digest of the policy under which was asked."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._known: dict[str | None, timedelta] = {}

    def of(self, policy: str | None) -> timedelta:
        """Time from the rejection to when it may be asked again; the default where the policy was not recorded."""
        if policy not in self._known:
            found = select(tables.POLICIES.c.document).where(tables.POLICIES.c.digest == policy)
            document = self._connection.execute(found).scalar() or "{}"
            values = msgspec.json.decode(document, type=dict[str, Any]).get("approval", {})
            self._known[policy] = timedelta(minutes=values.get("ask_again_minutes", ApprovalPolicy().ask_again_minutes))
        return self._known[policy]
