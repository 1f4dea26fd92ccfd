"""Resources of a task, opened for its length: ledger, journal, policy, clock, and on demand the cluster."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pulsar_steward.apply.bench import Bench
from pulsar_steward.apply.gate import answers_of
from pulsar_steward.apply.halting import StopSwitch
from pulsar_steward.apply.journal import Journal
from pulsar_steward.apply.live_reader import LiveReader
from pulsar_steward.ledger.clock import LedgerClock
from pulsar_steward.ledger.read import LedgerReader
from pulsar_steward.ledger.rows import Decision
from pulsar_steward.ledger.write import LedgerWriter
from pulsar_steward.orchestration import connections, home
from pulsar_steward.orchestration.answers import Question
from pulsar_steward.orchestration.events import publisher
from pulsar_steward.orchestration.halt_variable import halted_by_variable
from pulsar_steward.orchestration.ledger_heads import LedgerHeads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from sqlalchemy import Engine

    from pulsar_steward.ledger.chain import Head
    from pulsar_steward.ledger.rows import Origin
    from pulsar_steward.model.plan import Plan
    from pulsar_steward.policy.schema import Policy


@dataclass(frozen=True)
class Workshop:
    """Resources of one task; none of them can change a cluster.

    Attributes:
        cluster: The cluster's name in Steward's connections.
        run: The run of one batch, ``dag/run/map index``.
        ledger: Reads the ledger.
        ledger_writer: Adds to it.
        journal: Adds answers, outcomes and proofs, and publishes them.
        policy: Thresholds and limits.
        clock: Current time, UTC; not earlier than the ledger's newest row.
        noted: Ends of the ledger's chain that were recorded outside of the ledger.
    """

    cluster: str
    run: str
    ledger: LedgerReader
    ledger_writer: LedgerWriter
    journal: Journal
    policy: Policy
    clock: Callable[[], datetime]
    noted: tuple[Head, ...]

    def question(self, plan: Plan, batch_id: str, voice: int, requested_by: str | None, origin: Origin) -> Question:
        """Approval request for a batch; a second person is asked about the steps that the first one approved."""
        answers = answers_of(self.ledger, plan.plan_id, batch_id, self.run) if voice > 1 else ()
        approved = [each for each in answers[: voice - 1] if each.decision is Decision.APPROVED]
        first = approved[0] if approved else None
        return Question(
            plan=plan, batch_id=batch_id, run=self.run, requested_by=requested_by, origin=origin, first=first
        )

    @contextmanager
    def look(self) -> Iterator[LiveReader]:
        """Opens read access to the live cluster."""
        with LiveReader(connections.admin_settings(self.cluster, self.policy)) as look:
            yield look

    @contextmanager
    def bench(self) -> Iterator[Bench]:
        """Opens access to the live cluster for the changes that `pulsar_steward.apply` permits."""
        settings = connections.admin_settings(self.cluster, self.policy)
        with Bench.opened(
            settings,
            cluster=self.cluster,
            run=self.run,
            ledger=self.ledger,
            ledger_writer=self.ledger_writer,
            journal=self.journal,
            policy=self.policy,
            clock=self.clock,
            switch=StopSwitch(self.ledger, self.cluster, lambda: halted_by_variable(self.cluster)),
            noted=self.noted,
        ) as bench:
            yield bench


@contextmanager
def open_workshop(cluster: str, run: str) -> Iterator[Workshop]:
    """Opens the resources that a task needs to read one cluster and to plan.

    Raises:
        LedgerError: If the ledger cannot be reached.
        PolicyError: If the cluster's policy does not exist, or is not valid.
    """
    with _ledger() as engine, _opened(engine, cluster, run) as shop:
        yield shop


@contextmanager
def open_workshop_of_plan(plan_id: str, run: str) -> Iterator[Workshop]:
    """Opens the resources for the cluster of a recorded plan: a task that acts takes the cluster from nowhere else.

    Raises:
        NotInLedger: If there is no such plan.
        LedgerError: If the ledger cannot be reached, or the plan is not what was recorded.
        PolicyError: If the cluster's policy does not exist, or is not valid.
    """
    with _ledger() as engine, _opened(engine, LedgerReader(engine).plan(plan_id).cluster, run) as shop:
        yield shop


@contextmanager
def _ledger() -> Iterator[Engine]:
    engine = connections.ledger()
    try:
        yield engine
    finally:
        engine.dispose()


@contextmanager
def _opened(engine: Engine, cluster: str, run: str) -> Iterator[Workshop]:
    policy = connections.policy_of(cluster)
    heads = LedgerHeads(engine.url)
    writer, ledger = LedgerWriter(engine), LedgerReader(engine)
    try:
        with publisher(cluster, policy.events) as listener:
            yield Workshop(
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
