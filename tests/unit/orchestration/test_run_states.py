"""What Airflow tells a task of other runs and of DAGs, and what is made of it where it tells nothing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pulsar_steward.orchestration.run_states import RunStates


def test_a_run_is_asked_about_once() -> None:
    """All tasks of a run are known by one question to Airflow, mapped and unmapped ones."""
    asked: list[tuple[str, list[str]]] = []

    def get_task_states(dag_id: str, run_ids: list[str]) -> dict[str, Any]:
        asked.append((dag_id, run_ids))
        return {run_ids[0]: {"batch.approve_0": "deferred", "batch.approve_10": "failed", "report": None}}

    states = RunStates(SimpleNamespace(get_task_states=get_task_states))
    run = "pulsar_remediate/asset_triggered__2026-03-01T12:00:00+00:00"
    ended = [states.has_ended(f"{run}/{index}", "batch.approve") for index in (0, 10, 1)]
    assert (ended, states.has_ended(f"{run}/-1", "report"), states.has_ended(f"{run}/-1", "choose")) == (
        [False, True, True],
        False,
        True,
    )
    assert states.failed("pulsar_remediate/asset_triggered__2026-03-01T12:00:00+00:00", ["batch.approve"]) == [
        "batch.approve_10"
    ]
    assert asked == [("pulsar_remediate", [run.removeprefix("pulsar_remediate/")])]


@pytest.mark.parametrize("paused", [True, False, None])
def test_whether_the_dag_that_asks_is_paused(paused: bool | None) -> None:
    """Airflow says it since 3.2; of 3.1 it is not known."""
    dags: dict[str, Any] = {} if paused is None else {"get_dag": lambda _: SimpleNamespace(is_paused=paused)}
    assert RunStates(SimpleNamespace(**dags)).asking_is_paused() is paused
