"""Addresses within Airflow are those that its pages have."""

from __future__ import annotations

import pytest

from pulsar_steward.notify.compose import question_path
from tests.unit.notify.airflow_ui import leads_to, routes_below_runs

MAPPED = "dags/:dagId/runs/:runId/tasks/:taskId/mapped/:mapIndex/required_actions"
NOT_MAPPED = "dags/:dagId/runs/:runId/tasks/:taskId/required_actions"


@pytest.mark.parametrize(
    ("voice", "index", "path", "route"),
    [
        (1, "7", "/dags/dag/runs/run%2Fwith%2F3%3A%2B/tasks/batch.approve/mapped/7/required_actions", MAPPED),
        (2, "0", "/dags/dag/runs/run%2Fwith%2F3%3A%2B/tasks/batch.confirm/mapped/0/required_actions", MAPPED),
        (1, "-1", "/dags/dag/runs/run%2Fwith%2F3%3A%2B/tasks/batch.approve/required_actions", NOT_MAPPED),
    ],
)
def test_questions_are_where_airflow_has_them(voice: int, index: str, path: str, route: str) -> None:
    """A question's path matches exactly one route of the installed Airflow, also where a run's name holds slashes."""
    assert question_path(f"dag/run/with/3:+/{index}", voice) == path
    assert [each for each in routes_below_runs() if leads_to(path, each)] == [route]


def test_other_addresses_are_told_apart() -> None:
    """A path that Airflow's pages do not have matches none of their routes."""
    routes = routes_below_runs()
    assert routes >= {MAPPED, NOT_MAPPED}
    assert not any(leads_to("/dags/dag/runs/run/tasks/batch.approve/mapped/7/questions", each) for each in routes)
    assert not any(leads_to("/dags/dag/runs/run/required_actions/7", each) for each in routes)
