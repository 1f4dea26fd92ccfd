"""What the DAG files share: the asset that leads from one to the other, parameters that several have, time limits."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

from airflow.sdk import Asset, Param

from pulsar_steward.orchestration.home import default_cluster

PLAN = Asset(name="pulsar_plan", uri="pulsar-steward://plan")
"""Published by ``pulsar_observe`` where there is a plan to ask about; ``pulsar_remediate`` starts on it."""

QUICK = timedelta(minutes=30)
"""For a task that asks the ledger, and no broker for long: it takes seconds. It also bounds each of the two parts of an
approval, before and after somebody answers; the wait between them is `approval.response_timeout_minutes`."""

LOOKING = timedelta(hours=2)
"""For a task that looks through a whole cluster, snapshot or ledger: minutes for a million partitions, and each call is
over after `admin.total_timeout_seconds`."""

CHANGING = timedelta(hours=12)
"""For one try of carrying a batch out. It makes no call later than `approval.valid_minutes` after the answer (an hour),
before which it may wait for another writer (`apply.lease_wait_seconds`), and each step for its pace and its proof. Cut
short, a try leaves what a crash leaves, and the next one reads the cluster and goes on."""


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
