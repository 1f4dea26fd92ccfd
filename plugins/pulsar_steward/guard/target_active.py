"""Guard: the target of a move is an active broker that answered, and not the present owner."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.guard.view import ClusterView, Objection
from pulsar_steward.model.step import GuardResult, SplitBundle

if TYPE_CHECKING:
    from pulsar_steward.model.step import Step


class TargetActive:
    """A broker that went away takes nothing (409); a bundle that moves to its own owner only drops its clients."""

    name = "target_active"
    objection = Objection.DRIFTED

    def check(self, step: Step, view: ClusterView) -> GuardResult:
        """Vetoes a move to a broker that is away or has the bundle already; a split has no target."""
        change = step.change
        if isinstance(change, SplitBundle):
            return GuardResult(guard=self.name, passed=True, reason="a split has no target")
        if change.target not in view.brokers:
            return GuardResult(guard=self.name, passed=False, reason=f"{change.target} is not active or did not answer")
        if change.target == view.bundle.owner:
            return GuardResult(guard=self.name, passed=False, reason=f"{change.target} owns it already")
        return GuardResult(guard=self.name, passed=True, reason=f"{change.target} is active")
