"""The operator that carries out an approved batch, at once or when the next maintenance window opens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowFailException, AirflowSkipException, BaseOperator

from pulsar_steward.orchestration.approval import run_key
from pulsar_steward.orchestration.question_trigger import is_end
from pulsar_steward.orchestration.window_trigger import WindowTrigger

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context


class ApplyBatch(BaseOperator):
    """Carries out exactly what the ledger says was approved.

    Outside of the maintenance windows an approved batch is deferred until the next one opens: it holds no worker, and
    Airflow shows the task as deferred. Then everything is looked at anew.

    Args:
        batch: ``{"plan_id": ..., "batch_id": ..., "label": ...}``; everything else is read from the ledger.
    """

    template_fields: Sequence[str] = ("batch",)

    def __init__(self, *, batch: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.batch = batch

    def execute(self, context: Context) -> list[str]:
        """Carries the batch out, or waits for its window; returns what became of each step."""
        return self._carried_out(run_key(context))

    def execute_in_window(self, context: Context, event: dict[str, Any]) -> list[str]:
        """Continues after the wait: the question may have ended, or the policy may have another window by now."""
        from pulsar_steward.orchestration import batches  # noqa: PLC0415 - keeps the parsing of DAG files light
        from pulsar_steward.outside_text import shown  # noqa: PLC0415 - as above

        ref, run = batches.BatchRef.read(self.batch), run_key(context)
        if is_end(event) and (over := batches.ended_unbegun(ref, run)):
            raise AirflowSkipException(f"nothing was changed: {shown(over)}")
        return self._carried_out(run)

    def _carried_out(self, run: str) -> list[str]:
        from pulsar_steward.errors import LedgerTampered, Refused  # noqa: PLC0415 - keeps the parsing of DAG files light
        from pulsar_steward.model.units import time_in_words  # noqa: PLC0415 - as above
        from pulsar_steward.orchestration import batches  # noqa: PLC0415 - as above
        from pulsar_steward.outside_text import shown  # noqa: PLC0415 - as above

        ref = batches.BatchRef.read(self.batch)
        try:
            if opens := batches.opening_of(ref, run):
                self.log.info("%s waits for the maintenance window that opens at %s", ref.label, time_in_words(opens))
                trigger = WindowTrigger(plan_id=ref.plan_id, batch_id=ref.batch_id, opens_at=opens)
                self.defer(trigger=trigger, method_name="execute_in_window")
            outcomes = batches.apply_batch(ref, run)
        except Refused as refusal:
            if batches.was_approved(ref, run):
                raise AirflowFailException(f"approved, and refused all the same: {refusal}") from refusal
            raise AirflowSkipException(f"nothing was changed: {refusal}") from refusal
        except LedgerTampered as error:
            raise AirflowFailException(str(error)) from error  # a retry would not repair it
        words = [shown(f"{outcome.step_id} {outcome.outcome}: {outcome.reason}") for outcome in outcomes]
        if not all(outcome.outcome == "done" for outcome in outcomes):
            raise AirflowFailException("; ".join(words))
        return words
