"""Stop switch: checked before every call, and every second while a batch waits."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pulsar_steward.errors import Halted
from pulsar_steward.model.cluster import NamedCluster

if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsar_steward.ledger.read import LedgerReader

_SLICE_SECONDS = 0.5


def never(_name: str) -> None:
    """Default for the second switch, beside the ledger's: never halted."""


class StopSwitch:
    """Switch by which a person stops all changes of one cluster: the ledger's, and perhaps another one.

    Args:
        ledger: The ledger, into which `steward halt` writes.
        cluster: The cluster's name in Steward's connections; `of` adds its Pulsar cluster.
        other: Second switch, such as a variable of Airflow: returns why a name is halted; None: it is not halted.
    """

    def __init__(self, ledger: LedgerReader, cluster: str, other: Callable[[str], str | None] = never) -> None:
        self._ledger = ledger
        self._cluster = NamedCluster(cluster)
        self._other = other

    def of(self, cluster: NamedCluster) -> StopSwitch:
        """This switch for a cluster with a known identity, such as a plan's: a halt under any of its names counts."""
        switch = StopSwitch(self._ledger, cluster.name, self._other)
        switch._cluster = cluster
        return switch

    def require_going(self) -> None:
        """Checks that nobody halted the cluster.

        Raises:
            Halted: If somebody did; names the person and the way to resume.
            LedgerError: If the ledger cannot be read, which counts as halted.
        """
        if halt := self._ledger.halt(self._cluster):
            raise Halted(halt.words_for(self._cluster.name))
        for name in sorted(self._ledger.known(self._cluster).names):
            if reason := self._other(name):
                raise Halted(reason)

    def rest(self, seconds: float) -> None:
        """Waits, and stops waiting within 1 s of a halt.

        Raises:
            Halted: As `require_going`.
            LedgerError: As `require_going`.
        """
        until = time.monotonic() + seconds
        while True:
            self.require_going()
            left = until - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(left, _SLICE_SECONDS))
