"""What carrying out a batch needs at hand, in one place, so that functions take one argument for all of it."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from pulsar_steward.admin.writer import Writer
from pulsar_steward.apply.live_reader import LiveReader
from pulsar_steward.ledger.rows import StepOutcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from pulsar_steward.admin.settings import AdminSettings
    from pulsar_steward.apply.halting import StopSwitch
    from pulsar_steward.apply.journal import Journal
    from pulsar_steward.apply.perform import Result
    from pulsar_steward.ledger.chain import Head
    from pulsar_steward.ledger.read import LedgerReader
    from pulsar_steward.ledger.write import LedgerWriter
    from pulsar_steward.policy.schema import Policy


@dataclass(frozen=True)
class Bench:
    """One cluster, its ledger and its policy, for one run.

    Attributes:
        cluster: The cluster's name in Steward's connections; plans of another one are refused.
        run: The acting run, ``dag/run/map index``; an answer is bound to it.
        ledger: Reads the ledger.
        ledger_writer: Writes intents and leases.
        journal: Writes answers, outcomes and proofs, and tells the listeners.
        look: Reads the cluster.
        writer: Changes the cluster.
        policy: Thresholds and limits.
        clock: The present, UTC.
        switch: Whether somebody said stop.
        noted: Where the ledger's chain was seen to end at some time, as it is kept elsewhere.
    """

    cluster: str
    run: str
    ledger: LedgerReader
    ledger_writer: LedgerWriter
    journal: Journal
    look: LiveReader
    writer: Writer
    policy: Policy
    clock: Callable[[], datetime]
    switch: StopSwitch
    noted: tuple[Head, ...] = ()

    def recorded(
        self, plan_id: str, batch_id: str, step_id: str, result: Result, intent_id: int | None = None
    ) -> StepOutcome:
        """Writes down what a step came to, and returns the row.

        Args:
            plan_id: The plan's id.
            batch_id: The batch's.
            step_id: The step's.
            result: What it came to.
            intent_id: Of the call that was made for it, if there was one.
        """
        outcome = StepOutcome(
            plan_id=plan_id,
            batch_id=batch_id,
            step_id=step_id,
            intent_id=intent_id,
            run=self.run,
            at=self.clock(),
            outcome=result.outcome,
            reason=result.reason,
            proof=result.values,
        )
        self.journal.outcome(outcome)
        return outcome

    @classmethod
    @contextmanager
    def opened(  # noqa: PLR0913 - what the parts are, by name
        cls,
        settings: AdminSettings,
        *,
        cluster: str,
        run: str,
        ledger: LedgerReader,
        ledger_writer: LedgerWriter,
        journal: Journal,
        policy: Policy,
        clock: Callable[[], datetime],
        switch: StopSwitch,
        noted: tuple[Head, ...] = (),
    ) -> Iterator[Self]:
        """A bench on the cluster behind these settings, its connections closed at the end."""
        with LiveReader(settings) as look, Writer(settings) as writer:
            yield cls(
                cluster=cluster,
                run=run,
                ledger=ledger,
                ledger_writer=ledger_writer,
                journal=journal,
                look=look,
                writer=writer,
                policy=policy,
                clock=clock,
                switch=switch,
                noted=noted,
            )
