"""Steward's home folder, settings from environment variables, and the current time."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from airflow.sdk import Asset, Param

from pulsar_steward.policy.place import private_folder, steward_home


def home() -> Path:
    """Steward's own folder (`steward_home`), created if missing, and accessible only to the user that runs Airflow.

    Raises:
        ConfigurationError: If it cannot be created, or other users may write to it and this user cannot forbid it.
    """
    return private_folder(steward_home())


def snapshots_uri() -> str:
    """URI of the folder of snapshots: ``STEWARD_SNAPSHOTS`` (any URI that Spark can write), or a folder of `home`."""
    # On an object store `a//b` is another key than `a/b`, which the jobs write.
    return os.environ.get("STEWARD_SNAPSHOTS", "").rstrip("/") or str(home() / "snapshots")


def default_cluster() -> str:
    """The cluster that scheduled runs observe: ``STEWARD_CLUSTER``, or ``local``."""
    return os.environ.get("STEWARD_CLUSTER", "local")


def now() -> datetime:
    """Current time, UTC."""
    return datetime.now(UTC)


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
