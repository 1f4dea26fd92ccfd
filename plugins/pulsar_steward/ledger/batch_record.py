"""Everything that the ledger holds about a batch, and the one state that follows from it. Cannot write.

Pages, reports, messages, metrics and the decision on a new plan all ask `BatchRecord` whether a question waits, whether
an approval counts, and what became of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import Select, and_, exists, or_, select, union

from pulsar_steward.ledger.chain import place_of
from pulsar_steward.ledger.rows import (
    NOES,
    BatchName,
    Decision,
    Outcome,
    Proof,
    QuestionEnd,
    QuestionRow,
    RecordedAnswer,
    Request,
    StepOutcome,
    from_row,
)
from pulsar_steward.ledger.tables import (
    ANSWER_USES,
    ANSWERS,
    BATCHES,
    INTENTS,
    OUTCOMES,
    PLANS,
    PROOFS,
    QUESTION_ENDS,
    QUESTIONS,
    REQUESTS,
    SUPERSESSIONS,
)
from pulsar_steward.model.units import time_in_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from sqlalchemy import ColumnElement, Connection, RowMapping, Table

    from pulsar_steward.ledger.rows import BatchKey


class BatchState(StrEnum):
    """State of a batch in a word, for pages, messages, reports and the decision on a new plan."""

    WAITING = "waiting"
    APPROVED = "approved"
    CHANGING = "changing"
    DONE = "done"
    STOPPED = "stopped"
    REJECTED = "rejected"
    SNOOZED = "snoozed"
    NEVER = "never asked"
    UNANSWERED = "no answer"
    SUPERSEDED = "superseded"
    ENDED = "question ended"
    ASKED_ELSEWHERE = "asked elsewhere"
    NOT_ASKED = "not asked"

    @property
    def is_open(self) -> bool:
        """True if it waits for an answer or to be carried out, or nobody was asked yet."""
        return self in {BatchState.NOT_ASKED, BatchState.WAITING, BatchState.APPROVED}

    @property
    def is_over(self) -> bool:
        """True if nothing more happens under the present question: it is neither open nor being carried out."""
        return not self.is_open and self is not BatchState.CHANGING


class BatchRecord(BatchName, frozen=True, kw_only=True):
    """A batch with all of its rows in the ledger, each kind oldest first.

    Attributes:
        asked_by_batch: True if each batch of its plan is a separate question; False for rollbacks.
        superseded_by: The newer plan that replaces its plan, or None.
        question: Its question; None: it is no separate question.
        end: The end of its question; None: the question is open.
        requests: Approval requests, of all runs.
        answers: Answers, of all runs.
        used: Ids of the answers that a run acts on.
        called: Ids of the answers under which a call was intended.
        outcomes: Ends of its steps, of all runs.
        proofs: Results of its verification, of all runs.
    """

    asked_by_batch: bool = True
    superseded_by: str | None = None
    question: QuestionRow | None = None
    end: QuestionEnd | None = None
    requests: tuple[Request, ...] = ()
    answers: tuple[RecordedAnswer, ...] = ()
    used: frozenset[int] = frozenset()
    called: frozenset[int] = frozenset()
    outcomes: tuple[StepOutcome, ...] = ()
    proofs: tuple[Proof, ...] = ()

    @property
    def over(self) -> str | None:
        """Reason why it must not be asked about or carried out any more; None: nothing ended it."""
        if self.superseded_by:
            newer = self.superseded_by
            return f"superseded by the newer plan {newer}: answer that one"
        if self.end is not None:
            return f"the question ended at {time_in_words(self.end.at)}: {self.end.words}"
        if self.asked_by_batch and self.question is None:
            return (
                f"nobody is asked about batch {self.batch_id} in plan {self.plan_id}: the same is asked in an earlier"
                " plan, or was rejected there"
            )
        return None

    def waiting(self, now: datetime) -> tuple[Request, ...]:
        """Requests that can still be answered.

        A task asks one question at a time: once it has asked another, its earlier request cannot be answered any more.
        """
        return () if self.over else tuple(each for each in self.requests if not each.closed and now < each.ends_at)

    def asked_by_another(self, run: str, now: datetime) -> str | None:
        """Another run that asks this question and can still get an answer, ``dag/run/map index``; or None.

        Rollbacks have no questions, so several runs may ask about the same one.

        Args:
            run: The run that wants to ask, ``dag/run/map index``; all of its tasks count as this run.
            now: Current time, UTC.
        """
        others = (each.run for each in self.waiting(now) if each.run.rpartition("/")[0] != run.rpartition("/")[0])
        return next(others, None) if self.question is not None else None

    def approval(self, now: datetime, besides: str | None = None) -> RecordedAnswer | None:
        """The newest approval that counts now, used or not; None: there is none.

        An approval counts no more after a later answer in its run, after a no in any run, once it has expired, and once
        its question is over.

        Args:
            now: Current time, UTC.
            besides: Approvals by this run, ``dag/run``, are left out.
        """
        if self.over:
            return None
        later: list[RecordedAnswer] = []
        for each in reversed(self.answers):
            replaced = any(answer.run == each.run or answer.decision in NOES for answer in later)
            approved = each.decision is Decision.APPROVED and each.step_ids and not replaced
            valid = each.expires_at is not None and now < each.expires_at
            if approved and valid and each.run.rpartition("/")[0] != besides:
                return each
            later.append(each)
        return None

    @property
    def approved(self) -> RecordedAnswer | None:
        """The newest approval of any step, whether it still counts or not."""
        return next((each for each in reversed(self.answers) if each.decision is Decision.APPROVED), None)

    def of_run(self, run: str) -> BatchRun:
        """Its rows of one run, ``dag/run/map index``."""
        proofs = [each for each in self.proofs if each.run == run]
        return BatchRun(
            record=self,
            run=run,
            answers=tuple(each for each in self.answers if each.run == run),
            outcomes=tuple(each for each in self.outcomes if each.run == run),
            proof=proofs[-1] if proofs else None,
        )

    def state(self, now: datetime) -> BatchState:
        """Its state at a time, UTC."""
        if self.waiting(now):
            return BatchState.WAITING
        if state := self._of_approval(now):
            return state
        decision = self.answers[-1].decision if self.answers else None
        if decision in _OF_REFUSAL:
            return _OF_REFUSAL[decision]
        if self.over is None:
            return BatchState.UNANSWERED if self.requests or self.answers else BatchState.NOT_ASKED
        closed = BatchState.ASKED_ELSEWHERE if self.superseded_by is None else BatchState.SUPERSEDED
        return BatchState.ENDED if self.end is not None else closed

    def _of_approval(self, now: datetime) -> BatchState | None:
        """State that follows from the newest approval; None: no approval, or it ended before any step was made."""
        counting = self.approval(now)
        given = counting or self.approved
        if given is None or not given.step_ids:
            return None
        ended = self.of_run(given.run).last
        if ended.keys() >= set(given.step_ids):
            done = all(ended[step_id].outcome is Outcome.DONE for step_id in given.step_ids)
            return BatchState.DONE if done else BatchState.STOPPED
        if counting is not None:
            return BatchState.CHANGING if given.answer_id in self.used or ended else BatchState.APPROVED
        expired = given == self.answers[-1] and not self.over
        return BatchState.STOPPED if ended or given.answer_id in self.called or expired else None


_OF_REFUSAL: Mapping[Decision | None, BatchState] = {
    Decision.REJECTED: BatchState.REJECTED,
    Decision.SNOOZED: BatchState.SNOOZED,
    Decision.NEVER: BatchState.NEVER,
    Decision.NO_ANSWER: BatchState.UNANSWERED,
    Decision.MALFORMED: BatchState.UNANSWERED,
}
"""State of a batch whose last answer has this decision, if no approval was acted on or counts."""


class BatchRun(msgspec.Struct, frozen=True, kw_only=True):
    """A batch in one run, ``dag/run/map index``: its answers, the ends of its steps, and its last proof, or None."""

    record: BatchRecord
    run: str
    answers: tuple[RecordedAnswer, ...] = ()
    outcomes: tuple[StepOutcome, ...] = ()
    proof: Proof | None = None

    @property
    def answer(self) -> RecordedAnswer | None:
        """The deciding answer: the first by person that is no approval, or else the last person's; None: no answer."""
        last = last_words(self.answers)
        refusing = (answer for answer in last if answer.decision is not Decision.APPROVED)
        return next(refusing, last[-1] if last else None)

    @property
    def approved(self) -> tuple[str, ...]:
        """Steps of the last approval; empty: nothing was approved."""
        return next((each.step_ids for each in reversed(self.answers) if each.decision is Decision.APPROVED), ())

    @property
    def last(self) -> Mapping[str, StepOutcome]:
        """The last outcome of each step that ended, by step id."""
        return {each.step_id: each for each in self.outcomes}

    @property
    def ended_waiting(self) -> bool:
        """True if its question ended before any step was tried, answered or not."""
        answer, record = self.answer, self.record
        waited = answer is None or answer.decision is Decision.APPROVED
        return bool(record.over) and not self.outcomes and not record.called and waited


