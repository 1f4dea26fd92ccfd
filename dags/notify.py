"""``pulsar_notify``: tells the recipients of the policy what waits, what was done, and what went wrong, each once."""

from __future__ import annotations

import os

import pulsar_steward.orchestration  # noqa: F401 - refuses an Airflow that lacks something, before it is missed

# isort: split
from airflow.providers.common.compat.sdk import AirflowSkipException
from airflow.sdk import dag, get_current_context, task

from pulsar_steward.orchestration.home import TELLING

SCHEDULE = os.environ.get("STEWARD_NOTIFY_SCHEDULE", "* * * * *") or None


@dag(
    dag_id="pulsar_notify",
    schedule=SCHEDULE,
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=True,  # where nobody is to be told, nothing runs
    tags=["pulsar-steward"],
    doc_md=__doc__,
)
def pulsar_notify() -> None:
    """Reads the ledger and snapshots; touches no cluster."""

    @task(execution_timeout=TELLING)
    def notify() -> str:
        """Queues and sends messages; skipped where no policy names a recipient."""
        from pulsar_steward.orchestration import notifying
        from pulsar_steward.orchestration.run_states import RunStates

        done = notifying.notify(RunStates(get_current_context()["ti"]))
        if done is None:
            raise AirflowSkipException("no policy names a recipient of messages: nothing is sent")
        return done

    notify()


pulsar_notify()
