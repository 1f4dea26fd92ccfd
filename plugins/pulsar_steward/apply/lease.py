"""Lease: the right to write to one cluster, held and prolonged while a batch runs.

A lease that is not prolonged expires, so it ends after a crash. Every intent is recorded under the lease's fence: a
writer that slept past the end of its lease cannot go on.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from pulsar_steward.errors import LeaseLost, LedgerError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from tenacity import RetryCallState

    from pulsar_steward.ledger.rows import Lease
    from pulsar_steward.ledger.write import LedgerWriter
    from pulsar_steward.model.cluster import NamedCluster
    from pulsar_steward.policy.schema import ApplyPolicy

log = logging.getLogger(__name__)

_POLL_SECONDS = 1.0


class HeldLease:
    """Lease that a thread prolongs; `current` is the last one that the ledger granted."""

    def __init__(
        self, ledger: LedgerWriter, cluster: NamedCluster, lease: Lease, seconds: int, clock: Callable[[], datetime]
    ) -> None:
        self._ledger = ledger
        self._cluster = cluster
        self._lease = lease
        self._seconds = seconds
        self._clock = clock
        self._over = threading.Event()
        self._lost: str | None = None
        self._thread = threading.Thread(target=self._keep, name=f"lease-{lease.cluster}", daemon=True)

    @property
    def current(self) -> Lease:
        """The lease for recording an intent.

        Raises:
            LeaseLost: If it could not be prolonged.
        """
        if self._lost is not None:
            raise LeaseLost(self._lost)
        return self._lease

    def start(self) -> None:
        """Starts the thread that prolongs it."""
        self._thread.start()

    def end(self) -> None:
        """Stops prolonging the lease and ends it; if that fails, it expires by itself."""
        self._over.set()
        self._thread.join()
        try:
            self._ledger.end_lease(self._lease, self._clock())
        except LedgerError as error:
            log.warning("the lease on %s will run out by itself: %s", self._lease.cluster, error)

    def _keep(self) -> None:
        while not self._over.wait(self._seconds / 3):
            try:
                self._lease = self._ledger.prolong_lease(self._cluster, self._lease, self._seconds, self._clock())
            except LedgerError as error:
                log.warning("could not prolong the lease on %s: %s", self._lease.cluster, error)
            except LeaseLost as error:
                self._lost = str(error)
                return


@contextmanager
def held_lease(
    ledger: LedgerWriter,
    cluster: NamedCluster,
    holder: str,
    policy: ApplyPolicy,
    clock: Callable[[], datetime],
    rest: Callable[[float], None] = time.sleep,
    beside: frozenset[str] = frozenset(),
) -> Iterator[HeldLease]:
    """Holds a cluster's lease in a ``with`` block. It first waits for writers of this cluster and of those beside it.

    Args:
        ledger: The ledger's writer.
        cluster: The cluster, held under all of its names.
        holder: Name of the holder; two blocks never share a lease, not even with the same holder.
        policy: Length of the lease, and of the wait for it.
        clock: Current time, UTC.
        rest: Waits for a number of seconds; raises `Halted` if somebody said stop.
        beside: Clusters of which only some are changed at the same time as this one (`apply.members_at_once`).

    Raises:
        LeaseLost: If the other writer did not finish within the policy's time.
        LedgerError: If the ledger cannot be written.
    """
    # Two processes may act for the same run (a worker that was given up, and its replacement): only one gets the lease.
    writer = f"{holder}#{secrets.token_hex(4)}"
    taken = _taken(ledger, cluster, writer, policy, clock, rest, beside)
    lease = HeldLease(ledger, cluster, taken, policy.lease_seconds, clock)
    lease.start()
    try:
        yield lease
    finally:
        lease.end()


def _taken(
    ledger: LedgerWriter,
    cluster: NamedCluster,
    holder: str,
    policy: ApplyPolicy,
    clock: Callable[[], datetime],
    rest: Callable[[float], None],
    beside: frozenset[str],
) -> Lease:
    def say(state: RetryCallState) -> None:
        if state.attempt_number == 1 and state.outcome:
            log.info("waiting: %s", state.outcome.exception())

    waiting = Retrying(
        retry=retry_if_exception_type(LeaseLost),
        stop=stop_after_delay(policy.lease_wait_seconds),
        wait=wait_fixed(_POLL_SECONDS),
        sleep=rest,
        before_sleep=say,
        reraise=True,
    )
    try:
        most = policy.members_at_once
        return waiting(
            lambda: ledger.take_lease(cluster, holder, policy.lease_seconds, clock(), beside=beside, at_once=most)
        )
    except LeaseLost as error:
        raise LeaseLost(f"{error}; waited {policy.lease_wait_seconds} s (apply.lease_wait_seconds)") from error