def last_words(answers: Iterable[RecordedAnswer]) -> tuple[RecordedAnswer, ...]:
    """The last answer of each person, from a run's answers; the first person's comes first."""
    last = {answer.voice: answer for answer in answers}
    return tuple(last[voice] for voice in sorted(last))


Plans = Collection[str] | Select[Any]
"""Ids of plans, or a query for them."""


def batch_records(connection: Connection, plans: Plans) -> dict[BatchKey, BatchRecord]:
    """Batches of plans with all of their rows, in the order of the plans and of their batches."""
    requests, answers, outcomes, proofs = (
        _rows(connection, each, plans) for each in (REQUESTS, ANSWERS, OUTCOMES, PROOFS)
    )
    uses = select(ANSWER_USES.c.answer_id).where(ANSWER_USES.c.plan_id.in_(plans))
    calls = select(INTENTS.c.answer_id).where(INTENTS.c.plan_id.in_(plans))
    used, called = (frozenset(connection.execute(each.distinct()).scalars()) for each in (uses, calls))
    found = {}
    for key, record in headers(connection, plans).items():
        given = tuple(from_row(row, RecordedAnswer) for row in answers[key])
        ids = {each.answer_id for each in given}
        found[key] = msgspec.structs.replace(
            record,
            requests=tuple(from_row(row, Request) for row in requests[key]),
            answers=given,
            used=used & ids,
            called=called & ids,
            outcomes=tuple(from_row(row, StepOutcome) for row in outcomes[key]),
            proofs=tuple(from_row(row, Proof) for row in proofs[key]),
        )
    return found


