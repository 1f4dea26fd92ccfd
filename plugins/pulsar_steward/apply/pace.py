"""Pace of changes: bundle moves and reconnecting clients per minute, counted in the ledger.

The count is in the ledger, not in this process, so the pace holds across batches, runs and crashes.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from pulsar_steward.apply.gate import ask_for_permit
from pulsar_steward.errors import Refused
from pulsar_steward.guards.window_times import next_opening, windows_for

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pulsar_steward.apply.context import LedgerContext
    from pulsar_steward.ledger.read import LedgerReader
    from pulsar_steward.model.cluster import NamedCluster
    from pulsar_steward.policy.schema import ApplyPolicy

log = logging.getLogger(__name__)

WINDOW = timedelta(minutes=1)


def pause_before(made: Sequence[tuple[datetime, int]], clients: int, policy: ApplyPolicy, now: datetime) -> float:
    """Seconds to wait before one more change.

    Args:
        made: Time and touched clients of the changes so far, oldest first.
        clients: Clients that the next change touches.
        policy: The limits per minute.
        now: Current time.

    A single change above the limit of clients waits for an empty minute and then goes on: a guard decides whether it
    may go at all.
    """
    recent = [(at, touched) for at, touched in made if at > now - WINDOW]
    for gone in range(len(recent) + 1):
        left = recent[gone:]
        touching = sum(touched for _, touched in left)
        fits = len(left) < policy.bundle_moves_per_minute
        if not left or (fits and touching + clients <= policy.reconnecting_clients_per_minute):
            break
    return (recent[gone - 1][0] + WINDOW - now).total_seconds() if gone else 0.0


def keep_pace(
    ledger: LedgerReader,
    cluster: NamedCluster,
    clients: int,
    policy: ApplyPolicy,
    clock: Callable[[], datetime],
    rest: Callable[[float], None],
) -> None:
    """Waits until one more change keeps within the limits.

    Args:
        ledger: The ledger with the changes so far.
        cluster: The cluster; changes under all of its names count.
        clients: Clients that the next change touches.
        policy: The limits per minute.
        clock: Current time, UTC.
        rest: Waits for a number of seconds; raises `Halted` if somebody said stop.
    """
    past = ledger.past(cluster)
    while True:
        now = clock()
        seconds = pause_before(past.changes_since(now - WINDOW), clients, policy, now)
        if seconds <= 0:
            return
        log.info("keeping pace: next change in %.0f s", seconds)
        rest(seconds)


def slowed(policy: ApplyPolicy, times: int) -> ApplyPolicy:
    """The limits divided by `times`; at least one change per minute is left."""
    return policy.model_copy(
        update={
            "bundle_moves_per_minute": max(policy.bundle_moves_per_minute // times, 1),
            "reconnecting_clients_per_minute": max(policy.reconnecting_clients_per_minute // times, 1),
        }
    )


# People approve during their working hours, and the policy may permit changes only at other times. A waiting batch
# is neither begun nor claimed: once the window opens, everything is checked as if the answer had just come.
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
