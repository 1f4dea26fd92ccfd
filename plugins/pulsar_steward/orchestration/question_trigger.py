"""The trigger of a question: Airflow's own, which waits for an answer, and the shared poll of the ledger.

A question that ends in the ledger also leaves Airflow's list of required actions: the trigger resumes its task, and the
task is skipped with the reason. If the ledger cannot be read, the trigger goes on waiting. If the trigger is lost,
there is no answer, and nothing is changed.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.triggers.hitl import HITLTrigger
from airflow.triggers.base import TriggerEvent

from pulsar_steward.orchestration.question_poll import shared_poll

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

END = "pulsar_steward_question_ended"
"""Key of the event of a question that ended; its value is the reason."""

LOOK_EVERY_SECONDS = 20.0


class QuestionTrigger(HITLTrigger):
    """Waits for an answer, as Airflow's trigger does, and for the end of the question in the ledger.

    Args:
        plan_id: The plan in which the question is asked.
        batch_id: Its batch.
        look_every_seconds: Time between two reads of the ledger; the poll is shared by all questions of a process.
        waiting: Arguments of Airflow's trigger.
    """

    def __init__(
        self, *, plan_id: str, batch_id: str, look_every_seconds: float = LOOK_EVERY_SECONDS, **waiting: Any
    ) -> None:
        super().__init__(**waiting)
        self.plan_id = plan_id
        self.batch_id = batch_id
        self.look_every_seconds = look_every_seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Name of this class, and its arguments."""
        _, waiting = super().serialize()
        own = {
            "plan_id": self.plan_id,
            "batch_id": self.batch_id,
            "look_every_seconds": self.look_every_seconds,
        }
        return f"{__name__}.{type(self).__name__}", {**waiting, **own}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yields one event: the answer as Airflow's trigger gives it, or the end of the question."""
        yield await self._event()

    async def _event(self) -> TriggerEvent:
        answer = asyncio.ensure_future(self._answer())
        try:
            with shared_poll(self.look_every_seconds).until_over(self.plan_id, self.batch_id) as over:
                either: set[asyncio.Future[Any]] = {answer, over}
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
                if answer.done():
                    return answer.result()
                return TriggerEvent({END: over.result()})  # type: ignore[no-untyped-call]  # Airflow has no types there
        finally:
            answer.cancel()

    async def _answer(self) -> TriggerEvent:
        return await anext(super().run())


def is_end(event: object) -> bool:
    """True for an event that claims the end of a question; only the ledger proves it."""
    return isinstance(event, dict) and set(event) == {END}
