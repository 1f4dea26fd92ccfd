"""The DAG files as Airflow reads them: no errors, the promised ids and parameters, no gate that rests on skipping."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pulsar_steward.notify.compose import QUESTION_TASKS

ROOT = Path(__file__).resolve().parents[2]

HEAVY = ("alembic", "duckdb", "pyarrow", "pulsar_steward.checks.registry", "pulsar_steward.policy.schema")

READ = """
import json
import sys
from airflow.dag_processing.dagbag import DagBag
from airflow.plugins_manager import get_import_errors, get_plugin_info
bag = DagBag({folder!r})
heavy = sorted(set(sys.modules) & set({heavy!r}))
print(json.dumps({{
    "errors": bag.import_errors,
    "heavy": heavy,
    "plugins": [[plugin["name"], str(plugin["source"])] for plugin in get_plugin_info()],
    "plugin_errors": get_import_errors(),
    "dags": {{
        name: {{
            "params": sorted(dag.params),
            "scheduled": dag.schedule is not None,
            "tasks": {{task.task_id: task.trigger_rule.value for task in dag.tasks}},
            "upstream": {{task.task_id: sorted(task.upstream_task_ids) for task in dag.tasks}},
            "seconds": {{
                task.task_id: task.execution_timeout and task.execution_timeout.total_seconds() for task in dag.tasks
            }},
            "waits": {{task.task_id: str(getattr(task, "response_timeout", "no such limit")) for task in dag.tasks}},
        }}
        for name, dag in bag.dags.items()
    }},
}}))
"""


@pytest.fixture(scope="module")
def bag(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The folder as Airflow loads it, read in a process of its own."""
    home = tmp_path_factory.mktemp("airflow-home")
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")},
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    }
    command = [sys.executable, "-W", "ignore", "-c", READ.format(folder=str(ROOT / "dags"), heavy=HEAVY)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_every_file_can_be_read(bag: dict[str, Any]) -> None:
    """Airflow imports every DAG file without an error."""
    assert bag["errors"] == {}


def test_reading_the_files_imports_nothing_heavy(bag: dict[str, Any]) -> None:
    """Airflow reads each file again and again: what only tasks need is imported by them."""
    assert bag["heavy"] == []


def test_the_plugin_is_found_by_its_entry_point(bag: dict[str, Any]) -> None:
    [source] = [source for name, source in bag["plugins"] if name == "pulsar_steward"]
    assert "pulsar-steward" in source
    assert bag["plugin_errors"] == {}


def test_the_ids_and_parameters_are_those_that_others_rely_on(bag: dict[str, Any]) -> None:
    params = {name: dag["params"] for name, dag in bag["dags"].items()}
    assert params == {
        "pulsar_observe": ["cluster"],
        "pulsar_remediate": ["cluster", "dry_run", "kinds", "plan_id"],
        "pulsar_rollback": ["batch_id", "cluster", "dry_run", "plan_id"],
        "pulsar_housekeeping": ["cluster"],
        "pulsar_notify": [],
    }


CHANGING = ["pulsar_remediate", "pulsar_rollback"]


def test_every_task_ends_by_itself(bag: dict[str, Any]) -> None:
    """Every task has a time limit, and only tasks that change a cluster have more than two hours."""
    seconds = {f"{name}.{task}": limit for name, dag in bag["dags"].items() for task, limit in dag["seconds"].items()}
    assert all(seconds.values()), seconds
    assert {task for task, limit in seconds.items() if limit > 2 * 3600} == {f"{name}.batch.apply" for name in CHANGING}


@pytest.mark.parametrize("name", CHANGING)
def test_the_time_limit_of_a_question_is_not_that_of_its_answer(bag: dict[str, Any], name: str) -> None:
    assert {bag["dags"][name]["waits"][task] for task in QUESTION_TASKS.values()} == {"None"}


@pytest.mark.parametrize("name", CHANGING)
def test_what_acts_and_reports_runs_whatever_happened_before(bag: dict[str, Any], name: str) -> None:
    tasks = bag["dags"][name]["tasks"]
    assert {tasks[name] for name in ("batch.confirm", "batch.apply", "batch.verify", "report")} == {"all_done"}


@pytest.mark.parametrize("name", CHANGING)
def test_a_way_back_goes_the_way_of_any_other_change(bag: dict[str, Any], name: str) -> None:
    """Each DAG that changes a cluster runs the same tasks in the same order, from choosing a plan to the report."""
    assert bag["dags"][name]["upstream"] == {
        "choose": [],
        "batch.approve": ["choose"],
        "batch.confirm": ["batch.approve", "choose"],
        "batch.apply": ["batch.confirm", "choose"],
        "batch.verify": ["batch.apply", "choose"],
        "report": ["batch.verify", "choose"],
    }


def test_nothing_is_taken_back_by_itself(bag: dict[str, Any]) -> None:
    assert {name: dag["scheduled"] for name, dag in bag["dags"].items()} == {
        "pulsar_observe": True,
        "pulsar_remediate": True,
        "pulsar_rollback": False,
        "pulsar_housekeeping": True,
        "pulsar_notify": True,
    }


def test_observing_goes_one_way(bag: dict[str, Any]) -> None:
    upstream = bag["dags"]["pulsar_observe"]["upstream"]
    assert set(upstream) == {"prepare", "cluster.observe", "cluster.plan"}
    assert upstream["cluster.observe"] == ["prepare"]
    assert "cluster.observe" in upstream["cluster.plan"]
