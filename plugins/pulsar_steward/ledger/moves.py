"""Steward's recent moves, how long they took, and raises of the number of coordinators."""

from __future__ import annotations

import statistics
from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from datetime import datetime

    from pulsar_steward.ledger.read import LedgerReader
    from pulsar_steward.policy.schema import Policy


MOST_MOVES = 200
"""The newest ones, so that a question takes no longer in a large ledger."""


class MoveTimes(msgspec.Struct, frozen=True, kw_only=True):
    """How long moves took, from the call until the new owner was seen.

    Attributes:
        moves: Number of moves.
        middle: Seconds of the one in the middle.
        nine_in_ten: Seconds that nine in ten of them took at most: a crash makes a single one seem to take hours.
        days: Time within which they were.
    """

    moves: int
    middle: float
    nine_in_ten: float
    days: int


def move_times(ledger: LedgerReader, cluster: str, at: datetime, policy: Policy) -> MoveTimes | None:
    """Times of the newest moves in a cluster, as long as what was learned of it counts; None: there are none.

    Raises:
        LedgerError: If the ledger cannot be read.
    """
    days = policy.failover_time.learned_for_days
    took = sorted(ledger.move_seconds_since(cluster, at - timedelta(days=days), MOST_MOVES))
    if not took:
        return None
    nine_in_ten = took[-(-9 * len(took) // 10) - 1]
    return MoveTimes(moves=len(took), middle=statistics.median(took), nine_in_ten=nine_in_ten, days=days)


def moved_lately(ledger: LedgerReader, cluster: str, at: datetime, policy: Policy) -> dict[str, datetime]:
    """Time of each bundle's last move, by ``tenant/ns/range``, as far back as the cooldown reaches.

    Raises:
        LedgerError: If the ledger cannot be read.
    """
    return ledger.moves_since(cluster, at - timedelta(minutes=policy.tc_skew.cooldown_minutes))


def circling_lately(ledger: LedgerReader, cluster: str, at: datetime, policy: Policy) -> dict[str, tuple[str, ...]]:
    """Namespaces of which bundles were moved away and back within the policy's time, with their ranges.

    Raises:
        LedgerError: If the ledger cannot be read.
    """
    return ledger.moved_in_circles(cluster, at - timedelta(minutes=policy.guards.circle_minutes))


def raised_lately(ledger: LedgerReader, cluster: str, at: datetime, policy: Policy) -> tuple[datetime, ...]:
    """Times at which the number of coordinators was raised, oldest first, as far back as their rest reaches.

    Raises:
        LedgerError: If the ledger cannot be read.
    """
    return ledger.raised_since(cluster, at - timedelta(minutes=policy.guards.coordinators_rest_minutes))
