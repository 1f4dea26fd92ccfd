"""The trigger that waits for the next maintenance window of an approved batch, without holding a worker.

Its event decides nothing: the task checks again that the window is open and that the question has not ended.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from airflow.sdk.timezone import utcnow
from airflow.triggers.base import BaseTrigger, TriggerEvent

from pulsar_steward.orchestration.question_poll import shared_poll
from pulsar_steward.orchestration.question_trigger import END, LOOK_EVERY_SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from datetime import datetime

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
