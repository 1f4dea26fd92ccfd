"""Contexts: all resources for work on one cluster, so that functions take them as one argument."""

from __future__ import annotations

import time
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import msgspec

from pulsar_steward.apply.live_reader import LiveReader
from pulsar_steward.errors import AdminError, ConfigurationError, Refused
from pulsar_steward.ledger.rows import Outcome, StepOutcome
from pulsar_steward.model.cluster import admin_connection, change_connection
from pulsar_steward.model.step import Change
from pulsar_steward.pulsar.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from pulsar_steward.apply.halting import StopSwitch
    from pulsar_steward.apply.journal import Journal
    from pulsar_steward.ledger.chain import Head
    from pulsar_steward.ledger.read import LedgerReader
    from pulsar_steward.ledger.write import LedgerWriter
    from pulsar_steward.policy.schema import Policy
    from pulsar_steward.pulsar.settings import AdminSettings


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a step, with the observed values, and the change that could still lead to the approved state."""

    outcome: Outcome
    reason: str
    values: dict[str, Any] = {}
    continuation: Change | None = None


@dataclass(frozen=True)
class LedgerContext:
    """Ledger and policy of one cluster, for one run, without access to the cluster.

    Attributes:
        cluster: The cluster's name in Steward's connections; plans for another one are refused.
        run: The acting run, ``dag/run/map index``; an answer is bound to it.
        ledger: Reads the ledger.
        ledger_writer: Writes intents and leases.
        journal: Writes answers, outcomes and proofs, and publishes them.
        policy: Thresholds and limits.
        clock: Current time, UTC; never before the ledger's newest row.
        noted: Ends of the ledger's chain that were recorded outside of the ledger.
    """

    cluster: str
    run: str
    ledger: LedgerReader
    ledger_writer: LedgerWriter
    journal: Journal
    policy: Policy
    clock: Callable[[], datetime]
    noted: tuple[Head, ...] = ()

    @contextmanager
    def reading(self, settings: AdminSettings) -> Iterator[ReadContext]:
        """Adds a reader of the cluster behind these settings; its connections are closed at the end."""
        with LiveReader(settings) as reader:
            yield ReadContext(**_parts(self), reader=reader)

    @contextmanager
    def applying(
        self, settings: AdminSettings, switch: StopSwitch, observed: AdminSettings | None = None
    ) -> Iterator[ApplyContext]:
        """Adds a reader and a writer of the cluster behind these settings; their connections are closed at the end.

        Both use the same settings: guards, calls and proofs reach the same brokers.

        Args:
            settings: Admin API settings that may change the cluster.
            switch: Tells whether changes were halted.
            observed: Settings with which the cluster is observed, if they have other addresses.
        """
        with (
            LiveReader(settings) as reader,
            Writer(settings) as writer,
            LiveReader(observed) if observed else nullcontext() as observer,
        ):
            yield ApplyContext(**_parts(self), reader=reader, writer=writer, switch=switch, observer=observer)


@dataclass(frozen=True, kw_only=True)
class ReadContext(LedgerContext):
    """A `LedgerContext` that can also read the cluster: enough for a dry run, and to prove changes.

    Attributes:
        reader: Reads the cluster.
    """

    reader: LiveReader


@dataclass(frozen=True, kw_only=True)
class ApplyContext(ReadContext):
    """A `ReadContext` that can also change the cluster; only for carrying out a batch.

    Attributes:
        writer: Changes the cluster.
        switch: Tells whether changes were halted.
        observer: Reads the cluster through the connection for reading, if that has other addresses; else None.
        rest: Waits for a number of seconds between two looks at the effect of a call.
    """

    writer: Writer
    switch: StopSwitch
    observer: LiveReader | None = None
    rest: Callable[[float], None] = time.sleep

    def require_observed_cluster(self) -> None:
        """Requires that the connections for reading and for changing lead to one cluster, by their lists of brokers.

        The guard `same_cluster` compares the changed cluster with the plan's by name and metadata store, and two
        clusters may share both. No two clusters list the same brokers.

        Raises:
            Refused: If they lead to different clusters, or a list cannot be read.
        """
        if self.observer is None:
            return
        changing, looking = change_connection(self.cluster), admin_connection(self.cluster)
        try:
            there, here = self.reader.identity(), self.observer.identity()
            common = set(self.reader.brokers()) & set(self.observer.brokers())
        except (AdminError, ConfigurationError) as error:
            raise Refused(
                f"whether the connections {changing!r} and {looking!r} lead to one cluster cannot be read: {error}"
            ) from error
        if there.is_same(here) and common:
            return
        apart = "" if not there.is_same(here) else ", and neither lists a broker of the other"
        raise Refused(
            f"the connection {changing!r} leads to Pulsar cluster {there}, and {looking!r} to {here}{apart}: give both"
            f" the addresses of one cluster, or leave them out of {changing!r}, which then uses those of {looking!r}"
        )

    def recorded(
        self, plan_id: str, batch_id: str, step_id: str, result: Result, intent_id: int | None = None
    ) -> StepOutcome:
        """Records the outcome of a step, and returns the row.

        Args:
            plan_id: The plan's id.
            batch_id: The batch's id.
            step_id: The step's id.
            result: The step's result.
            intent_id: Id of its call's intent, if a call was made.
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


def _parts(context: LedgerContext) -> dict[str, Any]:
    return {field.name: getattr(context, field.name) for field in fields(LedgerContext)}
