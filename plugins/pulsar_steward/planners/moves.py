"""Which bundles Steward moved lately, as far back as planners and guards look."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.ledger.moves import circling_lately, moved_lately

if TYPE_CHECKING:
    from pulsar_steward.ledger.read import LedgerReader
    from pulsar_steward.policy.schema import Policy


class Moves(msgspec.Struct, frozen=True, kw_only=True):
    """What Steward moved.

    Attributes:
        moved_at: When a bundle (``tenant/ns/range``) was last moved, as far back as the cooldown reaches.
        circling: Namespaces of which bundles were moved away and back within the policy's time, with their ranges.
    """

    moved_at: dict[str, datetime] = {}
    circling: dict[str, tuple[str, ...]] = {}


def moves_before(ledger: LedgerReader, cluster: str, at: datetime, policy: Policy) -> Moves:
    """What was moved in a cluster before a time.

    Raises:
        LedgerError: If the ledger cannot be read.
    """
    return Moves(
        moved_at=moved_lately(ledger, cluster, at, policy), circling=circling_lately(ledger, cluster, at, policy)
    )
