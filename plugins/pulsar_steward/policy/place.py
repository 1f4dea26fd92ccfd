"""Where the policies of clusters are kept."""

from __future__ import annotations

import os
from pathlib import Path


def steward_home() -> Path:
    """``STEWARD_HOME``, or ``steward`` in Airflow's own folder: snapshots, policies and the default ledger."""
    chosen = os.environ.get("STEWARD_HOME")
    return Path(chosen) if chosen else Path(os.environ.get("AIRFLOW_HOME", "~/airflow")).expanduser() / "steward"


def policy_file(cluster: str) -> Path:
    """The file with the policy of a cluster: its own, or else the one for all clusters; it need not exist."""
    own = steward_home() / "policies" / f"{cluster}.yaml"
    shared = steward_home() / "policy.yaml"
    return shared if shared.exists() and not own.exists() else own
