"""Read access to the ledger. Cannot write."""

from __future__ import annotations

import hashlib
import logging
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from sqlalchemy import func, select

from pulsar_steward.errors import LedgerError, LedgerTampered, NotInLedger, OutdatedPlan
from pulsar_steward.ledger import tables
from pulsar_steward.ledger.batch_record import BatchRecord, batch_records
from pulsar_steward.ledger.cluster_names import known_cluster
from pulsar_steward.ledger.halts import clusters_in, halt_of
from pulsar_steward.ledger.past import PastReader
from pulsar_steward.ledger.policies import recorded_policy
from pulsar_steward.ledger.questions import QuestionReader
from pulsar_steward.ledger.rows import (
    CarriedOut,
    DryRun,
    Intent,
    Lease,
    Outcome,
    PlanRow,
    Proof,
    RecordedAnswer,
    Request,
    StepOutcome,
    from_row,
)
from pulsar_steward.ledger.standing import leases_of, newest_row_in, noes_since, require_lease, require_standing
from pulsar_steward.ledger.store import transaction
from pulsar_steward.ledger.verify import require_still_untampered, require_untampered
from pulsar_steward.model.plan import ROLLBACK, Plan

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime

    from sqlalchemy import Engine, RowMapping, Select, Table

    from pulsar_steward.ledger.chain import Head
    from pulsar_steward.ledger.cluster_names import KnownCluster
    from pulsar_steward.ledger.halts import Halt
    from pulsar_steward.ledger.rows import Grant, Noes
    from pulsar_steward.ledger.verify import VerifiedChain
    from pulsar_steward.model.cluster import NamedCluster
    from pulsar_steward.policy.recorded import RecordedPolicy

log = logging.getLogger(__name__)

T = TypeVar("T")


