"""Guard: the target of a move is neither draining nor kept from the namespace by an isolation policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.guard.kinds import BundleGuard
from pulsar_steward.guard.view import Objection
from pulsar_steward.model.step import SplitBundle

if TYPE_CHECKING:
    from pulsar_steward.guard.view import BundleView, ClusterView
    from pulsar_steward.model.step import BundleChange, GuardResult


class TargetAllowed(BundleGuard):
    """What moves to a draining broker stalls again soon; what isolation excludes, the broker gives away at once."""

    name = "target_allowed"
    objection = Objection.REFUSED

    def check_bundle(self, change: BundleChange, bundle: BundleView, view: ClusterView) -> GuardResult:  # noqa: ARG002 - part of the protocol
        """Vetoes a move to a draining or excluded broker; a split has no target."""
        if isinstance(change, SplitBundle):
            return self.said("a split has no target", passed=True)
        if change.target in view.policy.brokers.draining:
            reason = f"{change.target} is draining (policy key brokers.draining)"
            return self.said(reason, passed=False)
        if view.allowed is not None and change.target not in view.allowed:
            reason = f"an isolation policy keeps {change.namespace} from {change.target}"
            return self.said(reason, passed=False)
        reason = f"{change.target} is not draining, and isolation policies leave it to {change.namespace}"
        return self.said(reason, passed=True)
