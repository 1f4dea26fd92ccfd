"""Steward's recent moves, their durations, and raises of the number of coordinators."""

from __future__ import annotations

import statistics
from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from datetime import datetime

    from pulsar_steward.ledger.read import LedgerReader
    from pulsar_steward.model.cluster import NamedCluster
    from pulsar_steward.policy.schema import Policy


MOST_MOVES = 200
"""Maximum number of moves, the newest ones, so that the query stays fast in a large ledger."""


class MoveTimes(msgspec.Struct, frozen=True, kw_only=True):
    """Durations of moves, from the call until the new owner was seen.

    Attributes:
        moves: Number of moves.
        middle: Median, in seconds.
        nine_in_ten: 90th percentile, in seconds; not the maximum, as a crash makes a single move seem to take hours.
        days: Period of these moves, in days.
    """

    moves: int
    middle: float
    nine_in_ten: float
    days: int


def looked_back(policy: Policy) -> timedelta:
    """Longest time for which guards and the pace look back at changes of a cluster."""
    guards = policy.guards
    rests = (policy.tc_skew.cooldown_minutes, guards.circle_minutes, guards.coordinators_rest_minutes)
    return timedelta(minutes=max(*rests, guards.snapshot_valid_minutes, 60))  # an hour: guards.most_changes_per_hour


def move_times(ledger: LedgerReader, cluster: NamedCluster, at: datetime, policy: Policy) -> MoveTimes | None:
    """Durations of the newest moves in a cluster, within the policy's days; None: there are none.

    Raises:
        LedgerError: If the ledger cannot be read.
    """
    days = policy.failover_time.moves_count_for_days
    took = sorted(ledger.past(cluster).move_seconds_since(at - timedelta(days=days), MOST_MOVES))
    if not took:
        return None
    nine_in_ten = took[-(-9 * len(took) // 10) - 1]
    return MoveTimes(moves=len(took), middle=statistics.median(took), nine_in_ten=nine_in_ten, days=days)


def moved_lately(ledger: LedgerReader, cluster: NamedCluster, at: datetime, policy: Policy) -> dict[str, datetime]:
    """Time of each bundle's last move, by ``tenant/ns/range``, within the policy's cooldown.

    Raises:
        LedgerError: If the ledger cannot be read.
    """
    return ledger.past(cluster).moves_since(at - timedelta(minutes=policy.tc_skew.cooldown_minutes))


def circling_lately(
    ledger: LedgerReader, cluster: NamedCluster, at: datetime, policy: Policy
) -> dict[str, tuple[str, ...]]:
    """Ranges of bundles that were moved away and back within the policy's time, by namespace.

    Raises:
        LedgerError: If the ledger cannot be read.
    """
    return ledger.past(cluster).moved_in_circles(at - timedelta(minutes=policy.guards.circle_minutes))


def raised_lately(ledger: LedgerReader, cluster: NamedCluster, at: datetime, policy: Policy) -> tuple[datetime, ...]:
    """Times at which the number of coordinators was raised, oldest first, within the policy's rest time.

    Raises:
        LedgerError: If the ledger cannot be read.
    """
    return ledger.past(cluster).raised_since(at - timedelta(minutes=policy.guards.coordinators_rest_minutes))
