"""State of a cluster's questions and rejections in the ledger, for the decision on a new plan."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.changes.risk import risk_of
from pulsar_steward.errors import NotInLedger
from pulsar_steward.ledger.batch_record import BatchState
from pulsar_steward.ledger.rows import Decision
from pulsar_steward.model.cluster import NamedCluster
from pulsar_steward.model.plan import Batch, content_digest, covered_by_rejection, goal_of, parts_of
from pulsar_steward.model.risk import Risk
from pulsar_steward.model.units import time_in_words
from pulsar_steward.notify.compose import QUESTION_TASKS
from pulsar_steward.orchestration.run_states import APPLY_TASK
from pulsar_steward.policy.looser import loosened

if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsar_steward.ledger.batch_record import BatchRecord
    from pulsar_steward.ledger.read import LedgerReader
    from pulsar_steward.ledger.rows import QuestionRow
    from pulsar_steward.model.plan import Plan
    from pulsar_steward.policy.schema import Policy


class AskedBatch(msgspec.Struct, frozen=True, kw_only=True):
    """A question that has not ended.

    Attributes:
        under: Another name of the cluster under which it is asked; None: the name in the new plan.
        content: Digest of its batch's content, converted to the cluster's name in the new plan.
        batch: The batch; None: another version recorded it in a format that this one does not read.
        state: Its state; one that waits in the ledger, but not in Airflow, has no answer.
        answerable: True if its approval could still be carried out. False if the policy is looser by now than the one
            it was asked under.
        risk: Risk with which it is asked; the policy's rules for this level apply to its approval.
        gone: The run whose task should wait for the answer, or carry it out, but has ended or does not exist any more;
            None: no task is missing.
    """

    question_id: int
    plan_id: str
    batch_id: str
    under: str | None = None
    content: str
    goal: str
    batch: Batch | None
    state: BatchState
    answerable: bool = True
    risk: Risk
    gone: str | None = None

    @property
    def is_answerable(self) -> bool:
        """True if it is open, and its approval could be carried out."""
        return self.state.is_open and self.answerable


class RejectedBatch(msgspec.Struct, frozen=True, kw_only=True):
    """A batch that a person rejected, in any plan; each part of a rejected group is one.

    Attributes:
        content: Digest of the steps that the rejection covers (`pulsar_steward.model.plan.covered_by_rejection`), with
            the cluster's present name.
        batch: The whole batch.
    """

    plan_id: str
    content: str
    batch: Batch
    at: datetime
    by: str = ""
    comment: str = ""

    @property
    def words(self) -> str:
        """Person, time and reason of the rejection."""
        where = f"at {time_in_words(self.at)}{_by(self.by)} (plan {self.plan_id})"
        return f"the same was rejected {where}{_said(self.comment)}"


class SilencedGoal(msgspec.Struct, frozen=True, kw_only=True):
    """A goal that nobody is asked about, with any content: a person snoozed it, or answered with "never".

    Attributes:
        goal: `pulsar_steward.model.plan.goal_of` the batch.
        batch: The batch that was asked about; None: it cannot be read any more.
        until: The end of a snooze; None: until the answer is taken back.
        until_worse: True if the snooze also ends when the problem gets worse.
    """

    plan_id: str
    goal: str
    batch: Batch | None
    at: datetime
    by: str = ""
    comment: str = ""
    until: datetime | None = None
    until_worse: bool = False

    @property
    def words(self) -> str:
        """Person, time, end and reason of the silence."""
        where = f"at {time_in_words(self.at)}{_by(self.by)} (plan {self.plan_id})"
        if self.until is None:
            return f"never to be asked, said {where}{_said(self.comment)}"
        worse = ", or until it gets worse" if self.until_worse else ""
        return f"snoozed {where} until {time_in_words(self.until)}{worse}{_said(self.comment)}"


def _by(person: str) -> str:
    return f" by {person}" if person else ""


def _said(comment: str) -> str:
    return f' "{comment}"' if comment else ""


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
        self._silences = ledger.questions.silences(cluster, now)

    def standing(self) -> tuple[AskedBatch, ...]:
        """Questions that have not ended, oldest first, without those that were carried out.

        A question under another name is over if nobody was asked within the response timeout: that name may not be
        observed any more.
        """
        standing = self._ledger.questions.standing(self._cluster)
        found = (self._asked(each, each.question) for each in standing if each.question is not None)
        return tuple(each for each in found if each is not None)

    def _asked(self, record: BatchRecord, question: QuestionRow) -> AskedBatch | None:
        """A question that has not ended; None: it was carried out, at least in part, or is about another cluster."""
        state, run, gone = record.state(self._now), None, None
        other = record.cluster != self._cluster.name
        if other and not self._is_here(record.cluster, record.plan_id):
            return None
        if state is BatchState.NOT_ASKED:
            patience = timedelta(minutes=self._policy.approval.response_timeout_minutes)
            state = BatchState.UNANSWERED if other and self._now - question.at >= patience else state
        elif state is not BatchState.CHANGING:
            if record.called:
                return None
            tasks = [(each.run, QUESTION_TASKS[each.voice]) for each in record.waiting(self._now)]
            if state.is_open and (approval := record.approval(self._now)):
                # An earlier task of the same run may be asking a second person.
                tasks.append((approval.run, APPLY_TASK))
            run = next((of_task for of_task, task in tasks if not self._has_ended(of_task, task)), None)
            if tasks and run is None:
                state, gone = BatchState.UNANSWERED, tasks[-1][0]
        plan, content = self._plan(record.plan_id), question.content_digest
        batch = None if plan is None else plan.batch(record.batch_id)
        if plan is not None and batch is not None and content == content_digest(plan, batch):
            content = content_digest(self._as_here(plan), batch)
        return AskedBatch(
            question_id=question.question_id,
            plan_id=record.plan_id,
            batch_id=record.batch_id,
            under=record.cluster if other else None,
            content=content,
            goal=question.goal,
            batch=batch,
            state=state,
            answerable=plan is not None and self._is_answerable(plan, record, run),
            risk=Risk.LOW if plan is None or batch is None else risk_of(plan, batch).level,
            gone=gone,
        )

    def rejected(self) -> tuple[RejectedBatch, ...]:
        """Batches whose rejection is still respected, newest first; a group part by part."""
        return tuple(
            RejectedBatch(
                plan_id=each.plan_id,
                content=content_digest(self._as_here(plan), covered_by_rejection(part)),
                batch=part,
                at=each.at,
                by=each.by,
                comment=each.comment,
            )
            for each in self._silences
            if each.decision is Decision.REJECTED and (plan := self._plan(each.plan_id)) is not None
            for part in parts_of(plan.batch(each.batch_id))
        )

    def silenced(self) -> tuple[SilencedGoal, ...]:
        """Goals that somebody snoozed or answered with "never", the newest answer first."""
        found = []
        for each in self._silences:
            if each.decision is Decision.REJECTED or not self._is_here(each.cluster, each.plan_id):
                continue
            plan = self._plan(each.plan_id)
            batch = None if plan is None else plan.batch(each.batch_id)
            goal = each.goal if batch is None else goal_of(batch)
            if goal is not None:  # else it is not known any more
                found.append(
                    SilencedGoal(
                        plan_id=each.plan_id,
                        goal=goal,
                        batch=batch,
                        at=each.at,
                        by=each.by,
                        comment=each.comment,
                        until=each.until,
                        until_worse=each.until_worse,
                    )
                )
        return tuple(found)

    def _is_here(self, name: str, plan_id: str) -> bool:
        """True if a plan under a name is for this cluster; for an unreadable plan, if the name leads here now."""
        plan = self._plan(plan_id)
        cluster = NamedCluster(name) if plan is None else plan.named_cluster
        return self._cluster.is_same(cluster) or self._known.has(cluster)

    def _as_here(self, plan: Plan) -> Plan:
        """A plan for this cluster, with the cluster's present name and identity."""
        if not self._is_here(plan.cluster, plan.plan_id):
            return plan
        identity = self._cluster.identity or plan.pulsar_cluster
        return msgspec.structs.replace(plan, cluster=self._cluster.name, pulsar_cluster=identity)

    def _is_answerable(self, plan: Plan, record: BatchRecord, run: str | None) -> bool:
        """True if an approval could be carried out; `apply.gate.require_policies` checks the same.

        The policy of another name is not checked here: the observation under that name checks it.
        """
        if plan.cluster != self._cluster.name:
            return True
        digests = {plan.policy_digest, *(each.policy_digest for each in record.requests if each.run == run)}
        return all(map(self._is_not_looser, digests))

    def _is_not_looser(self, digest: str) -> bool:
        try:
            return not loosened(self._policy, self._ledger.policy(digest))
        except NotInLedger:
            return False

    def _plan(self, plan_id: str) -> Plan | None:
        """A recorded plan; None: another version of Steward wrote it, in another format."""
        if plan_id not in self._plans:
            self._plans[plan_id] = self._ledger.readable_plan(plan_id)
        return self._plans[plan_id]
