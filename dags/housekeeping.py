"""``pulsar_housekeeping``: removes snapshots past their keep time, and compares the ledger with its chain."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

import pulsar_steward.orchestration  # noqa: F401 - refuses an Airflow that lacks something, before it is missed

# isort: split
from airflow.sdk import dag, task

from pulsar_steward.orchestration.home import LOOKING, QUICK, clusters_at_once, clusters_param, spark_app
from pulsar_steward.orchestration.spark import StewardSpark

SCHEDULE = os.environ.get("STEWARD_HOUSEKEEPING_SCHEDULE", "17 3 * * *") or None


@dag(
    dag_id="pulsar_housekeeping",
    schedule=SCHEDULE,
    catchup=False,
    max_active_runs=1,
    params={"cluster": clusters_param()},
    default_args={"retries": 1, "retry_delay": timedelta(minutes=1)},
    tags=["pulsar-steward"],
    doc_md=__doc__,
)
def pulsar_housekeeping() -> None:
    """Touches no cluster."""

    @task(execution_timeout=QUICK)
    def places(params: dict[str, Any] | None = None) -> list[dict[str, str]]:
        """Each cluster with the folder of the snapshots."""
        from pulsar_steward.model.cluster import named_clusters
        from pulsar_steward.orchestration import home

        return [{"cluster": each, "root": home.snapshots_uri()} for each in named_clusters((params or {})["cluster"])]

    @task(execution_timeout=LOOKING)
    def ledger() -> str:
        """Fails where the ledger is not what was written, and names the row; else says where its chain ends."""
        from pulsar_steward.orchestration import housekeeping

        return housekeeping.compare_ledger()

    StewardSpark.partial(
        task_id="snapshots",
        map_index_template="{{ task.place['cluster'] }}",
        execution_timeout=LOOKING,
        max_active_tis_per_dagrun=clusters_at_once(),
        application=spark_app(__file__, "housekeeping.py"),
        name="pulsar-steward-housekeeping",
    ).expand(place=places())
    ledger()


pulsar_housekeeping()
