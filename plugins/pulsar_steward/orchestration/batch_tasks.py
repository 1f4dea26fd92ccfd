"""Tasks of every DAG that changes a cluster: per batch approve (→ confirm) → apply → verify, and a report.

Airflow's skipping is no gate: `apply` reads the ledger itself.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowFailException, AirflowSkipException
from airflow.sdk import TriggerRule, get_current_context, task, task_group

from pulsar_steward.orchestration.applying import ApplyBatch
from pulsar_steward.orchestration.approval import ApproveBatch, run_key
from pulsar_steward.orchestration.home import CHANGING, LOOKING, QUICK

if TYPE_CHECKING:
    from airflow.sdk import XComArg

ASKING_TASKS = ("batch.approve", "batch.confirm")
"""Ids of the tasks that ask people. If one fails, the run fails; Airflow itself looks at the last task only."""


def approve_apply_verify(chosen: XComArg) -> None:
    """Creates one mapped task group per chosen batch, and the report after them.

    Args:
        chosen: The task that returns the batches, each a `pulsar_steward.orchestration.batches.BatchRef` in builtins.
    """
    _batch.expand(ref=chosen) >> _report(chosen)  # type: ignore[arg-type]  # an XComArg stands for its value


def run_of_dag() -> str:
    """Key of the run without a map index, ``dag/run``."""
    context = get_current_context()
    return f"{context['ti'].dag_id}/{context['run_id']}"


@task_group(group_id="batch")
def _batch(ref: dict[str, str]) -> None:
    """One batch on its way."""
    # Airflow loses an answer that comes before its scheduler has seen the wait, and fails the task; a retry asks again.
    again: dict[str, Any] = {"retries": 2, "retry_delay": timedelta(seconds=3)}
    label = "{{ task.batch['label'] }}"
    approve = ApproveBatch(task_id="approve", batch=ref, map_index_template=label, **again)
    confirm = ApproveBatch(
        task_id="confirm", batch=ref, voice=2, map_index_template=label, trigger_rule=TriggerRule.ALL_DONE, **again
    )
    # Set here: the operator's argument of this name is the time limit of the answer.
    approve.execution_timeout = confirm.execution_timeout = QUICK
    apply = ApplyBatch(
        task_id="apply",
        batch=ref,
        map_index_template=label,
        trigger_rule=TriggerRule.ALL_DONE,
        execution_timeout=CHANGING,
        retries=2,
        retry_delay=timedelta(seconds=10),
    )
    approve >> confirm >> apply >> _verify(ref)


@task(
    task_id="verify",
    execution_timeout=LOOKING,
    trigger_rule=TriggerRule.ALL_DONE,
    retries=2,
    retry_delay=timedelta(seconds=10),
    map_index_template="{{ label }}",
)
def _verify(ref: dict[str, str]) -> str:
    """Reads the outcome back from the brokers."""
    from pulsar_steward.orchestration import batches
    from pulsar_steward.outside_text import shown

    batch, run = batches.BatchRef.read(ref), _named_run(ref)
    if over := batches.ended_unbegun(batch, run):
        raise AirflowSkipException(f"nothing was changed: {shown(over)}")
    proof = batches.verify_batch(batch, run)
    reason = shown(proof.reason)
    if not batches.was_approved(batch, run):
        raise AirflowSkipException(reason)
    if not proof.proved:
        raise AirflowFailException(reason)
    return reason


@task(task_id="report", trigger_rule=TriggerRule.ALL_DONE, execution_timeout=QUICK)
def _report(refs: list[dict[str, str]] | None) -> str:
    """Says what came of everything; fails where an operator has to look."""
    from pulsar_steward.orchestration import batches
    from pulsar_steward.orchestration.run_states import RunStates

    if refs is None:
        raise AirflowFailException("no batch could be chosen: see the log of `choose`")
    told, troubles = batches.tell([batches.BatchRef.read(ref) for ref in refs], run_of_dag())
    print(told)  # noqa: T201 - the task's log is the report
    failed = RunStates(get_current_context()["ti"]).failed(run_of_dag(), ASKING_TASKS)
    if troubles := (*(f"{name} failed: its log says why" for name in failed), *troubles):
        raise AirflowFailException("; ".join(troubles))
    return told


def _named_run(ref: dict[str, Any]) -> str:
    """Key of this batch's run; also has Airflow's pages show the task under the batch's label."""
    context = get_current_context()
    context["label"] = ref["label"]  # type: ignore[typeddict-unknown-key]  # shown by map_index_template
    return run_key(context)
