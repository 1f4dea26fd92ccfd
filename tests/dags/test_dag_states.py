"""Which DAGs are paused, read from Airflow's own tables."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from pulsar_steward.cli.airflow_process import ask_airflow
from pulsar_steward.cli.doctor.asking import by_airflow

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

MAKE = """
from airflow import settings
from airflow.models import import_all_models
from airflow.models.dag import DagModel
from airflow.models.dagbundle import DagBundleModel
from airflow.utils.session import create_session
import_all_models()
DagModel.metadata.create_all(settings.engine)
with create_session() as session:
    session.add(DagBundleModel(name="dags"))
    session.flush()
    for dag_id, is_paused, is_stale in (
        ("pulsar_observe", False, False),
        ("pulsar_remediate", True, False),
        ("pulsar_rollback", True, True),
        ("somebody_elses", True, False),
    ):
        session.add(DagModel(dag_id=dag_id, bundle_name="dags", is_paused=is_paused, is_stale=is_stale))
"""


def test_airflow_says_which_are_paused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of Steward's DAGs that Airflow still finds it is read whether each is paused; of a failure nothing is known."""
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path))
    monkeypatch.setenv("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", f"sqlite:///{tmp_path / 'airflow.db'}")
    assert ask_airflow("no_such_module", None, dict[str, bool]) is None
    subprocess.run([sys.executable, "-W", "ignore", "-c", MAKE], check=True, capture_output=True)
    assert by_airflow() == {"pulsar_observe": False, "pulsar_remediate": True}
