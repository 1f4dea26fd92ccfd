"""States of other runs' tasks and of DAGs, through Airflow's task API: a task cannot read Airflow's database."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from pulsar_steward.ledger.questions import ASKING_DAG

if TYPE_CHECKING:
    from collections.abc import Collection

log = logging.getLogger(__name__)

APPLY_TASK = "batch.apply"
"""Id of the task that carries out an approved batch, with its task group's."""

GOES_ON = frozenset(
    {
        None,  # cleared, and not scheduled yet
        "scheduled",
        "queued",
        "running",
        "restarting",
        "deferred",
        "awaiting_input",
        "up_for_retry",
        "up_for_reschedule",
    }
)
"""States of tasks that have not ended."""


class RunStates:
    """Reads the states from Airflow once per run, and keeps them.

    Args:
        instance: The task instance that asks, of a task's context.
    """

    def __init__(self, instance: Any) -> None:
        self._instance = instance
        self._known: dict[str, dict[str, str | None] | None] = {}

    def has_ended(self, run: str, task_id: str) -> bool:
        """True if a task of a run has ended or does not exist any more; False: it goes on, or Airflow gives no state.

        Args:
            run: The run, ``dag/run/map index``; -1 is the index of a task that is not mapped.
            task_id: The task's id, with its task group's.
        """
        of_dag, _, map_index = run.rpartition("/")
        states = self._of(of_dag)
        name = task_id if map_index == "-1" else f"{task_id}_{map_index}"
        return states is not None and (name not in states or states[name] not in GOES_ON)

    def failed(self, of_dag: str, task_ids: Collection[str]) -> list[str]:
        """Failed tasks of a run, each as ``id_map index``; empty if Airflow gives no states.

        Args:
            of_dag: The run, ``dag/run``.
            task_ids: Ids of the mapped tasks to look at, with their task group's.
        """
        states = self._of(of_dag) or {}
        return sorted(n for n, state in states.items() if state == "failed" and n.rpartition("_")[0] in task_ids)

    def _of(self, of_dag: str) -> dict[str, str | None] | None:
        if of_dag not in self._known:
            self._known[of_dag] = self._states(of_dag)
        return self._known[of_dag]

    def _states(self, of_dag: str) -> dict[str, str | None] | None:
        """States of a run's tasks by ``id_map index``; None: Airflow gives no states."""
        dag_id, _, run_id = of_dag.partition("/")
        try:
            found = self._instance.get_task_states(dag_id=dag_id, run_ids=[run_id])
        except Exception as error:  # noqa: BLE001 - whatever Airflow fails with, the question goes on waiting
            log.warning("whether run %s of %s goes on is not known: %s", run_id, dag_id, type(error).__name__)
            return None
        return dict(found.get(run_id, {}))

    def asking_is_paused(self) -> bool | None:
        """True if the DAG that asks for approval is paused; None: Airflow gives no state, for example 3.1."""
        try:
            return bool(self._instance.get_dag(ASKING_DAG).is_paused)
        except Exception as error:  # noqa: BLE001 - as above
            log.info("whether %s is paused is not known: %s", ASKING_DAG, type(error).__name__)
            return None
