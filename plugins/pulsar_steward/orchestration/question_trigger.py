"""The trigger of a question: Airflow's own, which waits for an answer, and the shared poll of the ledger.

A question that ends in the ledger also leaves Airflow's list of required actions: the trigger resumes its task, and the
task is skipped with the reason. If the ledger cannot be read, the trigger goes on waiting. Without a triggerer, answers
still arrive (since Airflow 3.3), and the gate refuses one to a question that ended (decision 16).
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from airflow.providers.standard.triggers.hitl import HITLTrigger
from airflow.triggers.base import TriggerEvent

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Iterator

    from pulsar_steward.ledger.rows import BatchKey

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
        own = {"plan_id": self.plan_id, "batch_id": self.batch_id, "look_every_seconds": self.look_every_seconds}
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


# A triggerer holds hundreds of questions, each with its own trigger. The triggers share one task of the event loop.
# The task reads the ledger for all questions at once, and ends with the last one.


log = logging.getLogger(__name__)


class QuestionPoll:
    """Poll of the ledger that runs as long as a trigger waits for the end of a question.

    Args:
        every_seconds: Time between two reads.
    """

    def __init__(self, every_seconds: float) -> None:
        self._every_seconds = every_seconds
        self._waiting: dict[asyncio.Future[str], BatchKey] = {}
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def until_over(self, plan_id: str, batch_id: str) -> Iterator[asyncio.Future[str]]:
        """Yields a future of the reason for a question's end; it is cancelled when nobody waits for it any more."""
        loop = asyncio.get_running_loop()
        over: asyncio.Future[str] = loop.create_future()
        self._waiting[over] = (plan_id, batch_id)
        if self._task is None or self._task.done():
            # In a new context: Airflow binds things to the first trigger's context, such as its log, that end with it.
            self._task = loop.create_task(self._poll(), context=contextvars.Context())
        try:
            yield over
        finally:
            del self._waiting[over]
            over.cancel()
            if not self._waiting and self._task is not None:
                self._task.cancel()
                self._task = None

    async def _poll(self) -> None:
        while True:
            await asyncio.sleep(self._every_seconds)
            reasons = await _reasons(frozenset(self._waiting.values()))
            for over, batch in self._waiting.items():
                if batch in reasons and not over.done():
                    over.set_result(reasons[batch])


_POLLS: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[float, QuestionPoll]] = WeakKeyDictionary()


def shared_poll(every_seconds: float) -> QuestionPoll:
    """The poll of the running event loop with this time between two reads; there is only one."""
    polls = _POLLS.setdefault(asyncio.get_running_loop(), {})
    return polls.setdefault(every_seconds, QuestionPoll(every_seconds))


async def _reasons(batches: Collection[BatchKey]) -> dict[BatchKey, str]:
    try:
        return await asyncio.to_thread(read_over, batches)
    except Exception as error:  # noqa: BLE001 - whatever keeps it from being read, the questions go on waiting
        log.warning("whether %d questions still stand cannot be read: %s", len(batches), type(error).__name__)
        return {}


def read_over(batches: Collection[BatchKey]) -> dict[BatchKey, str]:
    """Reasons for the end of these batches' questions, from the ledger that tasks use; open ones are left out.

    Raises:
        LedgerError: If the ledger cannot be read.
    """
    from pulsar_steward.ledger.questions import QuestionReader
    from pulsar_steward.orchestration import connections

    engine = connections.ledger()
    try:
        return QuestionReader(engine).all_over(batches)
    finally:
        engine.dispose()
