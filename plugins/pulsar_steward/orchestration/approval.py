"""The operator that asks a person about one batch and writes the answer into the ledger.

It skips nothing and stops nothing: what may be done is decided by the gate, from the ledger alone.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import Param
from airflow.sdk.definitions.param import ParamsDict
from airflow.sdk.exceptions import AirflowSkipException

from pulsar_steward.orchestration.answers import (
    APPROVE,
    COMMENT,
    LOSS,
    MAX_COMMENT_CHARACTERS,
    REJECT,
    STEPS,
    interpret,
    takes_messages,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context

    from pulsar_steward.model.step import Step


class ApproveBatch(HITLOperator):
    """Parks the task until a person answered, or the policy's time is up, which is a rejection.

    Args:
        batch: ``{"plan_id": ..., "batch_id": ..., "cluster": ..., "label": ...}``; everything else is read from the
            ledger, so that what is shown is what is recorded.
        voice: 1, or 2 for the second person, who is asked only where the policy wants one and the first approved.
    """

    template_fields: Sequence[str] = ("batch",)

    def __init__(self, *, batch: Any, voice: int = 1, **kwargs: Any) -> None:
        super().__init__(subject="", options=[APPROVE, REJECT], defaults=REJECT, **kwargs)
        self.batch = batch
        self.voice = voice

    def execute(self, context: Context) -> None:
        """Records that a person is asked, and shows the plan's batch."""
        from pulsar_steward.orchestration import workshop  # noqa: PLC0415 - keeps the parsing of DAG files light
        from pulsar_steward.report import approval  # noqa: PLC0415 - as above

        with workshop.open_workshop(self.batch["cluster"], run_key(context)) as shop:
            plan, requester = shop.ledger.plan(self.batch["plan_id"]), requested_by(context)
            batch, policy = plan.batch(self.batch["batch_id"]), shop.policy.approval
            asked = shop.question(plan, batch.batch_id, self.voice, requester)
            if self.voice > 1 and (policy.voices_for(batch.kind) < self.voice or asked.first is None):
                raise AirflowSkipException("no second person has to be asked")
            self.subject = approval.subject(plan, batch, second=self.voice > 1)
            self.body = approval.body(plan, batch, shop.policy, first=asked.first)
            self.params = _form(asked.steps, approval.labels(batch))
            self.assigned_users = [{"id": user, "name": user} for user in policy.users_for(batch.kind)] or None
            self.response_timeout = timedelta(minutes=policy.response_timeout_minutes)
            at = shop.clock()
            shop.ledger_writer.record_request(
                plan, batch.batch_id, shop.run, at, voice=self.voice, requested_by=requester
            )
        super().execute(context)

    def execute_complete(self, context: Context, event: dict[str, Any]) -> dict[str, str]:
        """Records the answer, whatever it is; returns its decision for the log."""
        from pulsar_steward.orchestration import workshop  # noqa: PLC0415 - keeps the parsing of DAG files light
        from pulsar_steward.outside_text import shown  # noqa: PLC0415 - as above

        with workshop.open_workshop(self.batch["cluster"], run_key(context)) as shop:
            plan, batch_id = shop.ledger.plan(self.batch["plan_id"]), self.batch["batch_id"]
            asked = shop.question(plan, batch_id, self.voice, requested_by(context))
            answer = interpret(event, asked, shop.policy.approval, shop.clock())
            shop.journal.answer(answer)
            reason = shown(answer.reason)
            self.log.info("%s: %s: %s", batch_id, answer.decision, reason)
            return {"decision": answer.decision.value, "reason": reason}


def requested_by(context: Context) -> str | None:
    """Who started this run by hand, as Airflow reports it; None: a schedule or an asset did."""
    return getattr(context["dag_run"], "triggering_user_name", None)


def run_key(context: Context) -> str:
    """Names the asking and acting run of one batch, ``dag/run/map index``; an answer is bound to it."""
    instance = context["ti"]
    return f"{instance.dag_id}/{instance.run_id}/{instance.map_index}"


def _form(steps: Sequence[Step], labels: dict[str, str]) -> ParamsDict:
    ids = [step.step_id for step in steps]
    fields = {
        STEPS: Param(
            ids,
            type="array",
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
    if any(takes_messages(step.change) for step in steps):
        fields[LOSS] = Param(
            False,
            type="boolean",
            title="Messages may be lost, and shall be",
            description="Brokers delete messages for these settings. Without this tick an approval is a rejection.",
        )
    return ParamsDict(fields)
