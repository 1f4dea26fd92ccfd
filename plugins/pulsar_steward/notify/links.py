"""Addresses within Airflow of questions and of Steward's pages; each name is one segment of a path."""

from __future__ import annotations

from urllib.parse import quote, urlencode

PAGES = "/steward"
"""Path of Steward's pages in Airflow's API server."""

REQUIRED_ACTIONS = "/required_actions?response_received=false"
"""Airflow's list of all open requests."""

VARIABLES = "/variables"
"""Airflow's list of variables."""

QUESTION_TASKS = {1: "batch.approve", 2: "batch.confirm"}
"""Ids of the tasks that ask, with their task group's id, by the number of the approver."""


def question_path(run: str, voice: int) -> str:
    """Address of a question, as linked in Airflow's own pages: the tab *Required Actions* of its task instance.

    Args:
        run: The requesting run, ``dag/run/map index``; -1 is the index of a task that is not mapped.
        voice: Number of the approver: 1, or 2 for a second person.
    """
    dag, _, rest = run.partition("/")
    run_id, _, map_index = rest.rpartition("/")
    mapped = () if map_index == "-1" else ("mapped", map_index)
    return _path("dags", dag, "runs", run_id, "tasks", QUESTION_TASKS[voice], *mapped, "required_actions")


def plan_path(plan_id: str, batch_id: str) -> str:
    """Address of a batch on the page of its plan."""
    return f"{PAGES}{_path('plans', plan_id)}#{quote(batch_id, safe='')}"


def cluster_path(cluster: str) -> str:
    """Address of a cluster's page."""
    return PAGES + _path("clusters", cluster)


def history_path(cluster: str) -> str:
    """Address of a cluster's history."""
    return f"{PAGES}/history?{urlencode({'cluster': cluster})}"


def link(airflow: str, path: str) -> str:
    """Whole address of a path.

    Args:
        airflow: Airflow's base URL; empty: not known, and only the path is returned.
        path: A path of this module.
    """
    return f"{airflow.rstrip('/')}{path}"


def _path(*parts: str) -> str:
    return "".join(f"/{quote(part, safe='')}" for part in parts)
