"""Last check before a call leaves: now or never.

A process can be stopped between the record of its intent and the call: by a debugger, a paused machine, or heavy
swapping. When it goes on, its lease may have ended, somebody may have said stop, and another process may have finished
the step. So right before a call leaves, its intent has to be young, and all that permits it is looked at once more.
"""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING

from pulsar_steward.errors import Refused

if TYPE_CHECKING:
    from datetime import datetime

    from pulsar_steward.apply.context import ApplyContext
    from pulsar_steward.apply.lease import HeldLease
    from pulsar_steward.ledger.rows import Grant


def seconds_since_boot() -> float:
    """Seconds on a clock that nobody can set; it also counts while the machine sleeps, if it has such a clock."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Clearance:
    """Leave to send the call of one intent; created right before the intent is recorded, as its age counts from here.

    Args:
        context: The cluster, its ledger and its policy.
        grant: The rows that permit the call.
        lease: The lease under which the call is made.
    """

    def __init__(self, context: ApplyContext, grant: Grant, lease: HeldLease) -> None:
        self._context = context
        self._grant = grant
        self._lease = lease
        self._began = seconds_since_boot()
        self._at = context.clock()

    def require(self) -> None:
        """Checks that the call may leave at this moment; called as late as possible before it is sent.

        Raises:
            Refused: If the intent is too old, or the approval is over.
            Halted: If a person stopped all changes of the cluster.
            LeaseLost: If another writer holds the cluster by now.
            LedgerError: If the ledger cannot be read; then no call leaves.
        """
        self._require_young()
        self._context.switch.require_going()
        self._context.ledger.require_may_leave(self._grant, self._lease.current, self._context.clock())
        self._require_young()  # as the ledger may have taken long

    def _require_young(self) -> None:
        # Both clocks: the clock since boot may stop while a virtual machine is paused, and the other one may be set.
        age = max(seconds_since_boot() - self._began, (self._context.clock() - self._at).total_seconds())
        bound = self._context.policy.apply.intent_valid_seconds
        if age > bound:
            raise Refused(
                f"its intent is {age:.0f} s old, and a call leaves within {bound} s of it or never"
                " (apply.intent_valid_seconds): this process was held up"
            )


class Completion:
    """Leave to send the lookups that complete a change, as long as its proof is awaited.

    Neither a halt nor another writer stops them. They only load a bundle without an owner, which is worse than a moved
    bundle; a loaded bundle is left alone. A process that was held up meanwhile sends none.

    Args:
        context: The policy.
        seconds: Time limit of the proof.
    """

    def __init__(self, context: ApplyContext, seconds: float) -> None:
        self._began = seconds_since_boot()
        self._bound = seconds + context.policy.apply.intent_valid_seconds

    def require(self) -> None:
        """Checks that this process was not held up.

        Raises:
            Refused: If it was.
        """
        age = seconds_since_boot() - self._began
        if age > self._bound:
            raise Refused(f"the change is {age:.0f} s old, and is completed within {self._bound:.0f} s of it or left")


def can_leave_until(intended_at: datetime, context: ApplyContext) -> datetime:
    """Last time at which the call of an intent may leave, or take effect at a slow broker."""
    seconds = context.policy.apply.intent_valid_seconds + context.policy.admin.read_timeout_seconds
    return intended_at + timedelta(seconds=seconds)
