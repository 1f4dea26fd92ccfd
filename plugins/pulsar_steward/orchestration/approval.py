"""The operator that requests a person's approval of one batch and writes the answer into the ledger.

It neither skips nor stops other tasks: the gate alone decides what may be changed, from the ledger.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowFailException, AirflowSkipException, conf
from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk.definitions.param import ParamsDict

from pulsar_steward.errors import Refused
from pulsar_steward.ledger.rows import Answer, Decision, Origin
from pulsar_steward.orchestration.question_form import APPROVE, QUESTION, REJECT, form_of, question_field
from pulsar_steward.orchestration.question_trigger import QuestionTrigger, is_end
from pulsar_steward.orchestration.shown import ShownQuestion, asked_digest, put

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from airflow.sdk import Context

    from pulsar_steward.orchestration.approval_response import ApprovalQuestion
    from pulsar_steward.orchestration.batches import BatchRef
    from pulsar_steward.orchestration.context import TaskContext

OBSERVE_DAG = "pulsar_observe"
"""The DAG whose published plans start ``pulsar_remediate``."""


class ApproveBatch(HITLOperator):
    """Defers the task until a person answered, or until the policy's timeout, which is a rejection.

    Where the question ends in the ledger meanwhile, the task is skipped, and leaves the list of required actions.

    Args:
        batch: ``{"plan_id": ..., "batch_id": ..., "label": ...}``; everything else is read from the ledger, the
            cluster too, so that what is shown is what is recorded.
        voice: 1, or 2 for the second person, who is asked only where the policy requires one and the first approved.
    """

    template_fields: Sequence[str] = ("batch",)

    def __init__(self, *, batch: Any, voice: int = 1, **kwargs: Any) -> None:
        super().__init__(subject="", options=[APPROVE, REJECT], defaults=REJECT, **kwargs)
        self.batch = batch
        self.voice = voice

    def execute(self, context: Context) -> None:
        """Shows the plan's batch, records what is shown as the approval request, and waits.

        Raises:
            AirflowFailException: If Airflow still shows an earlier question of this task; then nobody is asked.
        """
        from pulsar_steward.orchestration import batches
        from pulsar_steward.orchestration.context import open_context_of_plan
        from pulsar_steward.outside_text import shown

        ref, requester, origin = batches.BatchRef.read(self.batch), requested_by(context), origin_of(context)
        with open_context_of_plan(ref.plan_id, run_key(context)) as task:
            plan = task.ledger.plan(ref.plan_id)
            batch, policy = plan.batch(ref.batch_id), task.policy.approval
            if over := task.ledger.questions.over(plan.plan_id, batch.batch_id):
                raise AirflowSkipException(f"nobody is asked: {shown(over)}")
            asked = task.question(plan, batch.batch_id, self.voice, requester, origin)
            if self.voice > 1 and (asked.terms(policy).people < self.voice or asked.first is None):
                raise AirflowSkipException("no second person has to be asked")
            now = task.clock()  # before it is shown, so that no answer is dated before the request
            self._write(task, asked, now)
            digest = self._show(context, asked, task.policy.digest)
            if digest is None:
                _leave(task, self.voice, now)
                raise AirflowFailException(
                    "Airflow still shows an earlier question for this task, and a task cannot replace it: nobody is"
                    f" asked. Start a new run of {context['ti'].dag_id}"
                )
            try:
                task.ledger_writer.record_request(
                    plan,
                    batch.batch_id,
                    task.run,
                    now,
                    voice=self.voice,
                    requested_by=requester,
                    origin=origin,
                    policy=task.policy,
                    asked_digest=digest,
                )
            except Refused as refused:
                raise AirflowSkipException(f"nobody is asked here: {shown(refused)}") from refused
        trigger = self._trigger(ref, context, policy.waits_until(now))
        self.defer(trigger=trigger, method_name="execute_complete")

    def _write(self, task: TaskContext, asked: ApprovalQuestion, now: datetime) -> None:
        """Writes the text and the form of a question."""
        from pulsar_steward.report import approval
        from pulsar_steward.report.what_changed import former_of
        from pulsar_steward.runtime.installed_airflow import installed_airflow

        plan, batch = asked.plan, asked.batch
        self.subject = approval.subject(plan, batch, second=self.voice > 1)
        self.body = approval.body(
            plan,
            batch,
            task.policy,
            first=asked.first,
            former=former_of(task.ledger, plan, batch),
            now=now,
            page=_page_of(plan.plan_id, batch.batch_id),
        )
        self.options = list(asked.options)
        if (airflow := installed_airflow()) is not None:
            self.options = self.options[: airflow.most_answers]
        self.params = ParamsDict(form_of(self.options, asked.steps, asked.namespaces, approval.labels(batch)))
        users = asked.terms(task.policy.approval).users
        self.assigned_users = None if users is None else [{"id": user, "name": user} for user in sorted(users)]

    def _show(self, context: Context, asked: ApprovalQuestion, policy_digest: str) -> str | None:
        """Has Airflow show the question, with its digest in the form.

        Returns:
            Digest of the question, if Airflow shows this one, written now or earlier; None: Airflow shows another one.
        """
        digest = asked_digest(self._question(), asked, policy_digest)
        self.params[QUESTION] = question_field(digest)
        shown = put(context["task_instance"].id, self._question())
        digest = asked_digest(shown, asked, policy_digest)
        return digest if shown.carried == digest else None

    def _question(self) -> ShownQuestion:
        return ShownQuestion(
            subject=self.subject,
            body=self.body or "",
            options=self.options,
            fields=self.serialized_params,
            users=[{"id": user["id"], "name": user["name"]} for user in self.assigned_users or ()],
        )

    def _trigger(self, ref: BatchRef, context: Context, until: datetime) -> QuestionTrigger:
        return QuestionTrigger(
            plan_id=ref.plan_id,
            batch_id=ref.batch_id,
            ti_id=context["task_instance"].id,
            options=self.options,
            defaults=self.defaults,
            params=self.serialized_params,
            multiple=self.multiple,
            timeout_datetime=until,
        )

    def execute_complete(self, context: Context, event: dict[str, Any]) -> dict[str, str]:
        """Records the answer, whatever it is; returns its decision for the log.

        The answer is to the last request of this task, even if `choose` passes on another batch by now. After the
        question's end, an answer is still recorded but permits nothing, and a missing answer is not recorded.
        """
        from pulsar_steward.guards.window_times import windows_for
        from pulsar_steward.orchestration.approval_response import interpret
        from pulsar_steward.orchestration.context import open_context_of_request
        from pulsar_steward.outside_text import shown

        with open_context_of_request(run_key(context), self.voice) as (task, request):
            plan = task.ledger.plan(request.plan_id)
            over = task.ledger.questions.over(request.plan_id, request.batch_id)
            if over and is_end(event):
                raise AirflowSkipException(shown(over))
            asked = task.question(
                plan,
                request.batch_id,
                self.voice,
                requested_by(context),
                origin_of(context),
                asked_digest=request.asked_digest,
            )
            answer = interpret(event, asked, task.policy.approval, task.clock(), windows_for(asked.batch, task.policy))
            task.journal.answer(answer)
            reason = shown(answer.reason)
            self.log.info("%s: %s: %s", asked.batch_id, answer.decision, reason)
            if answer.policy_entry:
                self.log.info("with this entry of the policy nobody is asked again:")
                for line in answer.policy_entry.splitlines():
                    self.log.info("%s", shown(line))
            if over:
                raise AirflowSkipException(f"{answer.decision}, and it changes nothing: {shown(over)}")
            return {"decision": answer.decision.value, "reason": reason}


def _leave(task: TaskContext, voice: int, now: datetime) -> None:
    """Records that nobody answers this task's earlier question any more, so that another run can ask it."""
    former = task.ledger.questions.last_of_run(task.run, voice)
    if former is None:
        return
    waiting = task.ledger.batch(former.plan_id, former.batch_id).waiting(now)
    if any((each.run, each.voice) == (task.run, voice) for each in waiting):
        task.journal.answer(
            Answer(
                plan_id=former.plan_id,
                batch_id=former.batch_id,
                run=task.run,
                voice=voice,
                decision=Decision.NO_ANSWER,
                answered_by=None,
                answered_at=now,
                reason="its task was cleared, and is about another question by now",
            )
        )


