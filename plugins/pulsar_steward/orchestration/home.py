"""Steward's home folder, settings from environment variables, and the current time."""

from __future__ import annotations

import fcntl
import logging
import os
import re
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset, Param

from pulsar_steward.errors import ConfigurationError
from pulsar_steward.model.cluster import named_clusters, require_cluster_name
from pulsar_steward.policy.place import private_folder, steward_home

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

log = logging.getLogger(__name__)


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


def observed_clusters() -> tuple[str, ...]:
    """The clusters that scheduled runs observe: ``STEWARD_CLUSTER``, divided by commas, or ``local``.

    Raises:
        ConfigurationError: If a name is not valid, or there is none.
    """
    return named_clusters(os.environ.get("STEWARD_CLUSTER", "local"))


def clusters_at_once() -> int:
    """Number of clusters that a run observes side by side: ``STEWARD_CLUSTERS_AT_ONCE``, or 4.

    Raises:
        ConfigurationError: If it is no whole number from 1 on.
    """
    text = os.environ.get("STEWARD_CLUSTERS_AT_ONCE", "4")
    if not re.fullmatch("[1-9][0-9]{0,3}", text):
        raise ConfigurationError(f"STEWARD_CLUSTERS_AT_ONCE is {text!r}: give a whole number from 1 on")
    return int(text)


@contextmanager
def observed_alone(cluster: str) -> Iterator[bool]:
    """Holds a cluster's observation for this process, as long as it runs: an earlier run may still be at it.

    Returns:
        False: another process that has the same `home` observes the cluster.

    Raises:
        ConfigurationError: If the cluster's name is not valid; it may come from another task.
    """
    file = private_folder(home() / "observing") / require_cluster_name(cluster)
    with file.open("a") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        except OSError as error:  # a file system without locks
            log.warning("whether another run observes %s is not known: %s", cluster, error.strerror)
            yield True
        else:
            yield True


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
"""Time limit of a task that sends messages; `pulsar_steward.notify.gather.CLAIM_VALID` is longer."""

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


def clusters_param() -> Param:
    """Run parameter for one or more clusters."""
    return Param(
        ",".join(observed_clusters()), type="string", title="Cluster", description="pulsar_admin_<cluster>, by commas"
    )


def cluster_param() -> Param:
    """Run parameter for one cluster; without a default, if scheduled runs observe several."""
    names = observed_clusters()
    return Param(
        names[0] if len(names) == 1 else None,
        type=["null", "string"],
        title="Cluster",
        description="pulsar_admin_<cluster>",
    )


def chosen_cluster(params: Mapping[str, Any]) -> str:
    """The cluster of a run's parameters.

    Raises:
        ConfigurationError: If none is given, or no valid one.
    """
    if not params.get("cluster"):
        raise ConfigurationError(f"give the run's parameter `cluster`: one of {', '.join(observed_clusters())}")
    return require_cluster_name(params["cluster"])


def dry_run_param() -> Param:
    """Run parameter for a dry run, which only prints the calls."""
    return Param(False, type="boolean", title="Dry run", description="Print the calls; change nothing.")
