"""``pulsar_remediate``: asks a person about each batch of a plan, carries out what was approved, and proves it."""

from __future__ import annotations

from typing import Any

import pulsar_steward.orchestration  # noqa: F401 - refuses an Airflow that lacks something, before it is missed

# isort: split
from airflow.sdk import Param, dag, get_current_context, task

from pulsar_steward.orchestration.batch_tasks import approve_apply_verify, run_of_dag
from pulsar_steward.orchestration.home import LOOKING, PLAN, cluster_param, dry_run_param

PARAMS = {
    "cluster": cluster_param(),
    "plan_id": Param(None, type=["null", "string"], title="Plan", description="The newest of the cluster by default."),
    "kinds": Param([], type="array", items={"type": "string"}, title="Kinds", description="All kinds by default."),
    "dry_run": dry_run_param(),
}


@dag(
    dag_id="pulsar_remediate",
    schedule=[PLAN],
    catchup=False,
    # A run lasts until its last question is answered, and what was approved may wait for its window: by Airflow's
    # default of 16 the seventeenth would not be asked, without a word.
    max_active_runs=256,
    params=PARAMS,
    tags=["pulsar-steward"],
    doc_md=__doc__,
)
def pulsar_remediate() -> None:
    """One mapped group per batch: approve → apply → verify."""

    @task(execution_timeout=LOOKING)
    def choose(params: dict[str, Any] | None = None) -> list[dict[str, str]]:
        """Names the batches to ask about; none in a dry run, which prints the calls instead."""
        from pulsar_steward.orchestration import remediating

        given = params or {}
        events = get_current_context().get("triggering_asset_events") or {}
        published = [event.extra for event in events.get(PLAN, [])] if events else []
        wanted = remediating.wanted_by(given, published)
        if given.get("dry_run"):
            print(remediating.dry_run(wanted, run_of_dag()))
            return []
        return remediating.choose(wanted, run_of_dag())

    approve_apply_verify(choose())


pulsar_remediate()
