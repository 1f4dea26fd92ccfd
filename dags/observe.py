"""``pulsar_observe``: observe (collect, then diagnose, in one Spark application) → plan, where somebody is to be asked.

A try after collecting was done only diagnoses what is there.
"""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

import pulsar_steward.orchestration  # noqa: F401 - refuses an Airflow that lacks something, before it is missed

# isort: split
from airflow.providers.common.compat.sdk import AirflowSkipException
from airflow.sdk import Metadata, dag, get_current_context, task

from pulsar_steward.orchestration.home import LOOKING, PLAN, QUICK, cluster_param, spark_app
from pulsar_steward.orchestration.spark import StewardSpark

SCHEDULE = os.environ.get("STEWARD_SCHEDULE", "*/15 * * * *") or None


@dag(
    dag_id="pulsar_observe",
    schedule=SCHEDULE,
    catchup=False,
    max_active_runs=1,
    params={"cluster": cluster_param()},
    default_args={"retries": 1, "retry_delay": timedelta(seconds=10)},
    tags=["pulsar-steward"],
    doc_md=__doc__,
)
def pulsar_observe() -> None:
    """Looks at a cluster; changes nothing there."""

    @task(execution_timeout=QUICK)
    def prepare(params: dict[str, Any] | None = None) -> dict[str, str]:
        """Names the snapshot."""
        from pulsar_steward.orchestration import observing

        return observing.prepare((params or {})["cluster"])

    place = "ti.xcom_pull(task_ids='prepare')"
    observe = StewardSpark(
        task_id="observe",
        execution_timeout=LOOKING,
        cluster=f"{{{{ {place}['cluster'] }}}}",
        needs_admin=True,
        application=spark_app(__file__, "observe.py"),
        name="pulsar-steward-observe",
        application_args=[
            *("--cluster", f"{{{{ {place}['cluster'] }}}}"),
            *("--out", f"{{{{ {place}['root'] }}}}"),
            *("--taken-at", f"{{{{ {place}['taken_at'] }}}}"),
        ],
    )

    @task(outlets=[PLAN], execution_timeout=LOOKING)
    def plan(snapshot: dict[str, str]) -> Any:
        """Plans the snapshot; skipped where nobody has to be asked."""
        from pulsar_steward.orchestration import observing
        from pulsar_steward.orchestration.run_states import RunStates

        context = get_current_context()
        run, runs = f"pulsar_observe/{context['run_id']}", RunStates(context["ti"])
        planned = observing.plan_snapshot(snapshot["cluster"], snapshot["snapshot"], run, runs)
        if not planned.plan_ids:
            raise AirflowSkipException(planned.reason)
        # One event for all: a second one of a task would take the place of the first.
        yield Metadata(PLAN, {"cluster": snapshot["cluster"], "plan_ids": list(planned.plan_ids)})

    prepared = prepare()
    prepared >> observe >> plan(prepared)  # type: ignore[arg-type]  # an XComArg stands for its value


pulsar_observe()
