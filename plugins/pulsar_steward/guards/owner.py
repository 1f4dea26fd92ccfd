"""Guard: the bundle still has the owner for which the step was planned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.guards.kinds import BundleGuard, Objection
from pulsar_steward.model.step import present_owner

if TYPE_CHECKING:
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.model.step import BundleChange, GuardResult
    from pulsar_steward.policy.schema import Policy


class Owner(BundleGuard):
    """Compares owners: a bundle that was moved since no longer needs the step."""

    name = "owner"
    objection = Objection.DRIFTED

    def check_bundle(self, change: BundleChange, facts: ClusterFacts, policy: Policy) -> GuardResult:  # noqa: ARG002 - part of the protocol
        """Vetoes a step if its bundle has another owner, or none."""
        expected, owner = present_owner(change), facts.owner(change)
        if owner == expected:
            reason = f"{expected} owns it"
        elif isinstance(owner, Unknown):
            reason = owner.reason
        elif owner is None:
            reason = f"nobody owns it, not {expected}: the call would be answered and do nothing"
        else:
            reason = f"{owner} owns it, not {expected}"
        return self.result(reason, passed=owner == expected)