class LedgerReader:
    """Reads the ledger. Every method raises `LedgerError` if the database cannot be read."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def past(self, cluster: NamedCluster) -> PastReader:
        """Steward's earlier changes of a cluster, under all of its names."""
        return PastReader(self._engine, cluster)

    @property
    def questions(self) -> QuestionReader:
        """Batches that are asked separately, and their ends."""
        return QuestionReader(self._engine)

    def plan(self, plan_id: str) -> Plan:
        """A plan as it was recorded.

        Raises:
            NotInLedger: If there is no such plan.
            OutdatedPlan: If another version of Steward recorded it, in a format that this one does not read.
            LedgerError: If the document's digest is not the recorded one: somebody changed the document.
        """
        row = self._first(select(tables.PLANS).where(tables.PLANS.c.plan_id == plan_id))
        if row is None:
            raise NotInLedger(f"the ledger holds no plan {plan_id!r}")
        try:
            plan = Plan.decoded(row["document"])
        except msgspec.MsgspecError as error:
            if hashlib.sha256(row["document"].encode()).hexdigest() == row["digest"]:
                raise OutdatedPlan(
                    f"plan {plan_id} was recorded by another version of Steward, in a format that this one does not"
                    f" read ({error}): nothing of it is carried out or taken back. Observe again"
                ) from error
            raise LedgerError(f"plan {plan_id} in the ledger cannot be read any more: {error}") from error
        if not plan.digest == row["digest"] or plan.plan_id != plan_id:
            raise LedgerError(f"plan {plan_id} in the ledger was changed after it was recorded: its digest differs")
        return plan

    def readable_plan(self, plan_id: str) -> Plan | None:
        """As `plan`, for lists of plans; None: another version of Steward recorded it."""
        try:
            return self.plan(plan_id)
        except OutdatedPlan as error:
            log.warning("passed over: %s", error)
            return None

    def plan_row(self, plan_id: str) -> PlanRow:
        """A plan's row for a list.

        Raises:
            NotInLedger: If there is no such plan.
        """
        row = self._first(_plan_rows().where(tables.PLANS.c.plan_id == plan_id))
        if row is None:
            raise NotInLedger(f"the ledger holds no plan {plan_id!r}")
        return from_row(row, PlanRow)

    def plans(self, cluster: str, *, limit: int = 100, ways_back: bool | None = None) -> tuple[PlanRow, ...]:
        """A cluster's plans, newest first.

        Args:
            cluster: The cluster.
            limit: Maximum number of plans.
            ways_back: True: only rollbacks of another plan; False: only other plans; None: all.
        """
        query = _plan_rows().where(tables.PLANS.c.cluster == cluster).order_by(tables.PLANS.c.sequence.desc())
        if ways_back is not None:
            back = select(tables.BATCHES.c.plan_id).where(tables.BATCHES.c.kind == ROLLBACK)
            query = query.where(tables.PLANS.c.plan_id.in_(back) == ways_back)
        return tuple(from_row(row, PlanRow) for row in self._all(query.limit(limit)))

    def carried_out(self, cluster: str, *, ways_back: bool | None = None) -> tuple[CarriedOut, ...]:
        """Batches of a cluster with at least one step done, the most recently changed first.

        Args:
            cluster: The cluster.
            ways_back: True: only rollbacks of another batch; False: only other batches; None: all.
        """
        plans, batches, outcomes = tables.PLANS, tables.BATCHES, tables.OUTCOMES
        names = (batches.c.plan_id, batches.c.batch_id, batches.c.kind, batches.c.title)
        of_batch = (outcomes.c.plan_id == batches.c.plan_id) & (outcomes.c.batch_id == batches.c.batch_id)
        query = (
            select(*names, func.max(outcomes.c.at).label("at"))
            .join(plans, plans.c.plan_id == batches.c.plan_id)
            .join(outcomes, of_batch)
            .where(plans.c.cluster == cluster, outcomes.c.outcome == Outcome.DONE.value)
        )
        if ways_back is not None:
            query = query.where((batches.c.kind == ROLLBACK) == ways_back)
        newest_first = func.max(outcomes.c.outcome_id).desc()
        return tuple(from_row(row, CarriedOut) for row in self._all(query.group_by(*names).order_by(newest_first)))

    def answers(self, plan_id: str, batch_id: str) -> tuple[RecordedAnswer, ...]:
        """Answers to a batch, oldest first."""
        return self._of(tables.ANSWERS, RecordedAnswer, plan_id=plan_id, batch_id=batch_id)

    def batches(self, plan: Plan) -> dict[str, BatchRecord]:
        """Batches of a recorded plan with all of their rows, by id.

        Raises:
            LedgerTampered: If the row of a batch was removed.
        """
        with transaction(self._engine) as connection:
            found = {each.batch_id: each for each in batch_records(connection, {plan.plan_id}).values()}
        if removed := [batch.batch_id for batch in plan.batches if batch.batch_id not in found]:
            raise LedgerTampered(f"the ledger holds no row of batch {', '.join(removed)} of plan {plan.plan_id}")
        return found

    def batch(self, plan_id: str, batch_id: str) -> BatchRecord:
        """A batch with all of its rows.

        Raises:
            NotInLedger: If there is no such batch.
        """
        with transaction(self._engine) as connection:
            found = batch_records(connection, {plan_id}).get((plan_id, batch_id))
        if found is None:
            raise NotInLedger(f"the ledger holds no batch {batch_id!r} of plan {plan_id!r}")
        return found

    def intents(self, plan_id: str, batch_id: str) -> tuple[Intent, ...]:
        """Intents of a batch (calls about to be made), oldest first."""
        return self._of(tables.INTENTS, Intent, plan_id=plan_id, batch_id=batch_id)

    def outcomes(self, plan_id: str, batch_id: str) -> tuple[StepOutcome, ...]:
        """Outcomes of a batch's steps, oldest first."""
        return self._of(tables.OUTCOMES, StepOutcome, plan_id=plan_id, batch_id=batch_id)

    def proofs(self, plan_id: str) -> tuple[Proof, ...]:
        """Proofs of a plan's batches (the state of the brokers afterwards), oldest first."""
        return self._of(tables.PROOFS, Proof, plan_id=plan_id)

    def dry_runs(self, plan_id: str) -> tuple[DryRun, ...]:
        """Dry runs of a plan, oldest first."""
        return self._of(tables.DRY_RUNS, DryRun, plan_id=plan_id)

    def requests(self, plan_id: str, batch_id: str, run: str) -> tuple[Request, ...]:
        """A run's approval requests for a batch, oldest first."""
        return self._of(tables.REQUESTS, Request, plan_id=plan_id, batch_id=batch_id, run=run)

    def policy(self, digest: str) -> RecordedPolicy:
        """A policy that was in force for a plan or a request; see `pulsar_steward.ledger.policies.recorded_policy`."""
        with transaction(self._engine) as connection:
            return recorded_policy(connection, digest)

    def noes_since(self, grant: Grant) -> Noes:
        """What people rejected or silenced since a grant's first approval, and since its first request."""
        with transaction(self._engine) as connection:
            return noes_since(connection, grant)

    def require_standing(self, grant: Grant, at: datetime) -> None:
        """Checks that nobody halted the cluster, that the batch's question is open, and that its approvals are valid.

        Raises:
            Halted: If a person stopped all changes of the cluster.
            Refused: If the approval is no longer valid; see `pulsar_steward.ledger.standing.require_standing`.
        """
        with transaction(self._engine) as connection:
            require_standing(connection, grant, at)

    def require_may_leave(self, grant: Grant, lease: Lease, at: datetime) -> None:
        """Checks in one transaction that a call may be sent now: lease, halts, answers, requests and question.

        Raises:
            LeaseLost: If another writer holds the cluster by now, or the lease expired.
            Halted: If a person stopped all changes of the cluster.
            Refused: If the approval is no longer valid.
        """
        with transaction(self._engine) as connection:
            require_standing(connection, grant, at)
            require_lease(connection, lease, at)

    def newest_row(self) -> datetime | None:
        """Latest time that Steward wrote into the ledger, UTC, never after the present. None: the ledger is empty."""
        with transaction(self._engine) as connection:
            return newest_row_in(connection)

    def halt(self, cluster: NamedCluster) -> Halt | None:
        """Halt in force for a cluster, under any of its names; None: the cluster is not halted."""
        return halt_of(self._engine, cluster)

    def clusters(self) -> frozenset[str]:
        """Clusters with a plan or a lease; a cluster that only a halt names is left out."""
        with transaction(self._engine) as connection:
            return clusters_in(connection)

    def known(self, cluster: NamedCluster) -> KnownCluster:
        """A cluster with every name that leads to it."""
        with transaction(self._engine) as connection:
            return known_cluster(connection, cluster)

    def require_untampered(
        self, plan_id: str, *, noted: Collection[Head] = (), since: datetime | None = None
    ) -> VerifiedChain:
        """Checks that no row of the ledger was tampered with; see `pulsar_steward.ledger.verify`.

        Raises:
            LedgerTampered: Names the row.
        """
        return require_untampered(self._engine, plan_id, noted=noted, since=since)

    def require_still_untampered(self, walked: VerifiedChain) -> None:
        """Repeats the check some time later, by the rows added since.

        Raises:
            LedgerTampered: Names the row.
        """
        require_still_untampered(self._engine, walked)

    def lease(self, cluster: NamedCluster) -> Lease | None:
        """The lease of a cluster that ends last, under any of its names; None: there never was one."""
        with transaction(self._engine) as connection:
            held = leases_of(connection, known_cluster(connection, cluster))
        return max(held, key=lambda lease: lease.expires_at, default=None)

    def _of(self, table: Table, kind: type[T], **values: str) -> tuple[T, ...]:
        """Rows with these values, oldest first."""
        mine = select(table).where(*(table.c[name] == value for name, value in values.items()))
        return tuple(from_row(row, kind) for row in self._all(mine.order_by(*table.primary_key.columns)))

    def _all(self, query: Select[Any]) -> Sequence[RowMapping]:
        with transaction(self._engine) as connection:
            return connection.execute(query).mappings().all()

    def _first(self, query: Select[Any]) -> RowMapping | None:
        with transaction(self._engine) as connection:
            return connection.execute(query).mappings().first()


def _plan_rows() -> Select[Any]:
    newer = tables.SUPERSESSIONS
    return select(tables.PLANS, newer.c.by_plan_id.label("superseded_by"), newer.c.at.label("superseded_at")).join(
        newer, newer.c.plan_id == tables.PLANS.c.plan_id, isouter=True
    )
