"""Choice of the plans and batches that a run of ``pulsar_remediate`` requests approval for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pulsar_steward.apply.rehearse import rehearse
from pulsar_steward.errors import ConfigurationError, NotInLedger, Refused
from pulsar_steward.orchestration.batches import BatchRef
from pulsar_steward.orchestration.context import TaskContext, open_context
from pulsar_steward.outside_text import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pulsar_steward.model.plan import Plan

MAX_BATCHES = 1000
"""Airflow expands a task at most 1,024 times (``[core] max_map_length``)."""


class RemediateParams(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of a run.

    Attributes:
        cluster: The cluster's name in Steward's connections.
        plan_id: The plan; None: the newest of the cluster that is no rollback.
        kinds: Kinds of batches to ask about; empty means all.
    """

    cluster: str
    plan_id: str | None
    kinds: tuple[str, ...] = ()


def wanted_by(params: Mapping[str, Any], published: Iterable[Mapping[str, Any]]) -> tuple[RemediateParams, ...]:
    """Plans that a run is about: those whose publication triggered it, the newest of each cluster, or its parameters.

    Args:
        params: The run's parameters.
        published: The extra of each asset event that triggered the run, oldest first.
    """
    newest = {event["cluster"]: event["plan_id"] for event in published if "plan_id" in event}
    kinds = tuple(params.get("kinds") or ())
    if newest:
        return tuple(
            RemediateParams(cluster=name, plan_id=plan_id, kinds=kinds) for name, plan_id in sorted(newest.items())
        )
    return (RemediateParams(cluster=params["cluster"], plan_id=params.get("plan_id") or None, kinds=kinds),)


def choose(wanted: Sequence[RemediateParams], run: str) -> list[dict[str, str]]:
    """Batches to request approval for, most urgent first.

    Raises:
        NotInLedger: If there is no such plan.
        Refused: If a newer plan superseded it.
        ConfigurationError: If there are more batches than Airflow can expand in one run.
    """
    chosen = [msgspec.to_builtins(ref) for each in wanted for ref in _refs(each, run)]
    if len(chosen) > MAX_BATCHES:
        raise ConfigurationError(f"more than {MAX_BATCHES} batches in one run, {len(chosen)}: choose by `kinds`")
    return chosen


def dry_run(wanted: Sequence[RemediateParams], run: str) -> str:
    """Text of the calls that would be made on the live clusters now; recorded in the ledger, changes nothing."""
    texts = []
    for each in wanted:
        with open_context(each.cluster, run) as task, task.reading_here() as context:
            plan = _plan(task, each)
            batches = [batch for batch in plan.batches if not each.kinds or batch.kind in each.kinds]
            text = "\n\n".join(rehearse(context, plan, batch) for batch in batches)
            text = text or shown(f"plan {plan.plan_id} changes nothing: {'; '.join(plan.notes)}")
            task.ledger_writer.record_dry_run(plan.plan_id, run, text, task.clock())
            texts.append(text)
    return "\n\n".join(texts)


def _refs(wanted: RemediateParams, run: str) -> list[BatchRef]:
    with open_context(wanted.cluster, run) as task:
        plan = _plan(task, wanted)
        return [BatchRef.of(plan, batch) for batch in plan.batches if not wanted.kinds or batch.kind in wanted.kinds]


def _plan(task: TaskContext, wanted: RemediateParams) -> Plan:
    if wanted.plan_id is None:
        rows = task.ledger.plans(wanted.cluster, limit=1, ways_back=False)
        if not rows:
            raise NotInLedger(f"the ledger holds no plan for cluster {wanted.cluster!r}: run pulsar_observe first")
        return task.ledger.plan(rows[0].plan_id)
    row = task.ledger.plan_row(wanted.plan_id)
    if row.cluster != wanted.cluster:
        raise Refused(f"plan {row.plan_id} is for cluster {row.cluster!r}, not {wanted.cluster!r}")
    if row.superseded_by is not None:
        raise Refused(f"plan {row.plan_id} is superseded by the newer plan {row.superseded_by}: ask about that one")
    return task.ledger.plan(row.plan_id)
