"""Choice of the batch that a run of ``pulsar_rollback`` rolls back, and its plan."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from pulsar_steward.apply.applied import applied_batches, choose_applied, done_steps
from pulsar_steward.apply.precheck import rehearse
from pulsar_steward.apply.rollback import rollback_plan
from pulsar_steward.changes import kind_of
from pulsar_steward.changes.kind import Subject
from pulsar_steward.errors import Refused
from pulsar_steward.model.units import time_in_words
from pulsar_steward.orchestration.batches import BatchRef
from pulsar_steward.orchestration.context import open_context
from pulsar_steward.orchestration.home import chosen_cluster
from pulsar_steward.outside_text import shown

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from pulsar_steward.apply.context import ReadContext
    from pulsar_steward.ledger.read import LedgerReader
    from pulsar_steward.model.cluster import NamedCluster
    from pulsar_steward.model.plan import Plan
    from pulsar_steward.policy.approval import ApprovalPolicy

log = logging.getLogger(__name__)


class RollbackParams(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of a run.

    Attributes:
        cluster: The cluster's name in Steward's connections.
        plan_id: The plan whose batch is to be rolled back; None: the plan that was carried out last.
        batch_id: The batch; None: the plan's batch that was carried out last.
    """

    cluster: str
    plan_id: str | None
    batch_id: str | None


def wanted_by(params: Mapping[str, Any]) -> RollbackParams:
    """Parameters of a run; an empty name counts as none."""
    return RollbackParams(
        cluster=chosen_cluster(params), plan_id=params.get("plan_id") or None, batch_id=params.get("batch_id") or None
    )


def choose(wanted: RollbackParams, run: str) -> list[dict[str, str]]:
    """Records the plan of the rollback, and returns its batch to request approval for.

    An older rollback of the same steps that is still open is superseded: it is from an earlier state of the cluster.

    Raises:
        NotInLedger: If there is no such plan.
        Refused: If no such batch was carried out, nothing of it can be rolled back, or the cluster is being changed.
    """
    with _prepared(wanted, run) as (task, plan):
        brokers, older = task.reader.brokers(), _same_rollback(task, plan)
        task.ledger_writer.record_plan(plan, task.clock(), supersede=older, policy=task.policy, brokers=brokers)
        return [msgspec.to_builtins(BatchRef.of(plan, batch)) for batch in plan.batches]


def dry_run(wanted: RollbackParams, run: str) -> str:
    """Text of a rollback's calls, and of changes that it does not undo; recorded in the ledger, nothing is changed.

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
        applied = choose_applied(task.ledger, wanted.cluster, wanted.plan_id, wanted.batch_id, noted=task.noted)
        lease = task.ledger.lease(applied.named_cluster)
        if lease is not None and lease.expires_at > task.clock():
            raise Refused(f"{lease.holder} is changing cluster {lease.cluster}: take back once it is done")
        plan = rollback_plan(task.ledger, task.reader, task.policy, applied, task.clock())
        for note in plan.notes:
            log.warning("not taken back: %s", note)
        yield task, plan


def _same_rollback(task: ReadContext, plan: Plan) -> tuple[str, ...]:
    """Earlier plans that roll back at least one of the same steps."""
    steps = _undone(plan)
    rows = task.ledger.plans(task.cluster, ways_back=True)
    older = [row.plan_id for row in rows if row.superseded_by is None and row.plan_id != plan.plan_id]
    # A plan in another version's format cannot be carried out any more.
    readable = filter(None, map(task.ledger.readable_plan, older))
    return tuple(each.plan_id for each in readable if steps & _undone(each))


def _undone(plan: Plan) -> frozenset[str | None]:
    return frozenset(step.undoes for batch in plan.batches for step in batch.steps)


class RolledBack(msgspec.Struct, frozen=True, kw_only=True):
    """Subjects that one plan rolled back.

    Attributes:
        plan_id: The plan that rolled them back.
        subjects: Subjects of its steps.
        rests_until: Time after which they may be proposed again, UTC.
    """

    plan_id: str
    subjects: frozenset[Subject]
    rests_until: datetime


def rolled_back_lately(
    ledger: LedgerReader, cluster: NamedCluster, policy: ApprovalPolicy, now: datetime
) -> tuple[RolledBack, ...]:
    """Rollbacks whose pause is not over, by name of the cluster and newest first.

    Args:
        ledger: The ledger with the rollbacks.
        cluster: The cluster; rollbacks under all of its names count.
        policy: Length of the pause.
        now: Current time, UTC.
    """
    rest = timedelta(minutes=policy.ask_again_minutes)
    return tuple(
        RolledBack(
            plan_id=row.plan_id,
            subjects=frozenset(kind_of(step.change).subject for step in done_steps(ledger, row)),
            rests_until=row.at + rest,
        )
        for name in sorted(ledger.known(cluster).names)
        for row in ledger.carried_out(name, ways_back=True)
        if now < row.at + rest
    )


def without_rolled_back(plan: Plan, lately: Collection[RolledBack]) -> Plan:
    """The plan without batches in which every change was rolled back lately; the plan's notes name these batches.

    Values are not compared: as backlogs develop, the same change may be proposed with another value.
    """
    resting = {subject: each for each in reversed(tuple(lately)) for subject in each.subjects}
    kept, notes = [], list(plan.notes)
    for batch in plan.batches:
        found = [resting.get(kind_of(step.change).subject) for step in batch.steps]
        by = [each for each in found if each is not None]
        if len(by) < len(found):
            kept.append(batch)
            continue
        last = max(by, key=lambda each: each.rests_until)
        notes.append(
            f"{batch.title}: not proposed before {time_in_words(last.rests_until)}, as the same was taken back"
            f" (plan {last.plan_id}; policy key approval.ask_again_minutes)"
        )
    return (
        msgspec.structs.replace(plan, batches=tuple(kept), notes=tuple(notes))
        if len(kept) < len(plan.batches)
        else plan
    )
