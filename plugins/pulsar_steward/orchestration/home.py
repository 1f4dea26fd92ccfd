"""Where Steward keeps its things, and the clock that it goes by."""

from __future__ import annotations

import os
from datetime import UTC, datetime

from pulsar_steward.policy.place import policy_file
from pulsar_steward.policy.place import steward_home as home

__all__ = ["default_cluster", "home", "now", "policy_file", "snapshots_uri"]


def snapshots_uri() -> str:
    """Where snapshots go: ``STEWARD_SNAPSHOTS`` (any URI that Spark can write), or a folder of `home`."""
    # On an object store `a//b` is another key than `a/b`, which the jobs write.
    return os.environ.get("STEWARD_SNAPSHOTS", "").rstrip("/") or str(home() / "snapshots")


def default_cluster() -> str:
    """The cluster that scheduled runs look at: ``STEWARD_CLUSTER``, or ``local``."""
    return os.environ.get("STEWARD_CLUSTER", "local")


def now() -> datetime:
    """The present, UTC."""
    return datetime.now(UTC)
