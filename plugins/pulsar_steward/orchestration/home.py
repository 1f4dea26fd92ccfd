"""Where Steward keeps its things, and the clock that it goes by."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path


def home() -> Path:
    """``STEWARD_HOME``, or ``steward`` in Airflow's own folder: snapshots, policies and the default ledger."""
    chosen = os.environ.get("STEWARD_HOME")
    return Path(chosen) if chosen else Path(os.environ.get("AIRFLOW_HOME", "~/airflow")).expanduser() / "steward"


def snapshots_uri() -> str:
    """Where snapshots go: ``STEWARD_SNAPSHOTS`` (any URI that Spark can write), or a folder of `home`."""
    return os.environ.get("STEWARD_SNAPSHOTS") or str(home() / "snapshots")


def policy_file(cluster: str) -> Path:
    """The policy of a cluster; it need not exist."""
    return home() / "policies" / f"{cluster}.yaml"


def default_cluster() -> str:
    """The cluster that scheduled runs look at: ``STEWARD_CLUSTER``, or ``local``."""
    return os.environ.get("STEWARD_CLUSTER", "local")


def now() -> datetime:
    """The present, UTC."""
    return datetime.now(UTC)
