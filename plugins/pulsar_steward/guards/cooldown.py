"""Guard: a bundle that Steward moved lately is not moved again during its cooldown, so that moves make no circles.

The brokers' own shedders have unloaded bundles in circles: apache/pulsar#21722, #20822, #16059.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from pulsar_steward.guards.kinds import BundleGuard, Objection

if TYPE_CHECKING:
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.model.step import BundleChange, GuardResult
    from pulsar_steward.policy.schema import Policy


def rest_ends(moved_at: datetime, policy: Policy) -> datetime:
    """End of a moved bundle's cooldown, when it may be moved again."""
    return moved_at + timedelta(minutes=policy.tc_skew.cooldown_minutes)


class Cooldown(BundleGuard):
    """Checks the time of the last move: clients that have just reconnected would have to reconnect again."""

    name = "cooldown"
    objection = Objection.REFUSED
    not_asked_of_rollbacks = "a move that does harm is taken back soon, and clients have to reconnect for that"

    def check_bundle(self, change: BundleChange, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes a step on a bundle that was moved within the cooldown."""
        moved_at = facts.moved_at(change)
        if moved_at is None:
            return self.result("not moved lately", passed=True)
        end = rest_ends(moved_at, policy)
        passed = facts.now >= end
        verb = "rested" if passed else "rests"
        reason = f"moved at {moved_at:%Y-%m-%d %H:%M:%S}, {verb} until {end:%Y-%m-%d %H:%M:%S} UTC"
        return self.result(reason, passed=passed)
