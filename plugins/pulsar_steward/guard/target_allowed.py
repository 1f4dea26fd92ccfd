"""Guard: the target of a move is neither draining nor kept from the namespace by an isolation policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.guard.view import ClusterView, Objection
from pulsar_steward.model.step import GuardResult, SplitBundle

if TYPE_CHECKING:
    from pulsar_steward.model.step import Step


class TargetAllowed:
    """What moves to a draining broker stalls again soon; what isolation excludes, the broker gives away at once."""

    name = "target_allowed"
    objection = Objection.REFUSED

    def check(self, step: Step, view: ClusterView) -> GuardResult:
        """Vetoes a move to a draining or excluded broker; a split has no target."""
        change = step.change
        if isinstance(change, SplitBundle):
            return GuardResult(guard=self.name, passed=True, reason="a split has no target")
        if change.target in view.policy.brokers.draining:
            reason = f"{change.target} is draining (policy key brokers.draining)"
            return GuardResult(guard=self.name, passed=False, reason=reason)
        if view.allowed is not None and change.target not in view.allowed:
            reason = f"an isolation policy keeps {change.namespace} from {change.target}"
            return GuardResult(guard=self.name, passed=False, reason=reason)
        reason = f"{change.target} is not draining, and isolation policies leave it to {change.namespace}"
        return GuardResult(guard=self.name, passed=True, reason=reason)
