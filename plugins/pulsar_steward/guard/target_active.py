"""Guard: the target of a move is an active broker that answered, and not the present owner."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from pulsar_steward.guard.kinds import BundleGuard, Objection
from pulsar_steward.model.step import SplitBundle, UnloadBundle

if TYPE_CHECKING:
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.model.step import BundleChange, GuardResult
    from pulsar_steward.policy.schema import Policy


class TargetActive(BundleGuard):
    """Looks at the target: a broker that went away answers 409, and a move to the owner only drops clients."""

    name = "target_active"
    objection = Objection.DRIFTED

    def check_bundle(self, change: BundleChange, facts: ClusterFacts, policy: Policy) -> GuardResult:  # noqa: ARG002 - part of the protocol
        """Vetoes a move to a broker that is away or has the bundle already; a split has no target."""
        match change:
            case SplitBundle():
                return self.result("a split has no target", passed=True)
            case UnloadBundle():
                return self._check_target(change, facts)
            case _:
                assert_never(change)

    def _check_target(self, change: UnloadBundle, facts: ClusterFacts) -> GuardResult:
        if not facts.is_active(change.target):
            return self.result(f"{change.target} is not active or did not answer", passed=False)
        if change.target == facts.owner(change):
            return self.result(f"{change.target} owns it already", passed=False)
        return self.result(f"{change.target} is active", passed=True)