def headers(connection: Connection, plans: Plans) -> dict[BatchKey, BatchRecord]:
    """As `batch_records`, by one query, without requests, answers, calls, outcomes and proofs."""
    of_question = tuple(QUESTIONS.c[name].label(f"question_{name}") for name in _QUESTION)
    of_end = tuple(QUESTION_ENDS.c[name].label(f"end_{name}") for name in _END)
    query = (
        select(BATCHES, PLANS.c.cluster, PLANS.c.asked_by_batch, SUPERSESSIONS.c.by_plan_id, *of_question, *of_end)
        .join(PLANS, PLANS.c.plan_id == BATCHES.c.plan_id)
        .outerjoin(SUPERSESSIONS, SUPERSESSIONS.c.plan_id == BATCHES.c.plan_id)
        .outerjoin(QUESTIONS, and_(*same(QUESTIONS, BATCHES, "plan_id", "batch_id")))
        .outerjoin(QUESTION_ENDS, QUESTION_ENDS.c.question_id == QUESTIONS.c.question_id)
        .where(BATCHES.c.plan_id.in_(plans))
        .order_by(PLANS.c.sequence, BATCHES.c.position)
    )
    return {
        (row["plan_id"], row["batch_id"]): from_row(
            row,
            BatchRecord,
            superseded_by=row["by_plan_id"],
            question=_part(row, "question", _QUESTION),
            end=_part(row, "end", _END),
        )
        for row in rows_of(connection, query)
    }


