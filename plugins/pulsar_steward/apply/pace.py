"""Pace of changes: bundle moves and reconnecting clients per minute, counted in the ledger.

The count is in the ledger, not in this process, so the pace holds across batches, runs and crashes.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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
