"""Carries a batch out in a process of its own, and ends it, as a kill would, at a chosen point.

Arguments: the ledger's URL, the plan's id, the point (``intent``, ``call``, ``lookup``, ``proof`` or ``never``; at
``stop`` and ``stop at lookup`` it is stopped, and goes on when it is told), and the admin URLs of the cluster.
"""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from pulsar_steward.apply.context import LedgerContext
from pulsar_steward.apply.execute import carry_out
from pulsar_steward.apply.halting import StopSwitch
from pulsar_steward.apply.journal import Journal
from pulsar_steward.ledger.read import LedgerReader
from pulsar_steward.ledger.write import LedgerWriter
from pulsar_steward.policy.schema import Policy
from pulsar_steward.pulsar.settings import AdminSettings
from pulsar_steward.pulsar.writer import Writer
from tests.apply.worksite import RUN, Clock
from tests.builders import CLUSTER
from tests.ledgers import ledger_at

if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsar_steward.ledger.rows import StepOutcome
    from pulsar_steward.pulsar.calls import Call


class DyingWriter(Writer):
    """Sends as the real one, and dies where it is told."""

    point = "never"

    def send(self, call: Call, may_leave: Callable[[], None]) -> None:
        """Sends a call, unless the process ends first."""
        changes = call.method == "PUT"
        if self.point == ("intent" if changes else "lookup"):
            os._exit(9)
        if self.point == ("stop" if changes else "stop at lookup"):
            os.kill(os.getpid(), signal.SIGSTOP)
        super().send(call, may_leave)
        if self.point == "call" and changes:
            os._exit(9)


class DyingJournal(Journal):
    """Writes as the real one, and dies where it is told."""

    point = "never"

    def outcome(self, outcome: StepOutcome) -> None:
        """Records an outcome, unless the process ends first."""
        if self.point == "proof":
            os._exit(9)
        super().outcome(outcome)


def main(url: str, plan_id: str, point: str, *admin_urls: str) -> None:
    """Carries the batch out, as far as the process lives."""
    engine = ledger_at(url)
    # As a retry has it: the policy of the plan.
    ledger = LedgerReader(engine)
    policy = Policy.model_validate(ledger.policy(ledger.plan(plan_id).policy_digest).sections)
    settings = AdminSettings(urls=admin_urls, limits=policy.admin)
    ledger_writer = LedgerWriter(engine)
    journal = DyingJournal(ledger_writer, CLUSTER)
    DyingWriter.point = DyingJournal.point = point
    ledger_context = LedgerContext(
        cluster=CLUSTER,
        run=RUN,
        ledger=LedgerReader(engine),
        ledger_writer=ledger_writer,
        journal=journal,
        policy=policy,
        clock=Clock(),
    )
    with ledger_context.applying(settings, StopSwitch(LedgerReader(engine), CLUSTER)) as context:
        for outcome in carry_out(replace(context, writer=DyingWriter(settings)), plan_id, "b1"):
            sys.stdout.write(f"{outcome.step_id} {outcome.outcome}\n")
    engine.dispose()


if __name__ == "__main__":
    main(*sys.argv[1:])