_QUESTION, _END = (kind.__struct_fields__ for kind in (QuestionRow, QuestionEnd))


def _part(row: RowMapping, kind: str, names: Sequence[str]) -> dict[str, Any] | None:
    """A joined row, from its columns; None: there is none."""
    return None if row[f"{kind}_question_id"] is None else {name: row[f"{kind}_{name}"] for name in names}


def open_batches(connection: Connection, now: datetime, plan_id: str | None = None) -> list[BatchRecord]:
    """Batches that may wait for an answer, be approved, or not have been asked yet; of all plans, or of one."""
    return list(batch_records(connection, open_plans(now) if plan_id is None else {plan_id}).values())


def open_plans(now: datetime) -> Select[Any]:
    """Query for plans with a request or an approval that has not expired, or with a question that nobody was asked."""
    asked = (exists().where(*same(each, QUESTIONS, "plan_id", "batch_id")) for each in (REQUESTS, ANSWERS, INTENTS))
    ended = exists().where(QUESTION_ENDS.c.question_id == QUESTIONS.c.question_id)
    found = union(
        select(REQUESTS.c.plan_id).where(REQUESTS.c.ends_at > now),
        select(ANSWERS.c.plan_id).where(ANSWERS.c.expires_at > now),
        select(QUESTIONS.c.plan_id).where(~ended, *(~each for each in asked)),
    ).subquery()
    return select(found.c.plan_id)


def ended_batches(connection: Connection, since: datetime) -> tuple[BatchRun, ...]:
    """Batches with a step or a verification that ended since `since`, in the run in which it ended."""
    recent = union(*(select(each.c.plan_id).where(each.c.at >= since) for each in (OUTCOMES, PROOFS))).subquery()
    found = []
    for record in batch_records(connection, select(recent.c.plan_id)).values():
        ends = [(each.run, each.at) for each in record.outcomes] + [(each.run, each.at) for each in record.proofs]
        found += [record.of_run(run) for run in dict.fromkeys(run for run, at in ends if at >= since)]
    return tuple(found)


def _requests() -> Select[Any]:
    """Requests, each with whether it was answered, or its task asked another question since."""
    later = REQUESTS.alias("later")
    answered = exists().where(
        *same(ANSWERS, REQUESTS, "plan_id", "batch_id", "run", "voice"),
        place_of(ANSWERS, ANSWERS.c.answer_id) > place_of(REQUESTS, REQUESTS.c.request_id),
    )
    asked_again = exists().where(*same(later, REQUESTS, "run", "voice"), later.c.request_id > REQUESTS.c.request_id)
    return select(REQUESTS, or_(answered, asked_again).label("closed"))


def _rows(connection: Connection, table: Table, plans: Plans) -> defaultdict[BatchKey, list[RowMapping]]:
    """Rows of plans by batch, oldest first."""
    query = _requests() if table is REQUESTS else select(table)
    found: defaultdict[BatchKey, list[RowMapping]] = defaultdict(list)
    oldest_first = query.where(table.c.plan_id.in_(plans)).order_by(*table.primary_key.columns)
    for row in rows_of(connection, oldest_first):
        found[row["plan_id"], row["batch_id"]].append(row)
    return found


def rows_of(connection: Connection, query: Select[Any]) -> Sequence[RowMapping]:
    """Rows of a query."""
    return connection.execute(query).mappings().all()


def same(table: Any, other: Any, *names: str) -> tuple[ColumnElement[bool], ...]:
    """Conditions that two tables' rows have the same values in these columns."""
    return tuple(table.c[name] == other.c[name] for name in names)


def of_batches(table: Any, *columns: Any) -> Select[Any]:
    """Query for rows with a plan and a batch, plus the plan's cluster and the batch's kind."""
    return (
        select(PLANS.c.cluster, BATCHES.c.kind, *columns)
        .select_from(table)
        .join(PLANS, PLANS.c.plan_id == table.c.plan_id)
        .join(BATCHES, and_(*same(BATCHES, table, "plan_id", "batch_id")))
    )
