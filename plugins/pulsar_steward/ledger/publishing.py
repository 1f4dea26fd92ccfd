"""Rows for questions that a plan begins, confirms and ends, added in the transaction that records the plan."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

import msgspec
from sqlalchemy import select

from pulsar_steward.ledger.rows import EndReason
from pulsar_steward.ledger.tables import CONFIRMATIONS, QUESTION_ENDS, QUESTIONS

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import RowMapping

    from pulsar_steward.ledger.chain import Appending
    from pulsar_steward.model.plan import Plan


class NewQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A batch that becomes a question of its own; see `pulsar_steward.ledger.rows.QuestionRow`."""

    batch_id: str
    content_digest: str
    goal: str


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """End of a question, to be recorded; see `pulsar_steward.ledger.rows.QuestionEnd`."""

    question_id: int
    reason: EndReason
    by_batch_id: str | None = None
    words: str


class QuestionChanges(msgspec.Struct, frozen=True, kw_only=True):
    """Effect of a plan on the cluster's questions.

    Attributes:
        asked: Its batches that are new questions.
        confirmed: Ids of the questions that it proposes unchanged.
        ended: Questions that end.
    """

    asked: tuple[NewQuestion, ...] = ()
    confirmed: tuple[int, ...] = ()
    ended: tuple[Ending, ...] = ()


def add_question_changes(chain: Appending, plan: Plan, changes: QuestionChanges, at: datetime) -> None:
    """Adds these rows, except for batches that are questions already, and for questions that have ended meanwhile."""
    connection = chain.connection
    asked = set(connection.execute(select(QUESTIONS.c.batch_id).where(QUESTIONS.c.plan_id == plan.plan_id)).scalars())
    for new in changes.asked:
        if new.batch_id not in asked:
            chain.add(
                QUESTIONS, {**msgspec.structs.asdict(new), "cluster": plan.cluster, "plan_id": plan.plan_id, "at": at}
            )
    for plan_id, questions in groupby(_standing(chain, changes.confirmed), key=lambda row: row["plan_id"]):
        batches = list(questions)
        row = {"question_id": batches[0]["question_id"], "plan_id": plan_id, "by_plan_id": plan.plan_id}
        names = msgspec.json.encode([each["batch_id"] for each in batches]).decode()
        chain.add(CONFIRMATIONS, {**row, "taken_at": plan.taken_at, "at": at, "batch_ids": names})
    ends = {each.question_id: each for each in changes.ended}
    for question in _standing(chain, tuple(ends)):
        end = ends[question["question_id"]]
        row = {**msgspec.structs.asdict(end), "reason": end.reason.value, "by_plan_id": plan.plan_id}
        chain.add(QUESTION_ENDS, {**row, "plan_id": question["plan_id"], "batch_id": question["batch_id"], "at": at})


def _standing(chain: Appending, question_ids: tuple[int, ...]) -> list[RowMapping]:
    """Rows of the given questions without an end, in order."""
    ended = select(QUESTION_ENDS.c.question_id)
    query = select(QUESTIONS).where(QUESTIONS.c.question_id.in_(question_ids), QUESTIONS.c.question_id.not_in(ended))
    return list(chain.connection.execute(query.order_by(QUESTIONS.c.question_id)).mappings().all())
