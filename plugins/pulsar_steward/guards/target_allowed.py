"""Guard: the target of a move is not draining, and no isolation policy excludes it for the namespace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.guards.kinds import Objection, TargetGuard

if TYPE_CHECKING:
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.model.step import GuardResult, UnloadBundle
    from pulsar_steward.policy.schema import Policy


class TargetAllowed(TargetGuard):
    """Checks the target: a draining broker stops soon, and an excluded one gives the bundle away at once."""

    name = "target_allowed"
    objection = Objection.REFUSED

    def check_target(self, change: UnloadBundle, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes a move to a draining or excluded broker."""
        if change.target in policy.brokers.draining:
            reason = f"{change.target} is draining (policy key brokers.draining)"
            return self.result(reason, passed=False)
        allowed = facts.allowed_brokers(change.namespace)
        if allowed is not None and change.target not in allowed:
            reason = f"an isolation policy keeps {change.namespace} from {change.target}"
            return self.result(reason, passed=False)
        reason = f"{change.target} is not draining, and isolation policies leave it to {change.namespace}"
        return self.result(reason, passed=True)
