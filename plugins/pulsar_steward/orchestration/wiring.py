"""What the DAG files share: the asset that leads from one to the other, and a parameter that all have."""

from __future__ import annotations

from airflow.sdk import Asset, Param

from pulsar_steward.orchestration.home import default_cluster

PLAN = Asset(name="pulsar_plan", uri="pulsar-steward://plan")
"""Published by ``pulsar_observe`` where there is a plan to ask about; ``pulsar_remediate`` starts on it."""


def cluster_param() -> Param:
    """Which cluster a run is about."""
    return Param(default_cluster(), type="string", title="Cluster", description="pulsar_admin_<cluster>")
