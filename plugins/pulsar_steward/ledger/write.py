"""Write access to the ledger. Only `apply` and `orchestration` may import this; import-linter enforces it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import insert, select, update

from pulsar_steward.changes.headline import headline
from pulsar_steward.errors import LeaseLost, NotInLedger, Refused
from pulsar_steward.ledger import tables
from pulsar_steward.ledger.batch_record import batch_records
from pulsar_steward.ledger.chain import Appending, ChainWriter
from pulsar_steward.ledger.cluster_names import add_name, cluster_names, known_cluster
from pulsar_steward.ledger.policies import add_policy
from pulsar_steward.ledger.publishing import QuestionChanges, add_question_changes
from pulsar_steward.ledger.rows import NOES, ApprovedPart, Decision, Grant, Lease, Origin
from pulsar_steward.ledger.standing import TOLERATED, leases_of, noes_since, require_lease, require_standing
from pulsar_steward.ledger.store import transaction
from pulsar_steward.model.cluster import NamedCluster
from pulsar_steward.model.plan import Plan, changes_digest, goal_digest, parts_of
from pulsar_steward.model.step import Step
from pulsar_steward.model.units import time_in_words

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from sqlalchemy import Connection

    from pulsar_steward.ledger.cluster_names import KnownCluster
    from pulsar_steward.ledger.rows import Answer, Proof, StepOutcome
    from pulsar_steward.policy.schema import Policy


class IntendedCall(msgspec.Struct, frozen=True, kw_only=True):
    """One call that Steward intends to make.

    Attributes:
        grant: The grant that permits it.
        part: The part of the batch that contains the step.
        step: The step, with the change that the call makes.
        before: The live values that it replaces.
        clients: Number of clients that have to reconnect for it.
    """

    grant: Grant
    part: ApprovedPart
    step: Step
    before: dict[str, Any]
    clients: int


class LedgerWriter(ChainWriter):
    """Adds to the ledger; every method commits before it returns, and raises `LedgerError` if it cannot."""

    def record_plan(
        self,
        plan: Plan,
        at: datetime,
        *,
        supersede: Sequence[str] = (),
        policy: Policy | None = None,
        questions: QuestionChanges | None = None,
        brokers: Collection[str] = (),
    ) -> None:
        """Adds a plan with its batches and questions, and marks older plans as superseded by it.

        A plan that is recorded already, byte for byte, is not added again; a superseded plan is not marked again.

        Args:
            plan: The plan.
            at: Current time.
            supersede: Ids of the plans that it supersedes.
            policy: The policy of the plan; without it, the plan can be read but never carried out.
            questions: Questions that it begins, confirms and ends; None: its batches are no separate questions.
            brokers: The cluster's list of brokers; stored with its name, as shared brokers show that two names lead to
                one cluster.
        """
        with self._appending() as chain:
            add_policy(chain, policy, at)
            add_name(chain, NamedCluster(plan.cluster, plan.pulsar_cluster, frozenset(brokers)), at)
            known = select(tables.PLANS.c.plan_id).where(tables.PLANS.c.plan_id == plan.plan_id)
            if chain.connection.execute(known).first() is None:
                _add_plan(chain, plan, at, asked_by_batch=questions is not None)
            table = tables.SUPERSESSIONS
            of_older = select(table.c.plan_id).where(table.c.plan_id.in_(supersede))
            superseded = set(chain.connection.execute(of_older).scalars())
            for plan_id in dict.fromkeys(supersede):
                if plan_id not in superseded:
                    chain.add(table, {"plan_id": plan_id, "by_plan_id": plan.plan_id, "at": at})
            if questions is not None:
                add_question_changes(chain, plan, questions, at)

    def record_confirmations(self, plan: Plan, question_ids: Sequence[int], at: datetime) -> None:
        """Adds that an observation proposed these questions again; its plan has no new question, and is not stored."""
        with self._appending() as chain:
            add_question_changes(chain, plan, QuestionChanges(confirmed=tuple(question_ids)), at)

    def record_request(  # noqa: PLR0913 - one for each part of the row
        self,
        plan: Plan,
        batch_id: str,
        run: str,
        at: datetime,
        *,
        voice: int = 1,
        requested_by: str | None = None,
        origin: Origin = Origin.UNKNOWN,
        policy: Policy,
        asked_digest: str,
    ) -> None:
        """Adds an approval request for a batch; earlier answers no longer count.

        Args:
            plan: The plan.
            batch_id: Its batch.
            run: The requesting run, ``dag/run/map index``.
            at: Current time.
            voice: Number of the approver: 1, or 2 for the second person.
            requested_by: User who started the run by hand; None: nobody did, or the user is not known.
            origin: Trigger of the run.
            policy: The policy in force for the request; it sets the time limit of the answer.
            asked_digest: Digest of the question as it is shown.

        Raises:
            Refused: If another run asks about this question already, and can still get an answer.
        """
        row = {
            "plan_id": plan.plan_id,
            "batch_id": batch_id,
            "run": run,
            "at": at,
            "ends_at": policy.approval.waits_until(at),
            "plan_digest": plan.digest,
            "voice": voice,
            "requested_by": requested_by,
            "origin": origin.value,
            "policy_digest": policy.digest,
            "asked_digest": asked_digest,
        }
        with self._appending() as chain:
            # Checked here, as only one process at a time adds to the chain: of two simultaneous runs, one asks.
            record = batch_records(chain.connection, {plan.plan_id}).get((plan.plan_id, batch_id))
            if record is not None and (other := record.asked_by_another(run, at)):
                raise Refused(f"run {other} asks about it")
            add_policy(chain, policy, at)
            chain.add(tables.REQUESTS, row)

    def record_answer(self, answer: Answer) -> int:
        """Adds an answer and returns its id; a no is stored with its contents, as it ends approvals elsewhere."""
        row = {**msgspec.structs.asdict(answer), "step_ids": _json(answer.step_ids)}
        with self._appending() as chain:
            contents = _contents(chain.connection, answer) if answer.decision in NOES else None
            return chain.add(tables.ANSWERS, {**row, "contents": contents})

    def use_answer(self, answer_id: int, run: str, at: datetime) -> bool:
        """Claims an answer for one run; False if another run has claimed it. The same run may claim it again.

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
        """Adds an intended call, if it is still permitted at that moment; returns the intent's id.

        Raises:
            LeaseLost: If another writer holds the cluster by now, or the lease expired.
            Halted: If a person stopped all changes of the cluster.
            Refused: If the approval is no longer valid, see `pulsar_steward.ledger.standing.require_standing`; or if a
                person rejected or silenced the part since, and it has not begun.
        """
        grant, step = intended.grant, intended.step
        with self._appending() as chain:
            connection = chain.connection
            require_standing(connection, grant, at)
            _require_no_no(connection, intended)
            require_lease(connection, lease, at)
            table = tables.INTENTS
            earlier = select(table.c.attempt).where(table.c.plan_id == grant.plan_id, table.c.step_id == step.step_id)
            attempt = max(connection.execute(earlier).scalars().all(), default=0) + 1
            row = {
                "plan_id": grant.plan_id,
                "cluster": grant.cluster.name,
                "batch_id": grant.batch_id,
                "step_id": step.step_id,
                "attempt": attempt,
                "answer_id": grant.answer_id,
                "fence": lease.fence,
                "at": at,
                "change": _json(step.change),
                "clients": intended.clients,
                "before": _json(intended.before),
                "name_id": known_cluster(connection, grant.cluster).name_id,
            }
            return chain.add(table, row)

    def record_outcome(self, outcome: StepOutcome) -> None:
        """Adds the result of a step, once per run.

        Raises:
            LeaseLost: If another worker of the run recorded one: this worker was replaced, and its result does not
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

    def take_lease(
        self,
        cluster: NamedCluster,
        holder: str,
        seconds: int,
        at: datetime,
        *,
        beside: Collection[str] = (),
        at_once: int = 1,
    ) -> Lease:
        """Takes the lease on a cluster; leases under all of its names count.

        Args:
            cluster: The cluster.
            holder: Name of the writer.
            seconds: Length of the lease.
            at: Current time, UTC.
            beside: Other clusters, of which with this one at most `at_once` have a lease at the same time; each counts
                under all of its names, in upper or lower case.
            at_once: Their number.

        Raises:
            LeaseLost: If there is a lease that has not expired, or too many of the clusters beside it have one.
        """
        table, name = tables.LEASES, cluster.name
        with self._appending() as chain:  # one writer at a time, under all names of the cluster
            add_name(chain, cluster, at)
            connection = chain.connection
            known = known_cluster(connection, cluster)
            held = _free_leases(connection, known, at)
            _require_room(connection, known, beside, at_once, at)
            mine = held.pop(name, None)
            fence = 1 + (mine.fence if mine else 0)
            taken = Lease(cluster=name, holder=holder, fence=fence, expires_at=at + timedelta(seconds=seconds))
            row = {**msgspec.structs.asdict(taken), "name_id": known.name_id}
            if mine is None:
                connection.execute(insert(table), row)
            else:
                connection.execute(update(table).where(table.c.cluster == name).values(**row))
            if held:
                # A former holder under another name may sleep or have a slow clock: its fence becomes invalid.
                connection.execute(update(table).where(table.c.cluster.in_(held)).values(fence=table.c.fence + 1))
            return taken

    def prolong_lease(self, cluster: NamedCluster, lease: Lease, seconds: int, at: datetime) -> Lease:
        """Prolongs a lease that still holds; one that expired is never taken anew.

        Raises:
            LeaseLost: If it expired, or another writer holds the cluster by now, under any of its names.
        """
        table = tables.LEASES
        with self._appending() as chain:
            _free_leases(chain.connection, known_cluster(chain.connection, cluster), at, but=lease.holder)
            require_lease(chain.connection, lease, at)
            prolonged = msgspec.structs.replace(lease, expires_at=at + timedelta(seconds=seconds))
            mine = update(table).where(table.c.cluster == lease.cluster)
            chain.connection.execute(mine.values(expires_at=prolonged.expires_at))
            return prolonged

    def end_lease(self, lease: Lease, at: datetime) -> None:
        """Ends the lease, if this holder still has it, also for whoever reads it by a clock that is slightly behind."""
        table, over = tables.LEASES, at - TOLERATED
        with transaction(self._engine) as connection:
            mine = (table.c.cluster == lease.cluster, table.c.holder == lease.holder, table.c.fence == lease.fence)
            connection.execute(update(table).where(*mine, table.c.expires_at > over).values(expires_at=over))


def _free_leases(connection: Connection, known: KnownCluster, at: datetime, but: str | None = None) -> dict[str, Lease]:
    """Leases of a cluster by name; none is in force, but perhaps one of the holder `but`.

    Raises:
        LeaseLost: If another one is.
    """
    held = {lease.cluster: lease for lease in leases_of(connection, known)}
    for lease in held.values():
        if lease.holder != but and lease.expires_at > at:
            its_end = time_in_words(lease.expires_at, date=False, seconds=True)
            raise LeaseLost(f"{lease.holder} is changing cluster {lease.cluster} until {its_end}")
    return held


def _require_room(
    connection: Connection, known: KnownCluster, beside: Collection[str], at_once: int, at: datetime
) -> None:
    if not beside:
        return
    meant = {name.casefold() for name in beside}
    written = {row.cluster for row in cluster_names(connection)}
    written.update(connection.execute(select(tables.LEASES.c.cluster)).scalars())
    others = (NamedCluster(name) for name in written - known.names if name.casefold() in meant)
    leases = [lease for other in others for lease in leases_of(connection, known_cluster(connection, other))]
    names = sorted({lease.cluster for lease in leases if lease.expires_at > at})
    if len(names) >= at_once:
        verb = "is" if len(names) == 1 else "are"
        raise LeaseLost(
            f"{', '.join(names)} {verb} being changed, in one logical cluster with {known.name}: at most {at_once} at a"
            " time (apply.members_at_once)"
        )


def _add_plan(chain: Appending, plan: Plan, at: datetime, *, asked_by_batch: bool) -> None:
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
            "title": headline(batch, at_once=""),
            "steps": len(batch.steps),
        }
        chain.add(tables.BATCHES, row)


def _contents(connection: Connection, answer: Answer) -> str | None:
    """Digests of an answer's changes and goals; None: the plan is in another version's format.

    Every answer concerns the changes of each part of its batch. A snooze or a never also concerns the parts' goals, so
    that other values are not asked about either; for a rollback, it concerns the changes only.
    """
    document = select(tables.PLANS.c.document).where(tables.PLANS.c.plan_id == answer.plan_id)
    try:
        plan = Plan.decoded(connection.execute(document).scalar_one())
        batch = plan.batch(answer.batch_id)
    except (msgspec.MsgspecError, KeyError):
        return None
    whole = answer.decision in {Decision.SNOOZED, Decision.NEVER} and not batch.is_rollback
    digests = (changes_digest, goal_digest) if whole else (changes_digest,)
    return _json([of(plan, part) for part in parts_of(batch) for of in digests])


def _require_no_no(connection: Connection, intended: IntendedCall) -> None:
    """Refuses a part of a batch that a person rejected or silenced after its approval, unless it has begun."""
    table, part = tables.INTENTS, intended.part
    begun = select(table.c.intent_id).where(
        table.c.plan_id == intended.grant.plan_id, table.c.step_id.in_(part.step_ids)
    )
    if connection.execute(begun).first() is None and (no := part.refused_by(noes_since(connection, intended.grant))):
        raise Refused(no)


def _json(value: object) -> str:
    return msgspec.json.encode(value, order="sorted").decode()
