"""The operator that requests a person's approval of one batch and writes the answer into the ledger.

It skips nothing and stops nothing: the gate decides what may be done, from the ledger alone.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowSkipException, TaskDeferred, conf
from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import Param, exceptions
from airflow.sdk.definitions.param import ParamsDict
from airflow.sdk.timezone import utcnow

from pulsar_steward.changes import kind_of
from pulsar_steward.ledger.rows import Origin
from pulsar_steward.orchestration.approval_response import (
    APPROVE,
    COMMENT,
    LEFT_OUT,
    LOSS,
    MAX_COMMENT_CHARACTERS,
    MAX_SNOOZE_DAYS,
    REJECT,
    SNOOZE,
    SNOOZE_DAYS,
    SNOOZE_DAYS_BY_DEFAULT,
    STEPS,
    UNTIL_WORSE,
    interpret,
)
from pulsar_steward.orchestration.question_trigger import QuestionTrigger, is_end

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context

    from pulsar_steward.orchestration.approval_response import ApprovalQuestion
    from pulsar_steward.orchestration.batches import BatchRef


WAITS = (TaskDeferred, getattr(exceptions, "TaskAwaitingInput", TaskDeferred))
"""How Airflow's operator begins to wait; since 3.3 without a trigger, so that it would not notice a question's end."""

_CHOICES = ["array", "null"]
"""Type of a field of several choices: once the last one is removed, Airflow's form holds null in place of a list, and
takes no answer where a field may not be null."""

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
        """Records the approval request, and shows the plan's batch."""
        from pulsar_steward.ledger.moves import move_times  # noqa: PLC0415 - keeps the parsing of DAG files light
        from pulsar_steward.orchestration import batches  # noqa: PLC0415 - as above
        from pulsar_steward.orchestration.context import open_context_of_plan  # noqa: PLC0415 - as above
        from pulsar_steward.outside_text import shown  # noqa: PLC0415 - as above
        from pulsar_steward.report import approval  # noqa: PLC0415 - as above

        ref, requester, origin = batches.BatchRef.read(self.batch), requested_by(context), origin_of(context)
        with open_context_of_plan(ref.plan_id, run_key(context)) as task:
            plan = task.ledger.plan(ref.plan_id)
            batch, policy = plan.batch(ref.batch_id), task.policy.approval
            if over := task.ledger.questions.over(plan.plan_id, batch.batch_id):
                raise AirflowSkipException(f"nobody is asked: {shown(over)}")
            asked = task.question(plan, batch.batch_id, self.voice, requester, origin)
            terms = asked.terms(policy)
            if self.voice > 1 and (terms.people < self.voice or asked.first is None):
                raise AirflowSkipException("no second person has to be asked")
            self.subject = approval.subject(plan, batch, second=self.voice > 1)
            former, now, page = task.former(plan, batch), task.clock(), _page_of(plan.plan_id, batch.batch_id)
            self.body = approval.body(
                plan,
                batch,
                task.policy,
                first=asked.first,
                former=former,
                now=now,
                page=page,
                moved=move_times(task.ledger, plan.cluster, now, task.policy),
            )
            self.options = list(asked.options)
            self.params = _form(asked, approval.labels(batch))
            self.assigned_users = (
                None if terms.users is None else [{"id": user, "name": user} for user in sorted(terms.users)]
            )
            self.response_timeout = timedelta(minutes=policy.response_timeout_minutes)
            task.ledger_writer.record_request(
                plan,
                batch.batch_id,
                task.run,
                task.clock(),
                voice=self.voice,
                requested_by=requester,
                origin=origin,
                policy=task.policy,
            )
        try:
            super().execute(context)
        except WAITS:  # Airflow shows the question by now; a trigger of our own waits for what ends it
            self.defer(trigger=self._trigger(ref, context), method_name="execute_complete")

    def _trigger(self, ref: BatchRef, context: Context) -> QuestionTrigger:
        return QuestionTrigger(
            plan_id=ref.plan_id,
            batch_id=ref.batch_id,
            ti_id=context["task_instance"].id,
            options=self.options,
            defaults=self.defaults,
            params=self.serialized_params,
            multiple=self.multiple,
            timeout_datetime=utcnow() + self.response_timeout if self.response_timeout else None,
        )

    def execute_complete(self, context: Context, event: dict[str, Any]) -> dict[str, str]:
        """Records the answer, whatever it is; returns its decision for the log.

        Where the question has ended, an answer is recorded all the same and permits nothing; none is made up.
        """
        from pulsar_steward.guard.window_times import windows_for  # noqa: PLC0415 - keeps the parsing of DAG files light
        from pulsar_steward.orchestration import batches  # noqa: PLC0415 - as above
        from pulsar_steward.orchestration.context import open_context_of_plan  # noqa: PLC0415 - as above
        from pulsar_steward.outside_text import shown  # noqa: PLC0415 - as above

        ref = batches.BatchRef.read(self.batch)
        with open_context_of_plan(ref.plan_id, run_key(context)) as task:
            plan, over = task.ledger.plan(ref.plan_id), task.ledger.questions.over(ref.plan_id, ref.batch_id)
            if over and is_end(event):
                raise AirflowSkipException(shown(over))
            asked = task.question(plan, ref.batch_id, self.voice, requested_by(context), origin_of(context))
            windows = windows_for(plan.batch(ref.batch_id), task.policy)
            answer = interpret(event, asked, task.policy.approval, task.clock(), windows)
            task.journal.answer(answer)
            reason = shown(answer.reason)
            self.log.info("%s: %s: %s", ref.batch_id, answer.decision, reason)
            if answer.policy_entry:
                self.log.info("with this entry of the policy nobody is asked again:")
                for line in answer.policy_entry.splitlines():
                    self.log.info("%s", shown(line))
            if over:
                raise AirflowSkipException(f"{answer.decision}, and it changes nothing: {shown(over)}")
            return {"decision": answer.decision.value, "reason": reason}


