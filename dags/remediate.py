"""``pulsar_remediate``: asks a person about each batch of a plan, carries out what was approved, and proves it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import Param, TriggerRule, dag, get_current_context, task, task_group
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from pulsar_steward.orchestration.approval import ApproveBatch, run_key
from pulsar_steward.orchestration.wiring import PLAN, cluster_param

PARAMS = {
    "cluster": cluster_param(),
    "plan_id": Param(None, type=["null", "string"], title="Plan", description="The newest of the cluster by default."),
    "kinds": Param([], type="array", items={"type": "string"}, title="Kinds", description="All kinds by default."),
    "dry_run": Param(False, type="boolean", title="Dry run", description="Print the calls; change nothing."),
}


@dag(
    dag_id="pulsar_remediate",
    schedule=[PLAN],
    catchup=False,
    params=PARAMS,
    tags=["pulsar-steward"],
    doc_md=__doc__,
)
def pulsar_remediate() -> None:
    """One mapped group per batch: approve → apply → verify."""

    @task
    def choose(params: dict[str, Any] | None = None) -> list[dict[str, str]]:
        """Names the batches to ask about; none in a dry run, which prints the calls instead."""
        from pulsar_steward.orchestration import remediating  # noqa: PLC0415 - keeps parsing this file light

        context = get_current_context()
        given = params or {}
        events = context.get("triggering_asset_events") or {}
        published = [event.extra for event in events.get(PLAN, [])] if events else []
        wanted = remediating.wanted_by(given, published)
        run = f"pulsar_remediate/{context['run_id']}"
        if given.get("dry_run"):
            print(remediating.dry_run(wanted, run))  # noqa: T201 - the task's log is where a dry run is read
            return []
        return remediating.choose(wanted, run)

    @task_group
    def batch(ref: dict[str, str]) -> None:
        """One batch on its way. Skipping gates nothing: `apply` asks the ledger itself."""
        # Airflow loses an answer that comes before its scheduler has noticed the wait, and fails the task: ask again.
        approve = ApproveBatch(
            task_id="approve",
            batch=ref,
            map_index_template="{{ task.batch['label'] }}",
            retries=2,
            retry_delay=timedelta(seconds=3),
        )

        @task(
            trigger_rule=TriggerRule.ALL_DONE,
            retries=2,
            retry_delay=timedelta(seconds=10),
            map_index_template="{{ label }}",
        )
        def apply(ref: dict[str, str]) -> list[str]:
            """Carries out exactly what the ledger says was approved."""
            return _apply(ref)

        @task(
            trigger_rule=TriggerRule.ALL_DONE,
            retries=2,
            retry_delay=timedelta(seconds=10),
            map_index_template="{{ label }}",
        )
        def verify(ref: dict[str, str]) -> str:
            """Reads the outcome back from the brokers."""
            return _verify(ref)

        approve >> apply(ref) >> verify(ref)

    @task(trigger_rule=TriggerRule.ALL_DONE)
    def report(refs: list[dict[str, str]] | None) -> str:
        """Says what came of everything; fails where an operator has to look."""
        from pulsar_steward.orchestration import remediating  # noqa: PLC0415 - keeps parsing this file light

        if refs is None:
            raise AirflowFailException("no batch could be chosen: see the log of `choose`")
        chosen = [remediating.BatchRef(**ref) for ref in refs]
        told, troubles = remediating.tell(chosen, f"pulsar_remediate/{get_current_context()['run_id']}")
        print(told)  # noqa: T201 - the task's log is the report
        if troubles:
            raise AirflowFailException("; ".join(troubles))
        return told

    chosen = choose()
    batch.expand(ref=chosen) >> report(chosen)  # type: ignore[arg-type]  # an XComArg stands for its value


def _apply(ref: dict[str, str]) -> list[str]:
    from pulsar_steward.errors import Refused  # noqa: PLC0415 - keeps parsing this file light
    from pulsar_steward.orchestration import remediating  # noqa: PLC0415 - as above

    batch, run = remediating.BatchRef(**ref), _named_run(ref)
    try:
        outcomes = remediating.apply_batch(batch, run)
    except Refused as refusal:
        if remediating.was_approved(batch, run):
            raise AirflowFailException(f"approved, and refused all the same: {refusal}") from refusal
        raise AirflowSkipException(f"nothing was changed: {refusal}") from refusal
    if not all(outcome.outcome == "done" for outcome in outcomes):
        words = "; ".join(f"{outcome.step_id} {outcome.outcome}: {outcome.reason}" for outcome in outcomes)
        raise AirflowFailException(words)
    return [f"{outcome.step_id} {outcome.outcome}: {outcome.reason}" for outcome in outcomes]


def _verify(ref: dict[str, str]) -> str:
    from pulsar_steward.orchestration import remediating  # noqa: PLC0415 - keeps parsing this file light

    batch, run = remediating.BatchRef(**ref), _named_run(ref)
    proof = remediating.verify_batch(batch, run)
    if not remediating.was_approved(batch, run):
        raise AirflowSkipException(proof.reason)
    if not proof.proved:
        raise AirflowFailException(proof.reason)
    return proof.reason


def _named_run(ref: dict[str, str]) -> str:
    """The run of this batch; the pages show the task under the batch's label from here on."""
    context = get_current_context()
    context["label"] = ref["label"]  # type: ignore[typeddict-unknown-key]  # what map_index_template shows
    return run_key(context)


pulsar_remediate()
