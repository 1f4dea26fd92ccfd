"""Resources that a task holds open while it runs: ledger, journal, policy, clock, and on demand the cluster."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from pulsar_steward.apply.context import LedgerContext
from pulsar_steward.apply.gate import answers_of
from pulsar_steward.apply.halting import StopSwitch
from pulsar_steward.apply.journal import Journal
from pulsar_steward.errors import NotInLedger
from pulsar_steward.ledger.clock import LedgerClock
from pulsar_steward.ledger.read import LedgerReader
from pulsar_steward.ledger.rows import Decision
from pulsar_steward.ledger.write import LedgerWriter
from pulsar_steward.orchestration import connections, home
from pulsar_steward.orchestration.approval_response import ApprovalQuestion
from pulsar_steward.orchestration.events import publisher
from pulsar_steward.orchestration.halt_variable import halted_by_variable
from pulsar_steward.orchestration.ledger_heads import LedgerHeads
from pulsar_steward.policy.never_asked import namespace_to_leave_alone

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Engine

    from pulsar_steward.apply.context import ApplyContext, ReadContext
    from pulsar_steward.ledger.rows import Origin, Request
    from pulsar_steward.model.plan import Plan


class TaskContext(LedgerContext):
    """Ledger and policy of one cluster, for one task; the cluster is reached by Airflow's connections, on demand."""

    def question(
        self,
        plan: Plan,
        batch_id: str,
        voice: int,
        requested_by: str | None,
        origin: Origin,
        asked_digest: str | None = None,
    ) -> ApprovalQuestion:
        """Approval request for a batch; a second person is asked about the steps that the first one approved."""
        answers = answers_of(self.ledger, plan.plan_id, batch_id, self.run) if voice > 1 else ()
        approved = [each for each in answers[: voice - 1] if each.decision is Decision.APPROVED]
        first = approved[0] if approved else None
        namespace = namespace_to_leave_alone(plan.batch(batch_id))
        return ApprovalQuestion(
            plan=plan,
            batch_id=batch_id,
            run=self.run,
            requested_by=requested_by,
            origin=origin,
            voice=voice,
            first=first,
            never_asked=self.policy.for_namespace(namespace).approval.never_ask if namespace else (),
            asked_digest=asked_digest,
        )

    @contextmanager
    def reading_here(self) -> Iterator[ReadContext]:
        """Opens read access to the live cluster, together with ledger and policy."""
        with self.reading(connections.admin_settings(self.cluster, self.policy)) as context:
            yield context

    @contextmanager
    def applying_here(self) -> Iterator[ApplyContext]:
        """Opens access to the live cluster for the changes that `pulsar_steward.apply` permits.

        Only here are credentials used that may change a cluster; everything else uses `reading_here`.
        """
        switch = StopSwitch(self.ledger, self.cluster, lambda name: halted_by_variable(name, self.ledger.clusters))
        access = connections.change_access(self.cluster, self.policy)
        with self.applying(access.settings, switch, access.observed) as context:
            yield context


@contextmanager
def open_context(cluster: str, run: str) -> Iterator[TaskContext]:
    """Opens the resources that a task needs to read one cluster and to plan.

    Raises:
        LedgerError: If the ledger cannot be reached.
        PolicyError: If the cluster's policy does not exist, or is not valid.
    """
    with _ledger() as engine, _opened(engine, cluster, run) as task:
        yield task


@contextmanager
def open_context_of_plan(plan_id: str, run: str) -> Iterator[TaskContext]:
    """Opens the resources for a recorded plan's cluster; tasks that change a cluster take its name only from there.

    Raises:
        NotInLedger: If there is no such plan.
        LedgerError: If the ledger cannot be reached, or the plan is not what was recorded.
        PolicyError: If the cluster's policy does not exist, or is not valid.
    """
    with _ledger() as engine, _opened(engine, LedgerReader(engine).plan(plan_id).cluster, run) as task:
        yield task


@contextmanager
def open_context_of_request(run: str, voice: int) -> Iterator[tuple[TaskContext, Request]]:
    """Opens the resources for a run's last approval request to this approver, and gives the request.

    Raises:
        NotInLedger: If the run made no request.
        LedgerError: If the ledger cannot be reached, or the plan is not what was recorded.
        PolicyError: If the cluster's policy does not exist, or is not valid.
    """
    with _ledger() as engine:
        ledger = LedgerReader(engine)
        request = ledger.questions.last_of_run(run, voice)
        if request is None:
            raise NotInLedger(f"the ledger holds no approval request of run {run}: an answer to it permits nothing")
        with _opened(engine, ledger.plan(request.plan_id).cluster, run) as task:
            yield task, request


@contextmanager
def _ledger() -> Iterator[Engine]:
    engine = connections.ledger()
    try:
        yield engine
    finally:
        engine.dispose()


@contextmanager
def _opened(engine: Engine, cluster: str, run: str) -> Iterator[TaskContext]:
    policy = connections.policy_of(cluster)
    heads = LedgerHeads(engine.url)
    writer, ledger = LedgerWriter(engine), LedgerReader(engine)
    try:
        with publisher(cluster, policy.events) as listener:
            yield TaskContext(
                cluster=cluster,
                run=run,
                ledger=ledger,
                ledger_writer=writer,
                journal=Journal(writer, cluster, listener),
                policy=policy,
                clock=LedgerClock(ledger, home.now),
                noted=heads.noted(),
            )
    finally:
        heads.note(writer.head)