def requested_by(context: Context) -> str | None:
    """User who started this run by hand, from Airflow; None: a schedule or an asset started it."""
    return getattr(context["dag_run"], "triggering_user_name", None)


def origin_of(context: Context) -> Origin:
    """Trigger of this run, as far as Airflow guarantees it.

    A user who may start runs can also post asset events. So only an event that a task of ``pulsar_observe`` created
    counts as triggered by a schedule.
    """
    if requested_by(context):
        return Origin.PERSON
    run_type = getattr(context["dag_run"], "run_type", None)
    if run_type == "scheduled":
        return Origin.SCHEDULE
    if run_type != "asset_triggered":
        return Origin.UNKNOWN
    given = context.get("triggering_asset_events") or {}
    events = [event for asset in given for event in given[asset]]
    return Origin.SCHEDULE if events and all(_by_observing(event) for event in events) else Origin.UNKNOWN


def _by_observing(event: Any) -> bool:
    """True if a task of ``pulsar_observe`` created an asset's event, and nobody posted it."""
    return (
        event.source_dag_id == OBSERVE_DAG and event.source_task_id is not None and "from_rest_api" not in event.extra
    )


def run_key(context: Context) -> str:
    """Key of the requesting and acting run of one batch, ``dag/run/map index``; an answer is bound to it."""
    instance = context["ti"]
    return f"{instance.dag_id}/{instance.run_id}/{instance.map_index}"


def _page_of(plan_id: str, batch_id: str) -> str:
    """Address of a batch on the page of its plan, within this Airflow."""
    from pulsar_steward.notify.compose import link, plan_path

    return link(conf.get("api", "base_url", fallback="") or "", plan_path(plan_id, batch_id))
