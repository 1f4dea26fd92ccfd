"""Steward's home folder, settings from environment variables, and the current time."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pulsar_steward.policy.place import private_folder, steward_home

if TYPE_CHECKING:
    from pathlib import Path


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
