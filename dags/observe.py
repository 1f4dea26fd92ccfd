"""``pulsar_observe``: observe (collect, then diagnose, in one Spark application) → plan, where somebody is to be asked.

Each cluster has tasks of its own: one that fails or hangs keeps no other waiting, and is left out by later runs while
it is still observed. A try after collecting was done only diagnoses what is there.
"""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

import pulsar_steward.orchestration  # noqa: F401 - refuses an Airflow that lacks something, before it is missed

# isort: split
from airflow.providers.common.compat.sdk import AirflowSkipException
from airflow.sdk import Metadata, dag, get_current_context, task, task_group

from pulsar_steward.orchestration.home import LOOKING, PLAN, QUICK, clusters_at_once, clusters_param, spark_app
from pulsar_steward.orchestration.spark import StewardSpark

SCHEDULE = os.environ.get("STEWARD_SCHEDULE", "*/15 * * * *") or None


@dag(
    dag_id="pulsar_observe",
    schedule=SCHEDULE,
    catchup=False,
    # A cluster that hangs is observed until the task's time limit; the others are observed by later runs meanwhile.
    max_active_runs=16,
    params={"cluster": clusters_param()},
    default_args={"retries": 1, "retry_delay": timedelta(seconds=10)},
    tags=["pulsar-steward"],
    doc_md=__doc__,
)
def pulsar_observe() -> None:
    """Looks at clusters; changes nothing there."""

    @task(execution_timeout=QUICK)
    def prepare(params: dict[str, Any] | None = None) -> list[dict[str, str]]:
        """Names the snapshot of each cluster."""
        from pulsar_steward.orchestration import observing

        return observing.prepare((params or {})["cluster"])

    @task(outlets=[PLAN], execution_timeout=LOOKING, map_index_template="{{ label }}")
    def plan(snapshot: dict[str, str]) -> Any:
        """Plans the snapshot; skipped where nobody has to be asked."""
        from pulsar_steward.orchestration import observing
        from pulsar_steward.orchestration.run_states import RunStates

        context = get_current_context()
        context["label"] = snapshot["cluster"]  # type: ignore[typeddict-unknown-key]  # shown by map_index_template
        run, runs = f"pulsar_observe/{context['run_id']}", RunStates(context["ti"])
        planned = observing.plan_snapshot(snapshot["cluster"], snapshot["snapshot"], run, runs)
        if not planned.plan_ids:
            raise AirflowSkipException(planned.reason)
        # One event for all: a second one of a task would take the place of the first.
        yield Metadata(PLAN, {"cluster": snapshot["cluster"], "plan_ids": list(planned.plan_ids)})

    @task_group
    def cluster(place: dict[str, str]) -> None:
        """One cluster on its way."""
        observe = StewardSpark(
            task_id="observe",
            place=place,
            map_index_template="{{ task.place['cluster'] }}",
            execution_timeout=LOOKING,
            max_active_tis_per_dagrun=clusters_at_once(),
            application=spark_app(__file__, "observe.py"),
            name="pulsar-steward-observe",
        )
        observe >> plan(place)

    cluster.expand(place=prepare())


pulsar_observe()
