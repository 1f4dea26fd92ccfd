"""Choice of the batch that a run of ``pulsar_rollback`` rolls back, and its plan."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from pulsar_steward.apply.applied import applied_batches, choose_applied
from pulsar_steward.apply.rehearse import rehearse
from pulsar_steward.apply.rollback import rollback_plan
from pulsar_steward.errors import Refused
from pulsar_steward.orchestration.batches import BatchRef
from pulsar_steward.orchestration.context import open_context
from pulsar_steward.outside_text import shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pulsar_steward.apply.context import ReadContext
    from pulsar_steward.model.plan import Plan

log = logging.getLogger(__name__)


class RollbackParams(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of a run.

    Attributes:
        cluster: The cluster's name in Steward's connections.
        plan_id: The plan whose batch is to be rolled back; None: the one that was carried out last.
        batch_id: The batch; None: the plan's one that was carried out last.
    """

    cluster: str
    plan_id: str | None
    batch_id: str | None


def wanted_by(params: Mapping[str, Any]) -> RollbackParams:
    """Parameters of a run; an empty name counts as none."""
    return RollbackParams(
        cluster=params["cluster"], plan_id=params.get("plan_id") or None, batch_id=params.get("batch_id") or None
    )


def choose(wanted: RollbackParams, run: str) -> list[dict[str, str]]:
    """Records the plan of the rollback, and returns its batch to request approval for.

    An older, open rollback of the same steps is superseded: it was made from an earlier state of the cluster.

    Raises:
        NotInLedger: If there is no such plan.
        Refused: If no such batch was carried out, nothing of it can be rolled back, or the cluster is being changed.
    """
    with _prepared(wanted, run) as (task, plan):
        task.ledger_writer.record_plan(plan, task.clock(), supersede=_same_rollback(task, plan), policy=task.policy)
        return [msgspec.to_builtins(BatchRef.of(plan, batch)) for batch in plan.batches]


def dry_run(wanted: RollbackParams, run: str) -> str:
    """Text of the calls that a rollback would make now, and of what stays; recorded in the ledger, changes nothing.

    Raises:
        NotInLedger: If there is no such plan.
        Refused: If no such batch was carried out, nothing of it can be rolled back, or the cluster is being changed.
    """
    with _prepared(wanted, run) as (task, plan):
        parts = [rehearse(task, plan, batch) for batch in plan.batches]
        text = "\n".join([*parts, *(shown(f"  not taken back: {note}") for note in plan.notes)])
        task.ledger_writer.record_plan(plan, task.clock(), policy=task.policy)
        task.ledger_writer.record_dry_run(plan.plan_id, run, text, task.clock())
        return text


@contextmanager
def _prepared(wanted: RollbackParams, run: str) -> Iterator[tuple[ReadContext, Plan]]:
    with open_context(wanted.cluster, run) as opened, opened.reading_here() as task:
        for each in applied_batches(task.ledger, wanted.cluster):
            log.info("carried out: %s", each.words)
        lease = task.ledger.lease(wanted.cluster)
        if lease is not None and lease.expires_at > task.clock():
            raise Refused(f"{lease.holder} is changing cluster {wanted.cluster}: take back once it is done")
        applied = choose_applied(task.ledger, wanted.cluster, wanted.plan_id, wanted.batch_id, noted=task.noted)
        plan = rollback_plan(task.ledger, task.reader, task.policy, applied, task.clock())
        for note in plan.notes:
            log.warning("not taken back: %s", note)
        yield task, plan


def _same_rollback(task: ReadContext, plan: Plan) -> tuple[str, ...]:
    """Earlier plans that roll back one of the same steps."""
    steps = _undone(plan)
    rows = task.ledger.plans(task.cluster, ways_back=True)
    older = [row.plan_id for row in rows if row.superseded_by is None and row.plan_id != plan.plan_id]
    # One of another version cannot be carried out any more, whatever it rolls back.
    readable = filter(None, map(task.ledger.readable_plan, older))
    return tuple(each.plan_id for each in readable if steps & _undone(each))


def _undone(plan: Plan) -> frozenset[str | None]:
    return frozenset(step.undoes for batch in plan.batches for step in batch.steps)
