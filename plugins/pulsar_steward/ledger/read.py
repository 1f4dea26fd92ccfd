"""Read access to the ledger. Cannot write."""

from __future__ import annotations

import hashlib
import logging
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import and_, exists, func, select

from pulsar_steward.changes import kind_of
from pulsar_steward.errors import LedgerError, LedgerTampered, NotInLedger, OutdatedPlan
from pulsar_steward.ledger import tables
from pulsar_steward.ledger.halts import halt_of
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
    Unproved,
    from_row,
)
from pulsar_steward.ledger.standing import newest_row_in, require_lease, require_standing
from pulsar_steward.ledger.store import transaction
from pulsar_steward.ledger.verify import require_still_untampered, require_untampered
from pulsar_steward.ledger.waiting import WaitingQuestion, waiting_questions
from pulsar_steward.model.plan import BROKER_DRAIN, ROLLBACK, Plan
from pulsar_steward.model.step import Change, RaiseCoordinators, UnloadBundle

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime

    from sqlalchemy import Engine, RowMapping, Select, Table

    from pulsar_steward.ledger.chain import Head
    from pulsar_steward.ledger.halts import Halt
    from pulsar_steward.ledger.rows import Grant
    from pulsar_steward.ledger.verify import VerifiedChain

RAISE = str(RaiseCoordinators.__struct_config__.tag)
"""In the document of every raise of the number of coordinators."""

MOVE = str(UnloadBundle.__struct_config__.tag)
"""In the document of every move."""

log = logging.getLogger(__name__)