def requested_by(context: Context) -> str | None:
    """User who started this run by hand, as Airflow reports it; None: a schedule or an asset did."""
    return getattr(context["dag_run"], "triggering_user_name", None)


def origin_of(context: Context) -> Origin:
    """Trigger of this run, as far as Airflow guarantees it.

    Anybody who may start runs can post events of an asset; only those of a task of ``pulsar_observe`` count as
    triggered by a schedule.
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
    from pulsar_steward.notify.links import link, plan_path  # noqa: PLC0415 - keeps the parsing of DAG files light

    return link(conf.get("api", "base_url", fallback="") or "", plan_path(plan_id, batch_id))


def _form(asked: ApprovalQuestion, labels: dict[str, str]) -> ParamsDict:
    """Fields of a question: a tick for each step, and for a group one for each namespace that is to be left out."""
    from pulsar_steward.outside_text import shown  # noqa: PLC0415 - keeps the parsing of DAG files light

    steps, namespaces = asked.steps, list(asked.namespaces)
    ids = [step.step_id for step in steps]
    fields = {
        STEPS: Param(
            ids,
            type=_CHOICES,
            title="Steps to carry out",
            description="Take out what shall stay as it is; nothing else is changed.",
            items={"type": "string", "enum": ids},
            examples=ids,
            values_display={step: labels[step] for step in ids},
        ),
        COMMENT: Param(
            "",
            type=["string", "null"],
            format="multiline",
            title="Comment",
            description=(
                f"Kept in the ledger beside your name. At most {MAX_COMMENT_CHARACTERS:,} characters: with a longer one"
                " an approval counts for nothing."
            ),
        ),
    }
    if namespaces:
        fields[LEFT_OUT] = Param(
            [],
            type=_CHOICES,
            title="Namespaces to leave out",
            description="All but these: no step in them is carried out, ticked or not.",
            items={"type": "string", "enum": namespaces},
            examples=namespaces,
            values_display={name: shown(name) for name in namespaces},
        )
    if SNOOZE in asked.options:
        fields |= _snooze_fields()
    if any(kind_of(step.change).loses_messages for step in steps):
        fields[LOSS] = Param(
            False,
            type="boolean",
            title="Messages may be lost, and shall be",
            description="Brokers delete messages for these settings. Without this tick an approval is a rejection.",
        )
    return ParamsDict(fields)


def _snooze_fields() -> dict[str, Param]:
    return {
        SNOOZE_DAYS: Param(
            SNOOZE_DAYS_BY_DEFAULT,
            type="integer",
            minimum=1,
            maximum=MAX_SNOOZE_DAYS,
            title="Days, if you snooze",
            description=f"For {SNOOZE} alone: nobody is asked this again before they are over.",
        ),
        UNTIL_WORSE: Param(
            True,
            type="boolean",
            title="Or until it gets worse, if you snooze",
            description=(
                "Asked before that where a finding is more severe by then or a new one came, or more would be lost."
            ),
        ),
    }
