"""Stop switch: honoured before every call, and within a second wherever a batch waits."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from pulsar_steward.errors import Halted

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenacity import RetryCallState

    from pulsar_steward.ledger.read import LedgerReader

_SLICE_SECONDS = 0.5


def never() -> None:
    """Default of a switch beside the ledger's: never halted."""


def last_result(state: RetryCallState) -> Any:
    """Result of the last try; for tenacity, where the time is up."""
    return state.outcome.result() if state.outcome else None


class StopSwitch:
    """Switch by which a person stops all changes of one cluster: the ledger's, and perhaps another one.

    Args:
        ledger: The ledger, into which `steward halt` writes.
        cluster: The cluster's name in Steward's connections.
        other: Another switch, such as a variable of Airflow: the reason of its halt; None: it is not halted there.
    """

    def __init__(self, ledger: LedgerReader, cluster: str, other: Callable[[], str | None] = never) -> None:
        self._ledger = ledger
        self._cluster = cluster
        self._other = other

    def require_going(self) -> None:
        """Checks that nobody halted the cluster.

        Raises:
            Halted: With who said it, and how it goes on.
            LedgerError: If the ledger cannot be read: closed by default.
        """
        halt = self._ledger.halt(self._cluster)
        if halt is not None:
            raise Halted(f"{halt.words} (`steward resume` ends it)")
        if reason := self._other():
            raise Halted(reason)

    def rest(self, seconds: float) -> None:
        """Waits, and stops waiting within a second of a halt.

        Raises:
            Halted: As above.
            LedgerError: As above.
        """
        until = time.monotonic() + seconds
        while True:
            self.require_going()
            left = until - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(left, _SLICE_SECONDS))