class LedgerReader:
    """Reads the ledger. Every method raises `LedgerError` when the database cannot be read."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @property
    def questions(self) -> QuestionReader:
        """Questions of batches that stand by themselves, and what became of them."""
        return QuestionReader(self._engine)

    def plan(self, plan_id: str) -> Plan:
        """A plan as it was recorded.

        Raises:
            NotInLedger: If there is no such plan.
            OutdatedPlan: If another version of Steward recorded it, in a format that this one does not read.
            LedgerError: If the recorded document no longer has the recorded digest: somebody changed it.
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
        """A plan as `plan` gives it, for a list of several; None: another version of Steward recorded it."""
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
            limit: Most plans returned.
            ways_back: True: only rollbacks of another plan; False: only plans that are none; None: all.
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
            ways_back: True: only rollbacks of another batch; False: only batches that are none; None: all.
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
        table = tables.ANSWERS
        query = select(table).where(table.c.plan_id == plan_id, table.c.batch_id == batch_id)
        return tuple(_answer(row) for row in self._all(query.order_by(table.c.answer_id)))

    def asked_at(self, plan_id: str) -> dict[str, datetime]:
        """Time of the last approval request for each batch of a plan, by batch id."""
        table = tables.REQUESTS
        query = select(table).where(table.c.plan_id == plan_id).order_by(table.c.request_id)
        return {row["batch_id"]: row["at"] for row in self._all(query)}

    def intents(self, plan_id: str, batch_id: str) -> tuple[Intent, ...]:
        """Intents of a batch (calls about to be made), oldest first."""
        table = tables.INTENTS
        query = select(table).where(table.c.plan_id == plan_id, table.c.batch_id == batch_id)
        return tuple(_intent(row) for row in self._all(query.order_by(table.c.intent_id)))

    def outcomes(self, plan_id: str, batch_id: str) -> tuple[StepOutcome, ...]:
        """Outcomes of a batch's steps, oldest first."""
        table = tables.OUTCOMES
        query = select(table).where(table.c.plan_id == plan_id, table.c.batch_id == batch_id)
        return tuple(_outcome(row) for row in self._all(query.order_by(table.c.outcome_id)))

    def proofs(self, plan_id: str) -> tuple[Proof, ...]:
        """Proofs of a plan's batches (the state of the brokers afterwards), oldest first."""
        table = tables.PROOFS
        query = select(table).where(table.c.plan_id == plan_id).order_by(table.c.proof_id)
        return tuple(_proof(row) for row in self._all(query))

    def dry_runs(self, plan_id: str) -> tuple[DryRun, ...]:
        """Dry runs of a plan, oldest first."""
        table = tables.DRY_RUNS
        query = select(table.c.plan_id, table.c.run, table.c.at, table.c.text).where(table.c.plan_id == plan_id)
        return tuple(from_row(row, DryRun) for row in self._all(query.order_by(table.c.dry_run_id)))

    def moves_since(self, cluster: str, since: datetime) -> dict[str, datetime]:
        """Last time of each move of a bundle (``tenant/ns/range``) since `since`; an attempted move counts too."""
        table = tables.INTENTS
        query = select(table.c.at, table.c.change).where(table.c.cluster == cluster, table.c.at >= since)
        moved: dict[str, datetime] = {}
        for row in self._all(query.order_by(table.c.intent_id)):
            bundle = kind_of(_change(row["change"])).disturbs
            if bundle is not None and bundle.moves:
                moved[bundle.name] = row["at"]
        return moved

    def move_seconds_since(self, cluster: str, since: datetime, most: int) -> tuple[float, ...]:
        """Seconds from the call of each move until its new owner was seen, of the newest ones that came to be."""
        table, outcomes = tables.INTENTS, tables.OUTCOMES
        ended = (outcomes.c.intent_id == table.c.intent_id, outcomes.c.outcome == Outcome.DONE)
        moves = table.c.change.contains(MOVE)  # which a name in another change may hold as well
        query = select(table.c.at, table.c.change, outcomes.c.at.label("seen")).join(outcomes, and_(*ended))
        newest = query.where(table.c.cluster == cluster, table.c.at >= since, moves).order_by(table.c.intent_id.desc())
        rows = self._all(newest.limit(most))
        return tuple(
            (row["seen"] - row["at"]).total_seconds()
            for row in rows
            if isinstance(_change(row["change"]), UnloadBundle)
        )

    def raised_since(self, cluster: str, since: datetime) -> tuple[datetime, ...]:
        """Times at which the number of coordinators was raised since then, oldest first; an attempt counts too."""
        table = tables.INTENTS
        raises = table.c.change.contains(RAISE)  # which a name in another change may hold as well
        query = select(table.c.at, table.c.change).where(table.c.cluster == cluster, table.c.at >= since, raises)
        rows = self._all(query.order_by(table.c.intent_id))
        return tuple(row["at"] for row in rows if isinstance(_change(row["change"]), RaiseCoordinators))

    def moved_in_circles(self, cluster: str, since: datetime) -> dict[str, tuple[str, ...]]:
        """Bundles that were moved away and back since then: namespace to their ranges, in ascending order.

        Moves that emptied a broker do not count: somebody marked it, so that the way back is no circle of balancers.
        """
        table, batches = tables.INTENTS, tables.BATCHES
        same_batch = (batches.c.plan_id == table.c.plan_id, batches.c.batch_id == table.c.batch_id)
        drained = exists().where(*same_batch, batches.c.kind == BROKER_DRAIN)
        query = select(table.c.change).where(table.c.cluster == cluster, table.c.at >= since, ~drained)
        rows = self._all(query.order_by(table.c.intent_id))
        bundles = (kind_of(_change(row["change"])).disturbs for row in rows)
        moves = [bundle for bundle in bundles if bundle is not None and bundle.moves]
        ways = {(move.name, move.owner_before, move.owner_after) for move in moves}
        circling = {
            (move.namespace, move.bundle) for move in moves if (move.name, move.owner_after, move.owner_before) in ways
        }
        found: dict[str, tuple[str, ...]] = {}
        for namespace, bundle in sorted(circling):
            found[namespace] = (*found.get(namespace, ()), bundle)
        return found

    def unproved_since(self, cluster: str, since: datetime, besides: tuple[str, str]) -> Unproved | None:
        """A batch that changed a cluster since then and whose last proof is missing or negative.

        Args:
            cluster: The cluster.
            since: Changes before it are ignored.
            besides: Plan and batch to ignore.
        """
        intents, proofs = tables.INTENTS, tables.PROOFS
        changed = select(intents.c.plan_id, intents.c.batch_id, func.max(intents.c.at).label("at"))
        query = changed.where(intents.c.cluster == cluster, intents.c.at >= since)
        for row in self._all(query.group_by(intents.c.plan_id, intents.c.batch_id).order_by("at")):
            plan_id, batch_id = row["plan_id"], row["batch_id"]
            if (plan_id, batch_id) == besides:
                continue
            of_batch = select(proofs).where(proofs.c.plan_id == plan_id, proofs.c.batch_id == batch_id)
            proof = self._first(of_batch.order_by(proofs.c.proof_id.desc()))
            if proof is None:
                return Unproved(plan_id=plan_id, batch_id=batch_id, reason=None)
            if not proof["proved"]:
                return Unproved(plan_id=plan_id, batch_id=batch_id, reason=proof["reason"])
        return None

    def changes_since(self, cluster: str, since: datetime) -> tuple[tuple[datetime, int], ...]:
        """Time and touched clients of every call made (or about to be) since then, oldest first."""
        table = tables.INTENTS
        query = select(table.c.at, table.c.clients).where(table.c.cluster == cluster, table.c.at >= since)
        return tuple((row["at"], row["clients"]) for row in self._all(query.order_by(table.c.intent_id)))

    def requests(self, plan_id: str, batch_id: str, run: str) -> tuple[Request, ...]:
        """A run's approval requests for a batch, oldest first."""
        table = tables.REQUESTS
        mine = (table.c.plan_id == plan_id, table.c.batch_id == batch_id, table.c.run == run)
        return tuple(
            from_row(row, Request) for row in self._all(select(table).where(*mine).order_by(table.c.request_id))
        )

    def policy(self, digest: str) -> dict[str, Any]:
        """Values of a policy that was in force for a plan or a request, by section.

        Raises:
            NotInLedger: If it was never recorded, as by an earlier Steward.
            LedgerTampered: If it does not have this digest.
        """
        row = self._first(select(tables.POLICIES).where(tables.POLICIES.c.digest == digest))
        if row is None:
            raise NotInLedger(f"the ledger holds no policy {digest[:12]}")
        if hashlib.sha256(row["document"].encode()).hexdigest() != digest:
            raise LedgerTampered(f"policy {digest[:12]} in the ledger was changed after it was recorded")
        values: dict[str, Any] = msgspec.json.decode(row["document"])
        return values

    def require_standing(self, grant: Grant, at: datetime) -> None:
        """Checks that nobody halted the cluster, and that the batch's question and its approvals stand.

        Raises:
            Halted: If a person stopped all changes of the cluster.
            Refused: If the approval is no longer valid; see `pulsar_steward.ledger.standing.require_standing`.
        """
        with transaction(self._engine) as connection:
            require_standing(connection, grant, at)

    def require_may_leave(self, grant: Grant, lease: Lease, at: datetime) -> None:
        """Checks that a call may be sent now: lease, halts, answers, requests and question, in one transaction.

        Raises:
            LeaseLost: If another writer holds the cluster by now, or the lease expired.
            Halted: If a person stopped all changes of the cluster.
            Refused: If the approval is no longer valid.
        """
        with transaction(self._engine) as connection:
            require_standing(connection, grant, at)
            require_lease(connection, lease, at)

    def waiting(self, plan_id: str, batch_id: str, now: datetime) -> tuple[WaitingQuestion, ...]:
        """Requests for a batch that wait for an answer, oldest first."""
        with transaction(self._engine) as connection:
            found = waiting_questions(connection, now)
        return tuple(each for each in found if (each.plan_id, each.batch_id) == (plan_id, batch_id))

    def newest_row(self) -> datetime | None:
        """Latest time that Steward wrote into the ledger, UTC: the current time is not earlier. None: it is empty."""
        with transaction(self._engine) as connection:
            return newest_row_in(connection)

    def halt(self, cluster: str) -> Halt | None:
        """Halt in force for a cluster; None: it may be changed."""
        return halt_of(self._engine, cluster)

    def require_untampered(self, plan_id: str, *, noted: Collection[Head] = ()) -> VerifiedChain:
        """Checks that no row of the ledger was tampered with; see `pulsar_steward.ledger.verify`.

        Raises:
            LedgerTampered: Names the row.
        """
        return require_untampered(self._engine, plan_id, noted=noted)

    def require_still_untampered(self, walked: VerifiedChain, tables_of_it: Collection[Table]) -> None:
        """Repeats the check some time later, by the rows added since.

        Raises:
            LedgerTampered: Names the row.
        """
        require_still_untampered(self._engine, walked, tables_of_it)

    def lease(self, cluster: str) -> Lease | None:
        """Latest lease of a cluster, expired or not; None if there never was one."""
        row = self._first(select(tables.LEASES).where(tables.LEASES.c.cluster == cluster))
        return None if row is None else from_row(row, Lease)

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


_CHANGE: msgspec.json.Decoder[Change] = msgspec.json.Decoder(Change)


def _change(document: str) -> Change:
    return _CHANGE.decode(document)


def _answer(row: RowMapping) -> RecordedAnswer:
    return from_row(row, RecordedAnswer, step_ids=msgspec.json.decode(row["step_ids"]))


def _intent(row: RowMapping) -> Intent:
    decoded = {key: msgspec.json.decode(row[key]) for key in ("change", "before")}
    return from_row(row, Intent, **decoded)


def _outcome(row: RowMapping) -> StepOutcome:
    return from_row(row, StepOutcome, proof=msgspec.json.decode(row["proof"]))


def _proof(row: RowMapping) -> Proof:
    return from_row(row, Proof, shown=msgspec.json.decode(row["shown"]))
