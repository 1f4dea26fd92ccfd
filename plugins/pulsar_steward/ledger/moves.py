"""Steward's recent moves and raises of the number of coordinators, as far back as planners and guards look."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from pulsar_steward.ledger.read import LedgerReader
    from pulsar_steward.policy.schema import Policy


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
