"""Guard: the target of a move is an active broker that responds, and not the present owner."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.guards.kinds import Objection, TargetGuard

if TYPE_CHECKING:
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.model.step import GuardResult, UnloadBundle
    from pulsar_steward.policy.schema import Policy


class TargetActive(TargetGuard):
    """Checks the target: an unload to a lost broker gets 409, and a move to the owner only disconnects clients."""

    name = "target_active"
    objection = Objection.DRIFTED

    def check_target(self, change: UnloadBundle, facts: ClusterFacts, policy: Policy) -> GuardResult:  # noqa: ARG002 - part of the protocol
        """Vetoes a move to a broker that is gone or owns the bundle already."""
        if not facts.is_active(change.target):
            return self.result(f"{change.target} is not active or did not answer", passed=False)
        if change.target == facts.owner(change):
            return self.result(f"{change.target} owns it already", passed=False)
        return self.result(f"{change.target} is active", passed=True)
