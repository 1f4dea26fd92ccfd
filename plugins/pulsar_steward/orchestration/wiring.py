"""What the DAG files share: the asset that leads from one to the other, and parameters that several have."""

from __future__ import annotations

import os
from pathlib import Path

from airflow.sdk import Asset, Param

from pulsar_steward.orchestration.home import default_cluster

PLAN = Asset(name="pulsar_plan", uri="pulsar-steward://plan")
"""Published by ``pulsar_observe`` where there is a plan to ask about; ``pulsar_remediate`` starts on it."""


def spark_app(dag_file: str, name: str) -> str:
    """The file of a Spark job: in ``STEWARD_SPARK_APPS``, or in ``spark_apps`` beside the folder of a DAG's file."""
    folder = os.environ.get("STEWARD_SPARK_APPS") or Path(dag_file).resolve().parents[1] / "spark_apps"
    return str(Path(folder, name))


def cluster_param() -> Param:
    """Which cluster a run is about."""
    return Param(default_cluster(), type="string", title="Cluster", description="pulsar_admin_<cluster>")


def dry_run_param() -> Param:
    """Whether a run only says what it would call."""
    return Param(False, type="boolean", title="Dry run", description="Print the calls; change nothing.")
