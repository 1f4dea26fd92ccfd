"""State of a cluster's questions and rejections in the ledger, for the decision on a new plan."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, assert_never

import msgspec

from pulsar_steward.changes.risk import risk_of
from pulsar_steward.errors import NotInLedger
from pulsar_steward.ledger.rows import Decision
from pulsar_steward.model.cluster import NamedCluster
from pulsar_steward.model.content import content_digest, goal_of
from pulsar_steward.model.parts import parts_of
from pulsar_steward.model.risk import Risk
from pulsar_steward.notify.links import QUESTION_TASKS
from pulsar_steward.orchestration.run_states import APPLY_TASK
from pulsar_steward.orchestration.standing import AskedBatch, QuestionState, RejectedBatch, SilencedGoal
from pulsar_steward.policy.looser import loosened

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from pulsar_steward.ledger.questions import QuestionRow
    from pulsar_steward.ledger.read import LedgerReader
    from pulsar_steward.ledger.rows import BatchKey, RecordedAnswer
    from pulsar_steward.ledger.silences import Silence
    from pulsar_steward.ledger.waiting import WaitingQuestion
    from pulsar_steward.model.plan import Plan
    from pulsar_steward.policy.schema import Policy


def nobody_knows(run: str, task_id: str) -> bool:  # noqa: ARG001 - as `RunStates.has_ended`
    """Always False: used without Airflow, where the ledger alone limits how long a question waits."""
    return False


class QuestionBook:
    """The questions of one cluster at one time, under all of the cluster's names.

    Contents are converted to the present name of the cluster, so that they can be compared with a new plan's.

    Args:
        ledger: The ledger.
        cluster: The cluster, under its name in the new plan.
        policy: The policy in force.
        now: Current time, UTC.
        has_ended: Whether a task of a run has ended or is gone (`pulsar_steward.orchestration.run_states.RunStates`).
    """

    def __init__(
        self,
        ledger: LedgerReader,
        cluster: NamedCluster,
        policy: Policy,
        now: datetime,
        has_ended: Callable[[str, str], bool] = nobody_knows,
    ) -> None:
        self._ledger = ledger
        self._cluster = cluster
        self._known = ledger.known(cluster)
        self._policy = policy
        self._now = now
        self._has_ended = has_ended
        self._plans: dict[str, Plan | None] = {}

    def standing(self) -> tuple[AskedBatch, ...]:
        """Questions that have not ended, oldest first, without those that were carried out.

        A question under another name is over if nobody was asked within the response timeout: that name may not be
        observed any more.
        """
        waiting: dict[BatchKey, list[WaitingQuestion]] = {}
        for each in self._ledger.questions.waiting(self._now):
            waiting.setdefault((each.plan_id, each.batch_id), []).append(each)
        unasked = {(each.plan_id, each.batch_id) for each in self._ledger.questions.unasked()}
        found = []
        for question in self._ledger.questions.standing(self._cluster):
            name = (question.plan_id, question.batch_id)
            other = question.cluster != self._cluster.name
            if other and not self._is_here(question.cluster, question.plan_id):
                continue
            if name in unasked:
                forgotten = other and self._now - question.at >= self._patience
                found.append(self._described(question, QuestionState.OVER if forgotten else QuestionState.UNASKED))
            elif (asked := self._asked(question, waiting.get(name, ()))) is not None:
                found.append(asked)
        return tuple(found)

    def rejected(self) -> tuple[RejectedBatch, ...]:
        """Batches that were rejected within `approval.ask_again_minutes`, newest first; a group part by part."""
        since = self._now - timedelta(minutes=self._policy.approval.ask_again_minutes)
        found: list[RejectedBatch] = []
        for each in self._ledger.questions.rejections(self._cluster, since):
            plan = self._plan(each.plan_id)
            if plan is not None and not (batch := plan.batch(each.batch_id)).is_rollback:
                found.extend(
                    RejectedBatch(
                        plan_id=each.plan_id,
                        content=content_digest(self._as_here(plan), part),
                        batch=part,
                        at=each.at,
                        by=each.by or "",
                        comment=each.comment,
                    )
                    for part in parts_of(batch)
                )
        return tuple(found)

    def silenced(self) -> tuple[SilencedGoal, ...]:
        """Goals that somebody snoozed or answered with "never", the newest answer first."""
        silences = self._ledger.questions.silences(self._cluster, self._now)
        found = (self._silenced(each) for each in silences if self._is_here(each.cluster, each.plan_id))
        return tuple(each for each in found if each is not None)

    def _silenced(self, silence: Silence) -> SilencedGoal | None:
        """Goal that an answer silences; None: it silences one content only, or the goal is not known any more."""
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

    def _asked(self, question: QuestionRow, waiting: Sequence[WaitingQuestion]) -> AskedBatch | None:
        """A question that a person was asked; None: it was carried out, at least in part.

        Args:
            question: The question.
            waiting: Its requests that may still be answered.
        """
        name = (question.plan_id, question.batch_id)
        answers = self._ledger.answers(*name)
        if self._in_use(answers):
            return self._described(question, QuestionState.IN_USE)
        if self._ledger.intents(*name):
            return None
        tasks = [(each.run, QUESTION_TASKS[each.voice]) for each in waiting]
        if self._approved(answers):
            # An earlier task of the same run may be asking a second person.
            tasks.append((answers[-1].run, APPLY_TASK))
        for run, task in tasks:
            if not self._has_ended(run, task):
                return self._described(question, QuestionState.WAITING, run=run)
        return self._described(question, QuestionState.OVER, gone=tasks[-1][0] if tasks else None)

    def _described(
        self, question: QuestionRow, state: QuestionState, *, run: str | None = None, gone: str | None = None
    ) -> AskedBatch:
        plan = self._plan(question.plan_id)
        batch = None if plan is None else plan.batch(question.batch_id)
        content = question.content_digest
        if plan is not None and batch is not None and content == content_digest(plan, batch):
            content = content_digest(self._as_here(plan), batch)
        return AskedBatch(
            question_id=question.question_id,
            plan_id=question.plan_id,
            batch_id=question.batch_id,
            under=None if question.cluster == self._cluster.name else question.cluster,
            content=content,
            goal=question.goal,
            batch=batch,
            state=state,
            answerable=plan is not None and self._is_answerable(plan, question, run),
            risk=Risk.LOW if plan is None or batch is None else risk_of(plan, batch).level,
            gone=gone,
        )

    @property
    def _patience(self) -> timedelta:
        return timedelta(minutes=self._policy.approval.response_timeout_minutes)

    def _is_here(self, name: str, plan_id: str) -> bool:
        """True if a plan under a name is for this cluster; for an unreadable plan, if the name leads here now."""
        plan = self._plan(plan_id)
        cluster = NamedCluster(name) if plan is None else plan.named_cluster
        return self._cluster.is_same(cluster) or self._known.has(cluster)

    def _as_here(self, plan: Plan) -> Plan:
        """A plan for this cluster, with the cluster's present name and identity."""
        if not self._is_here(plan.cluster, plan.plan_id):
            return plan
        identity = self._cluster.identity or plan.planned_for or msgspec.UNSET
        return msgspec.structs.replace(plan, cluster=self._cluster.name, pulsar_cluster=identity)

    def _approved(self, answers: Sequence[RecordedAnswer]) -> bool:
        """True if the last answer is a valid approval, and at least one of its steps has no outcome yet."""
        last = answers[-1] if answers else None
        if last is None or last.decision is not Decision.APPROVED or not last.expires_at:
            return False
        return self._now < last.expires_at and not self._ended(last)

    def _in_use(self, answers: Sequence[RecordedAnswer]) -> bool:
        """True if a run is carrying out a valid approval, and at least one of its steps has no outcome yet."""
        return self._approved(answers) and self._ledger.questions.is_used(answers[-1].answer_id)

    def _ended(self, answer: RecordedAnswer) -> bool:
        known = {outcome.step_id for outcome in self._ledger.outcomes(answer.plan_id, answer.batch_id)}
        return known.issuperset(answer.step_ids)

    def _is_answerable(self, plan: Plan, question: QuestionRow, run: str | None) -> bool:
        """True if an approval could be carried out; `apply.gate.require_policies` checks the same.

        The policy of another name is not checked here: the observation under that name checks it.
        """
        if plan.cluster != self._cluster.name:
            return plan.planned_for is not None
        asked = () if run is None else self._ledger.requests(question.plan_id, question.batch_id, run)
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
        """A recorded plan; None: another version of Steward wrote it, in another format."""
        if plan_id not in self._plans:
            self._plans[plan_id] = self._ledger.readable_plan(plan_id)
        return self._plans[plan_id]
