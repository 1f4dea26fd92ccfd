"""Addresses within Airflow of questions and of Steward's pages; whatever a name holds, it is one part of a path."""

from __future__ import annotations

from urllib.parse import quote, urlencode

PAGES = "/steward"
"""Where Steward's pages are within Airflow's API server."""

REQUIRED_ACTIONS = "/required_actions?response_received=false"
"""Airflow's list of everything that waits for an answer."""


def question_path(run: str, voice: int) -> str:
    """Address of a question, as Airflow's own pages link to it.

    Args:
        run: The requesting run, ``dag/run/map index``.
        voice: Number of the approver: 1, or 2 where a second person is asked.
    """
    dag, _, rest = run.partition("/")
    run_id, _, map_index = rest.rpartition("/")
    task = "batch.approve" if voice == 1 else "batch.confirm"
    return _path("dags", dag, "runs", run_id, "tasks", task, "mapped", map_index, "required_actions")


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
        airflow: Airflow's base URL; empty: not known, and the path has to do.
        path: A path of this module.
    """
    return f"{airflow.rstrip('/')}{path}"


def _path(*parts: str) -> str:
    return "".join(f"/{quote(part, safe='')}" for part in parts)
