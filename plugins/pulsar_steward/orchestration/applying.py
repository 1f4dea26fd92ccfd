"""The operator that carries out an approved batch, at once or when the next maintenance window opens."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowFailException, AirflowSkipException, BaseOperator
from airflow.sdk.timezone import utcnow
from airflow.triggers.base import BaseTrigger, TriggerEvent

from pulsar_steward.orchestration.approval import run_key
from pulsar_steward.orchestration.question_trigger import END, LOOK_EVERY_SECONDS, is_end, shared_poll

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from datetime import datetime

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
        from pulsar_steward.orchestration import batches
        from pulsar_steward.outside_text import shown

        ref, run = batches.BatchRef.read(self.batch), run_key(context)
        if is_end(event) and (over := batches.ended_unbegun(ref, run)):
            raise AirflowSkipException(f"nothing was changed: {shown(over)}")
        return self._carried_out(run)

    def _carried_out(self, run: str) -> list[str]:
        from pulsar_steward.errors import LedgerTampered, Refused
        from pulsar_steward.model.units import time_in_words
        from pulsar_steward.orchestration import batches
        from pulsar_steward.outside_text import shown

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


# Its event decides nothing: the task checks again that the window is open and that the question has not ended.


OPENED = "pulsar_steward_window_opened"
"""Key of the event of a window that opened; its value is the time."""


class WindowTrigger(BaseTrigger):
    """Waits until a maintenance window opens, or the question ends in the ledger.

    Args:
        plan_id: The plan in which the question was asked.
        batch_id: Its batch.
        opens_at: When the window opens.
        look_every_seconds: Time between two reads of the ledger.
    """

    def __init__(
        self, *, plan_id: str, batch_id: str, opens_at: datetime, look_every_seconds: float = LOOK_EVERY_SECONDS
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Airflow has no types there
        self.plan_id = plan_id
        self.batch_id = batch_id
        self.opens_at = opens_at
        self.look_every_seconds = look_every_seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Name of this class, and its arguments."""
        arguments = {
            "plan_id": self.plan_id,
            "batch_id": self.batch_id,
            "opens_at": self.opens_at,
            "look_every_seconds": self.look_every_seconds,
        }
        return f"{__name__}.{type(self).__name__}", arguments

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yields one event: the end of the question, or the opening of the window."""
        yield await self._event()

    async def _event(self) -> TriggerEvent:
        with shared_poll(self.look_every_seconds).until_over(self.plan_id, self.batch_id) as over:
            while (left := (self.opens_at - utcnow()).total_seconds()) > 0:  # by the wall clock, which may be set
                await asyncio.wait({over}, timeout=min(left, self.look_every_seconds))
                if over.done():
                    return TriggerEvent({END: over.result()})  # type: ignore[no-untyped-call]  # Airflow has no types there
        return TriggerEvent({OPENED: self.opens_at.isoformat()})  # type: ignore[no-untyped-call]  # as above
