"""The task that asks, run without an Airflow: what Airflow hands it, and the questions that Airflow keeps."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_OID, UUID, uuid5

import msgspec
import pytest
from airflow.providers.common.compat.sdk import TaskDeferred
from airflow.sdk.execution_time import task_runner

from pulsar_steward.orchestration.approval import ApproveBatch
from pulsar_steward.orchestration.batches import BatchRef
from tests.apply.worksite import RUN

if TYPE_CHECKING:
    from datetime import datetime

    from airflow.sdk.execution_time.comms import CreateHITLDetailPayload

    from pulsar_steward.model.plan import Plan

TASKS = {1: "approve", 2: "confirm"}
"""Task of each approver."""


class AirflowRows:
    """Airflow's questions as 3.1.8, 3.2.2 and 3.3.2 keep them: the first one of a task instance stays.

    `tests/live/test_answers.py` has the real one.
    """

    def __init__(self) -> None:
        self._rows: dict[UUID, CreateHITLDetailPayload] = {}

    def send(self, msg: CreateHITLDetailPayload) -> CreateHITLDetailPayload:
        """Stores a question, and returns what is stored: an earlier one where there is one."""
        return self._rows.setdefault(msg.ti_id, msg)

    def all(self) -> list[CreateHITLDetailPayload]:
        """Every question that is stored."""
        return list(self._rows.values())

    def change(self, **fields: Any) -> None:
        """Changes every question, as somebody with Airflow's database can."""
        self._rows = {instance: row.model_copy(update=fields) for instance, row in self._rows.items()}

    def form(self, voice: int = 1, run: str = RUN) -> dict[str, Any]:
        """What Airflow's page sends of the question of a task, where nobody touched a field."""
        fields = self._rows[_instance(run, voice)].params or {}
        return {name: field["value"] for name, field in fields.items()}

    def subject(self, voice: int = 1, run: str = RUN) -> str:
        """Headline of the question of a task, as Airflow's page shows it."""
        return self._rows[_instance(run, voice)].subject


def airflow_rows_in(patch: pytest.MonkeyPatch) -> AirflowRows:
    """Has tasks talk to these rows, in place of a supervisor with Airflow's API behind it."""
    rows = AirflowRows()
    patch.setattr(task_runner, "SUPERVISOR_COMMS", rows, raising=False)
    return rows


def a_context(run: str = RUN, voice: int = 1) -> Any:
    """Context as Airflow hands it to a task, as far as ours look at it: a schedule started the run."""
    dag_id, run_id, map_index = run.split("/")
    instance = SimpleNamespace(id=_instance(run, voice), dag_id=dag_id, run_id=run_id, map_index=int(map_index))
    of_run = SimpleNamespace(triggering_user_name=None, run_type="scheduled")
    return {"ti": instance, "task_instance": instance, "dag_run": of_run}


def a_task(plan: Plan, voice: int = 1) -> ApproveBatch:
    """The task that asks about the plan's first batch."""
    batch = msgspec.to_builtins(BatchRef.of(plan, plan.batches[0]))
    return ApproveBatch(task_id=TASKS[voice], batch=batch, voice=voice)


def asked(plan: Plan, voice: int = 1, run: str = RUN) -> ApproveBatch:
    """The task, as it waits for an answer about the plan's first batch."""
    task = a_task(plan, voice)
    with pytest.raises(TaskDeferred):
        task.execute(a_context(run, voice))
    return task


def answer_of(option: str, form: dict[str, Any], at: datetime, name: str = "alice") -> dict[str, Any]:
    """Event by which Airflow hands a person's answer to the task."""
    return {
        "chosen_options": [option],
        "params_input": form,
        "responded_at": at,
        "responded_by_user": {"id": name, "name": name},
    }


def _instance(run: str, voice: int) -> UUID:
    """Id of a task instance, which stands for Airflow's row: that follows an instance that is cleared."""
    return uuid5(NAMESPACE_OID, f"{run}/{TASKS[voice]}")
