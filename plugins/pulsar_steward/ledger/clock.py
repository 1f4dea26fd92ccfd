"""The current time from this machine's clock and the ledger: never earlier than the ledger's newest row."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from pulsar_steward.ledger.standing import TOLERATED

if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsar_steward.ledger.read import LedgerReader

log = logging.getLogger(__name__)


class LedgerClock:
    """This machine's clock, advanced if it is behind the times that Steward wrote into the ledger.

    Args:
        ledger: Read once; the ledger's own transactions compare later rows.
        clock: This machine's clock, UTC.
    """

    def __init__(self, ledger: LedgerReader, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._clock = clock
        now, newest = clock(), ledger.newest_row()
        self._behind = max(newest - now, timedelta()) if newest is not None else timedelta()
        if self._behind > TOLERATED:
            log.warning(
                "this machine's clock shows %s, and the ledger's newest row is of %s, UTC: it counts as that late; set"
                " the clocks right", now, newest
            )  # fmt: skip

    def __call__(self) -> datetime:
        """Current time, UTC."""
        return self._clock() + self._behind
