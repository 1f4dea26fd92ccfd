"""Write access to the ledger. Only `apply` and `orchestration` may import this; import-linter enforces it."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import insert, select, update
from sqlalchemy.exc import IntegrityError

from pulsar_steward.errors import LeaseLost, NotInLedger
from pulsar_steward.ledger import tables
from pulsar_steward.ledger.chain import GENESIS, Appending, Head, appending
from pulsar_steward.ledger.publishing import QuestionChanges, add_question_changes
from pulsar_steward.ledger.rows import Grant, Lease, Origin, from_row
from pulsar_steward.ledger.standing import require_lease, require_standing
from pulsar_steward.ledger.store import transaction
from pulsar_steward.model.step import Step
from pulsar_steward.model.units import time_in_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy import Connection, Engine

    from pulsar_steward.ledger.rows import Answer, Proof, StepOutcome
    from pulsar_steward.model.plan import Plan
    from pulsar_steward.policy.schema import Policy


class IntendedCall(msgspec.Struct, frozen=True, kw_only=True):
    """One call that is about to be made.

    Attributes:
        grant: The grant that permits it.
        step: The step, with the change that is called for it.
        before: The live values that it replaces.
        clients: Number of clients that have to reconnect for it.
    """

    grant: Grant
    step: Step
    before: dict[str, Any]
    clients: int


class LedgerWriter:
    """Adds to the ledger; every method commits before it returns, and raises `LedgerError` when it cannot.

    Attributes:
        head: The chain's end after this writer's last addition.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.head = Head(0, GENESIS)

    def record_plan(
        self,
        plan: Plan,
        at: datetime,
        *,
        supersede: Sequence[str] = (),
        policy: Policy | None = None,
        questions: QuestionChanges | None = None,
    ) -> None:
        """Adds a plan with its batches and questions, and marks older plans as superseded by it.

        A plan that is recorded already, byte for byte, is left as it is, and so is a plan that was superseded before.

        Args:
            plan: The plan.
            at: Current time.
            supersede: Ids of the plans that it supersedes.
            policy: The policy that it was made under; without it the plan can be read, and never be carried out.
            questions: Questions that it begins, confirms and ends; None: its batches stand and fall together.
        """
        with self._appending() as chain:
            _add_policy(chain, policy, at)
            known = select(tables.PLANS.c.plan_id).where(tables.PLANS.c.plan_id == plan.plan_id)
            if chain.connection.execute(known).first() is None:
                _add_plan(chain, plan, at, asked_by_batch=None if questions is None else True)
            _supersede(chain, supersede, plan.plan_id, at)
            if questions is not None:
                add_question_changes(chain, plan, questions, at)

    def record_confirmations(self, plan: Plan, question_ids: Sequence[int], at: datetime) -> None:
        """Adds that an observation proposed the same as these questions; its plan asks nothing new, and is not kept."""
        with self._appending() as chain:
            add_question_changes(chain, plan, QuestionChanges(confirmed=tuple(question_ids)), at)

    def record_request(
        self,
        plan: Plan,
        batch_id: str,
        run: str,
        at: datetime,
        *,
        voice: int = 1,
        requested_by: str | None = None,
        origin: Origin = Origin.UNKNOWN,
        policy: Policy | None = None,
    ) -> None:
        """Adds an approval request for a batch; answers that were given before it no longer count.

        Args:
            plan: The plan.
            batch_id: Its batch.
            run: The requesting run, ``dag/run/map index``.
            at: Current time.
            voice: Number of the approver: 1, or 2 where a second person is asked.
            requested_by: Who started the run by hand; None: no person did, or none is known.
            origin: What triggered the run.
            policy: The policy in force for the request; without it no answer permits anything.
        """
        row = {
            "plan_id": plan.plan_id,
            "batch_id": batch_id,
            "run": run,
            "at": at,
            "plan_digest": plan.digest,
            "voice": voice,
            "requested_by": requested_by,
            "origin": origin.value,
            "policy_digest": policy.digest if policy else None,
        }
        with self._appending() as chain:
            _add_policy(chain, policy, at)
            chain.add(tables.REQUESTS, row)

    def record_answer(self, answer: Answer) -> int:
        """Adds an answer and returns its id."""
        row = {**msgspec.structs.asdict(answer), "step_ids": _json(answer.step_ids)}
        with self._appending() as chain:
            return chain.add(tables.ANSWERS, row)

    def use_answer(self, answer_id: int, run: str, at: datetime) -> bool:
        """Claims an answer for one run; False if another run acts on it already. Claiming again is harmless.

        Raises:
            NotInLedger: If there is no such answer.
        """
        answers, uses = tables.ANSWERS, tables.ANSWER_USES
        with self._appending() as chain:
            of_answer = select(answers.c.plan_id).where(answers.c.answer_id == answer_id)
            plan_id = chain.connection.execute(of_answer).scalar()
            if plan_id is None:
                raise NotInLedger(f"the ledger holds no answer {answer_id}")
            user = chain.connection.execute(select(uses.c.run).where(uses.c.answer_id == answer_id)).scalar()
            if user is None:
                chain.add(uses, {"answer_id": answer_id, "run": run, "at": at, "plan_id": plan_id})
            return user in {None, run}

    def record_intent(self, intended: IntendedCall, lease: Lease, at: datetime) -> int:
        """Adds the call about to be made, if all that permits it is valid at that moment; returns the intent's id.

        Raises:
            LeaseLost: If another writer holds the cluster by now, or the lease expired.
            Halted: If a person stopped all changes of the cluster.
            Refused: If the approval is no longer valid, see `pulsar_steward.ledger.standing.require_standing`.
        """
        grant, step = intended.grant, intended.step
        with self._appending() as chain:
            connection = chain.connection
            require_standing(connection, grant, at)
            _locked_lease(connection, lease, at)
            table = tables.INTENTS
            earlier = select(table.c.attempt).where(table.c.plan_id == grant.plan_id, table.c.step_id == step.step_id)
            attempt = max(connection.execute(earlier).scalars().all(), default=0) + 1
            row = {
                "plan_id": grant.plan_id,
                "cluster": grant.cluster,
                "batch_id": grant.batch_id,
                "step_id": step.step_id,
                "attempt": attempt,
                "answer_id": grant.answer_id,
                "fence": lease.fence,
                "at": at,
                "change": _json(step.change),
                "clients": intended.clients,
                "before": _json(intended.before),
            }
            return chain.add(table, row)

    def record_outcome(self, outcome: StepOutcome) -> None:
        """Adds the result of a step, once per run.

        Raises:
            LeaseLost: If another worker of the run recorded one: this worker was given up, and its result does not
                count.
        """
        row = {**msgspec.structs.asdict(outcome), "proof": _json(outcome.proof)}
        table = tables.OUTCOMES
        same = (table.c[name] == row[name] for name in ("plan_id", "batch_id", "step_id", "run"))
        with self._appending() as chain:
            if (said := chain.connection.execute(select(table.c.outcome).where(*same)).scalar()) is not None:
                raise LeaseLost(
                    f"another worker of this run took over, and recorded that {outcome.step_id} is {said}: what this"
                    f" one saw is not ({outcome.outcome}: {outcome.reason})"
                )
            chain.add(table, row)

    def record_proof(self, proof: Proof) -> None:
        """Adds the state of the brokers after a batch, and whether it proves the change."""
        row = {**msgspec.structs.asdict(proof), "shown": _json(proof.shown)}
        with self._appending() as chain:
            chain.add(tables.PROOFS, row)

    def record_dry_run(self, plan_id: str, run: str, text: str, at: datetime) -> None:
        """Adds the text of a dry run."""
        with self._appending() as chain:
            chain.add(tables.DRY_RUNS, {"plan_id": plan_id, "run": run, "at": at, "text": text})

    def take_lease(self, cluster: str, holder: str, seconds: int, at: datetime) -> Lease:
        """Takes or extends the right to write to a cluster.

        Raises:
            LeaseLost: If another holder has it and it has not expired.
        """
        table = tables.LEASES
        until = at + timedelta(seconds=seconds)
        with transaction(self._engine) as connection:
            current = select(table).where(table.c.cluster == cluster).with_for_update()
            row = connection.execute(current).mappings().first()
            if row is None:
                return _first_lease(connection, Lease(cluster=cluster, holder=holder, fence=1, expires_at=until))
            held = from_row(row, Lease)
            if held.holder != holder and held.expires_at > at:
                its_end = time_in_words(held.expires_at, date=False, seconds=True)
                raise LeaseLost(f"{held.holder} is changing cluster {cluster} until {its_end}")
            fence = held.fence if held.holder == holder and held.expires_at > at else held.fence + 1
            # Compared and set in one statement: databases without row locks (SQLite) may have let another in since.
            unchanged = [table.c[name] == value for name, value in msgspec.structs.asdict(held).items()]
            mine = update(table).where(*unchanged).values(holder=holder, fence=fence, expires_at=until)
            if connection.execute(mine).rowcount != 1:
                raise _taken_meanwhile(cluster)
            return Lease(cluster=cluster, holder=holder, fence=fence, expires_at=until)

    def end_lease(self, lease: Lease, at: datetime) -> None:
        """Releases the cluster, if this holder still has it."""
        table = tables.LEASES
        with transaction(self._engine) as connection:
            mine = (table.c.cluster == lease.cluster, table.c.holder == lease.holder, table.c.fence == lease.fence)
            connection.execute(update(table).where(*mine, table.c.expires_at > at).values(expires_at=at))

    @contextmanager
    def _appending(self) -> Iterator[Appending]:
        with appending(self._engine) as chain:
            yield chain
        self.head = chain.head


