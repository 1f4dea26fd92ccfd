"""Wait of an approved batch for its maintenance window.

People approve during their working hours, and the policy may permit changes only at other times. A waiting batch is
neither begun nor claimed: once the window opens, everything is checked as if the answer had just come.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.apply.gate import ask_for_permit
from pulsar_steward.errors import Refused
from pulsar_steward.guards.window_times import next_opening, windows_for

if TYPE_CHECKING:
    from datetime import datetime

    from pulsar_steward.apply.context import LedgerContext


def opening_waited_for(context: LedgerContext, plan_id: str, batch_id: str) -> datetime | None:
    """Opening of the window that an approved batch waits for; None: it is to be tried now.

    A batch that the gate refuses does not wait: the gate gives the reason at once. A batch that has begun does not wait
    either, as the results of its calls have to be read.

    Raises:
        LedgerError: If the ledger cannot be read, or was tampered with.
    """
    ledger, policy, now = context.ledger, context.policy, context.clock()
    opens = next_opening(windows_for(ledger.plan(plan_id).batch(batch_id), policy), now)
    if opens is None or ledger.intents(plan_id, batch_id):
        return None
    try:
        permit = ask_for_permit(ledger, plan_id, batch_id, context.run, now, policy, noted=context.noted)
    except Refused:
        return None
    return opens if opens < permit.grant.expires_at else None
