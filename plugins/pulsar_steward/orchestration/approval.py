"""The operator that asks a person about one batch and writes the answer into the ledger.

It skips nothing and stops nothing: what may be done is decided by the gate, from the ledger alone.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import Param
from airflow.sdk.definitions.param import ParamsDict

from pulsar_steward.orchestration.answers import APPROVE, COMMENT, LOSS, REJECT, STEPS, interpret, takes_messages

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context

    from pulsar_steward.model.plan import Batch


class ApproveBatch(HITLOperator):
    """Parks the task until a person answered, or the policy's time is up, which is a rejection.

    Args:
        batch: ``{"plan_id": ..., "batch_id": ..., "cluster": ..., "label": ...}``; everything else is read from the
            ledger, so that what is shown is what is recorded.
    """

    template_fields: Sequence[str] = ("batch",)

    def __init__(self, *, batch: Any, **kwargs: Any) -> None:
        super().__init__(subject="", options=[APPROVE, REJECT], defaults=REJECT, **kwargs)
        self.batch = batch

    def execute(self, context: Context) -> None:
        """Records that a person is asked, and shows the plan's batch."""
        from pulsar_steward.orchestration import workshop  # noqa: PLC0415 - keeps the parsing of DAG files light
        from pulsar_steward.report import approval  # noqa: PLC0415 - as above

        with workshop.open_workshop(self.batch["cluster"], run_key(context)) as shop:
            plan = shop.ledger.plan(self.batch["plan_id"])
            batch = plan.batch(self.batch["batch_id"])
            policy = shop.policy.approval
            self.subject = approval.subject(plan, batch)
            self.body = approval.body(plan, batch, shop.policy)
            self.params = _form(batch, approval.labels(batch))
            self.assigned_users = [{"id": user, "name": user} for user in policy.assigned_users] or None
            self.response_timeout = timedelta(minutes=policy.response_timeout_minutes)
            shop.ledger_writer.record_request(plan, batch.batch_id, shop.run, shop.clock())
        super().execute(context)

    def execute_complete(self, context: Context, event: dict[str, Any]) -> dict[str, str]:
        """Records the answer, whatever it is; returns its decision for the log."""
        from pulsar_steward.orchestration import workshop  # noqa: PLC0415 - keeps the parsing of DAG files light

        with workshop.open_workshop(self.batch["cluster"], run_key(context)) as shop:
            plan = shop.ledger.plan(self.batch["plan_id"])
            batch_id = self.batch["batch_id"]
            answer = interpret(event, plan, batch_id, shop.run, shop.policy.approval, shop.clock())
            shop.journal.answer(answer)
            self.log.info("%s: %s: %s", batch_id, answer.decision, answer.reason)
            return {"decision": answer.decision.value, "reason": answer.reason}


def run_key(context: Context) -> str:
    """Names the asking and acting run of one batch, ``dag/run/map index``; an answer is bound to it."""
    instance = context["ti"]
    return f"{instance.dag_id}/{instance.run_id}/{instance.map_index}"


def _form(batch: Batch, labels: dict[str, str]) -> ParamsDict:
    ids = [step.step_id for step in batch.steps]
    fields = {
        STEPS: Param(
            ids,
            type="array",
            title="Steps to carry out",
            description="Take out what shall stay as it is; nothing else is changed.",
            items={"type": "string", "enum": ids},
            examples=ids,
            values_display=labels,
        ),
        COMMENT: Param(
            "",
            type=["string", "null"],
            format="multiline",
            title="Comment",
            description="Kept in the ledger beside your name.",
        ),
    }
    if any(takes_messages(step.change) for step in batch.steps):
        fields[LOSS] = Param(
            False,
            type="boolean",
            title="Messages may be lost, and shall be",
            description="Brokers delete messages for these settings. Without this tick an approval is a rejection.",
        )
    return ParamsDict(fields)