def _add_plan(chain: Appending, plan: Plan, at: datetime, *, asked_by_batch: bool | None) -> None:
    chain.add(
        tables.PLANS,
        {
            "plan_id": plan.plan_id,
            "cluster": plan.cluster,
            "snapshot_id": plan.snapshot_id,
            "created_at": at,
            "digest": plan.digest,
            "proposal_digest": plan.proposal_digest,
            "document": plan.encoded().decode(),
            "asked_by_batch": asked_by_batch,
        },
    )
    for position, batch in enumerate(plan.batches):
        row = {
            "plan_id": plan.plan_id,
            "batch_id": batch.batch_id,
            "position": position,
            "kind": batch.kind,
            "title": batch.title,
            "steps": len(batch.steps),
        }
        chain.add(tables.BATCHES, row)


def _add_policy(chain: Appending, policy: Policy | None, at: datetime) -> None:
    table = tables.POLICIES
    if policy is None:
        return
    if chain.connection.execute(select(table.c.digest).where(table.c.digest == policy.digest)).first() is None:
        chain.add(table, {"digest": policy.digest, "at": at, "document": policy.document().decode()})


def _supersede(chain: Appending, older: Sequence[str], by: str, at: datetime) -> None:
    table = tables.SUPERSESSIONS
    known = set(chain.connection.execute(select(table.c.plan_id).where(table.c.plan_id.in_(older))).scalars())
    for plan_id in dict.fromkeys(older):
        if plan_id not in known:
            chain.add(table, {"plan_id": plan_id, "by_plan_id": by, "at": at})


def _first_lease(connection: Connection, lease: Lease) -> Lease:
    try:
        connection.execute(insert(tables.LEASES), msgspec.structs.asdict(lease))
    except IntegrityError as error:
        raise _taken_meanwhile(lease.cluster) from error
    return lease


def _taken_meanwhile(cluster: str) -> LeaseLost:
    return LeaseLost(f"another writer took cluster {cluster} at the same moment")


def _locked_lease(connection: Connection, lease: Lease, at: datetime) -> None:
    """Refuses a lease that is over, and locks the cluster's lease until this transaction ends."""
    table = tables.LEASES
    mine = (table.c.cluster == lease.cluster, table.c.holder == lease.holder, table.c.fence == lease.fence)
    # An update to the same value changes nothing, but locks the row in every database (SQLite: the whole file).
    connection.execute(update(table).where(*mine).values(fence=table.c.fence))
    require_lease(connection, lease, at)


def _json(value: object) -> str:
    return msgspec.json.encode(value, order="sorted").decode()
