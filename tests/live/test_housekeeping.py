"""``pulsar_housekeeping`` in a real Airflow: what was left behind goes, and the ledger is compared with its chain."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.live.care import Care

pytestmark = [
    pytest.mark.live,
    pytest.mark.extended(
        "tests/dags/test_dags.py", "tests/spark/test_commands.py::test_housekeeping_says_how_many_are_left"
    ),
]

WITHIN_S = 180.0


def tidied(care: Care) -> tuple[str, dict[str, str | None]]:
    """Runs the DAG to its end; its state, and its tasks'."""
    run = care.airflow.api.trigger("pulsar_housekeeping", {"cluster": care.cluster})
    state = care.airflow.api.wait_for_run("pulsar_housekeeping", run, WITHIN_S)
    return state, care.airflow.api.states("pulsar_housekeeping", run)


def _snapshots(care: Care) -> Path:
    return care.airflow.spec.steward_home / "snapshots" / f"cluster={care.cluster}"


def test_old_snapshots_go(care: Care) -> None:
    """Housekeeping removes an old snapshot that was left unfinished, and its check of the ledger succeeds."""
    left_behind = _snapshots(care) / "taken_at=20200101T000000Z"
    (left_behind / "topics").mkdir(parents=True)
    assert tidied(care) == ("success", {"places": "success", "snapshots[0]": "success", "ledger": "success"})
    assert not left_behind.exists()
