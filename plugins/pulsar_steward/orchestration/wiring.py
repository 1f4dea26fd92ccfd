"""Common parts of the DAG files: the asset that connects them, shared parameters, time limits."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

from airflow.sdk import Asset, Param

from pulsar_steward.orchestration.home import default_cluster

PLAN = Asset(name="pulsar_plan", uri="pulsar-steward://plan")
"""Asset published by ``pulsar_observe`` if there is a plan to ask about; it triggers ``pulsar_remediate``."""

QUICK = timedelta(minutes=30)
"""Time limit of a task that reads mainly the ledger; normally the task takes seconds.

It also limits the two parts of an approval, before and after the answer. The wait between them is limited by
`approval.response_timeout_minutes`.
"""

TELLING = timedelta(minutes=5)
"""Time limit of a task that sends messages; `pulsar_steward.notify.retries.CLAIM_VALID` is longer."""

LOOKING = timedelta(hours=2)
"""Time limit of a task that reads a whole cluster, snapshot or ledger.

A million partitions take minutes, and each call ends after at most `admin.total_timeout_seconds`.
"""

CHANGING = timedelta(hours=12)
"""Time limit of one try of carrying out a batch.

A try makes no call later than `approval.valid_minutes` after the answer, or after the opening of the window that it
waited for (`orchestration/applying.py`). Within that time it may wait for another writer (`apply.lease_wait_seconds`),
and each step may wait for its pace and its proof. A try that is cut short is like a crash: the next try reads the
cluster and goes on.
"""


def spark_app(dag_file: str, name: str) -> str:
    """File of a Spark job: in ``STEWARD_SPARK_APPS``, or in ``spark_apps`` beside the folder of a DAG's file."""
    folder = os.environ.get("STEWARD_SPARK_APPS") or Path(dag_file).resolve().parents[1] / "spark_apps"
    return str(Path(folder, name))


def cluster_param() -> Param:
    """Run parameter for the cluster."""
    return Param(default_cluster(), type="string", title="Cluster", description="pulsar_admin_<cluster>")


def dry_run_param() -> Param:
    """Run parameter for a dry run, which only prints the calls."""
    return Param(False, type="boolean", title="Dry run", description="Print the calls; change nothing.")
