"""State of a cluster's questions and rejections when a new plan is decided on, from the ledger."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, assert_never

from pulsar_steward.errors import NotInLedger
from pulsar_steward.ledger.rows import Decision
from pulsar_steward.model.content import content_digest, goal_of
from pulsar_steward.model.parts import parts_of
from pulsar_steward.orchestration.standing import AskedBatch, QuestionState, RejectedBatch, SilencedGoal
from pulsar_steward.policy.looser import loosened

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from pulsar_steward.ledger.questions import QuestionRow
    from pulsar_steward.ledger.read import LedgerReader
    from pulsar_steward.ledger.rows import RecordedAnswer, Request
    from pulsar_steward.ledger.silences import Silence
    from pulsar_steward.model.plan import Plan
    from pulsar_steward.policy.schema import Policy


class QuestionBook:
    """The questions of one cluster as they are at one time.

    Args:
        ledger: The ledger.
        cluster: The cluster.
        policy: The policy in force.
        now: Current time, UTC.
    """

    def __init__(self, ledger: LedgerReader, cluster: str, policy: Policy, now: datetime) -> None:
        self._ledger = ledger
        self._cluster = cluster
        self._policy = policy
        self._now = now
        self._plans: dict[str, Plan | None] = {}

    def standing(self) -> tuple[AskedBatch, ...]:
        """Questions that have not ended, oldest first; those that were carried out are left out."""
        found = [self._asked(question) for question in self._ledger.questions.standing(self._cluster)]
        return tuple(each for each in found if each is not None)

    def rejected(self) -> tuple[RejectedBatch, ...]:
        """Batches, of groups their parts, that were rejected so lately that they rest, the newest first."""
        since = self._now - timedelta(minutes=self._policy.approval.ask_again_minutes)
        found: list[RejectedBatch] = []
        for each in self._ledger.questions.rejections(self._cluster, since):
            plan = self._plan(each.plan_id)
            if plan is not None and not (batch := plan.batch(each.batch_id)).is_rollback:
                found.extend(
                    RejectedBatch(
                        plan_id=each.plan_id,
                        content=content_digest(plan, part),
                        batch=part,
                        at=each.at,
                        by=each.by or "",
                        comment=each.comment,
                    )
                    for part in parts_of(batch)
                )
        return tuple(found)

    def silenced(self) -> tuple[SilencedGoal, ...]:
        """Goals that somebody snoozed or never wants to be asked about, the newest answer first."""
        found = (self._silenced(each) for each in self._ledger.questions.silences(self._cluster, self._now))
        return tuple(each for each in found if each is not None)

    def _silenced(self, silence: Silence) -> SilencedGoal | None:
        """Goal of an answer; None: it silences its content alone, or its goal is not known any more."""
        match silence.decision:
            case Decision.SNOOZED | Decision.NEVER:
                plan = self._plan(silence.plan_id)
            case Decision.REJECTED | Decision.APPROVED | Decision.NO_ANSWER | Decision.MALFORMED:
                return None
            case _:
                assert_never(silence.decision)
        batch = None if plan is None else plan.batch(silence.batch_id)
        goal = silence.goal if batch is None else goal_of(batch)
        if goal is None:
            return None
        return SilencedGoal(
            plan_id=silence.plan_id,
            goal=goal,
            batch=batch,
            at=silence.at,
            by=silence.by,
            comment=silence.comment,
            until=silence.until,
            until_worse=silence.until_worse,
        )

    def older_plans(self) -> tuple[str, ...]:
        """Plans without questions that no newer plan superseded and of which nothing is being carried out."""
        return tuple(each for each in self._ledger.questions.plans_without(self._cluster) if not self._is_used(each))

    def _is_used(self, plan_id: str) -> bool:
        plan = self._plan(plan_id)
        if plan is None:
            return False
        return any(self._in_use(self._ledger.answers(plan_id, batch.batch_id)) for batch in plan.batches)

    def _asked(self, question: QuestionRow) -> AskedBatch | None:
        plan, request = self._plan(question.plan_id), self._ledger.questions.last_request(*_name(question))
        answers = self._ledger.answers(*_name(question))
        state = self._state(question, answers, request)
        if state is None:
            return None
        return AskedBatch(
            question_id=question.question_id,
            plan_id=question.plan_id,
            batch_id=question.batch_id,
            content=question.content_digest,
            goal=question.goal,
            batch=None if plan is None else plan.batch(question.batch_id),
            state=state,
            answerable=plan is not None and self._is_answerable(plan, question, request),
            requested=request is not None,
        )

    def _state(
        self, question: QuestionRow, answers: Sequence[RecordedAnswer], request: Request | None
    ) -> QuestionState | None:
        """State of a question; None: it was carried out, if in part."""
        if self._in_use(answers):
            return QuestionState.IN_USE
        if self._ledger.intents(*_name(question)):
            return None
        if self._approved(answers):
            return QuestionState.WAITING
        since = request.at if request else question.at
        unanswered = not any(answer.answered_at >= since for answer in answers)
        patience = timedelta(minutes=self._policy.approval.response_timeout_minutes)
        return QuestionState.WAITING if unanswered and self._now < since + patience else QuestionState.OVER

    def _approved(self, answers: Sequence[RecordedAnswer]) -> bool:
        """True if the last answer is an approval that counts, and what it covers has not come to an end."""
        last = answers[-1] if answers else None
        if last is None or last.decision is not Decision.APPROVED or not last.expires_at:
            return False
        return self._now < last.expires_at and not self._ended(last)

    def _in_use(self, answers: Sequence[RecordedAnswer]) -> bool:
        """True if a run acts on an approval that counts, and what it covers has not come to an end."""
        return self._approved(answers) and self._ledger.questions.is_used(answers[-1].answer_id)

    def _ended(self, answer: RecordedAnswer) -> bool:
        known = {outcome.step_id for outcome in self._ledger.outcomes(answer.plan_id, answer.batch_id)}
        return known.issuperset(answer.step_ids)

    def _is_answerable(self, plan: Plan, question: QuestionRow, request: Request | None) -> bool:
        """True if nothing keeps an approval from being carried out; `apply.gate.require_policies` looks at the same."""
        asked = () if request is None else self._ledger.requests(*_name(question), request.run)
        digests = {plan.policy_digest, *(each.policy_digest for each in asked)}
        return plan.planned_for is not None and all(map(self._is_not_looser, digests))

    def _is_not_looser(self, digest: str | None) -> bool:
        if digest is None:
            return False
        try:
            return not loosened(self._policy, self._ledger.policy(digest))
        except NotInLedger:
            return False

    def _plan(self, plan_id: str) -> Plan | None:
        """A recorded plan; None: it is in a format of another Steward."""
        if plan_id not in self._plans:
            self._plans[plan_id] = self._ledger.readable_plan(plan_id)
        return self._plans[plan_id]


def _name(question: QuestionRow) -> tuple[str, str]:
    return question.plan_id, question.batch_id
