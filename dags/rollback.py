"""``pulsar_rollback``: takes back a batch that was carried out; asks first, carries the way back out, and proves it."""

from __future__ import annotations

from typing import Any

import pulsar_steward.orchestration  # noqa: F401 - refuses an Airflow that lacks something, before it is missed

# isort: split
from airflow.sdk import Param, dag, task

from pulsar_steward.orchestration.batch_tasks import approve_apply_verify, run_of_dag
from pulsar_steward.orchestration.home import LOOKING, cluster_param, dry_run_param

PARAMS = {
    "cluster": cluster_param(),
    "plan_id": Param(
        None, type=["null", "string"], title="Plan", description="The one carried out last in the cluster by default."
    ),
    "batch_id": Param(
        None, type=["null", "string"], title="Batch", description="The plan's one carried out last by default."
    ),
    "dry_run": dry_run_param(),
}


@dag(dag_id="pulsar_rollback", schedule=None, catchup=False, params=PARAMS, tags=["pulsar-steward"], doc_md=__doc__)
def pulsar_rollback() -> None:
    """Choose → approve → apply → verify, as for any other batch."""

    @task(execution_timeout=LOOKING)
    def choose(params: dict[str, Any] | None = None) -> list[dict[str, str]]:
        """Records the plan of the way back and names its batch; a dry run prints the calls instead."""
        from pulsar_steward.orchestration import rolling_back

        given = params or {}
        wanted = rolling_back.wanted_by(given)
        if given.get("dry_run"):
            print(rolling_back.dry_run(wanted, run_of_dag()))
            return []
        return rolling_back.choose(wanted, run_of_dag())

    approve_apply_verify(choose())


pulsar_rollback()
