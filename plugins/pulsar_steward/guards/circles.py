"""Guard: no bundle is moved in a namespace where moves went in circles.

Two opposite moves of one bundle mean that two balancers disagree, or that the load follows the bundle. Another move
would only continue the circle (apache/pulsar#21722, #20822, #16059).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.guards.kinds import BundleGuard, Objection
from pulsar_steward.model.units import counted

if TYPE_CHECKING:
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.model.step import BundleChange, GuardResult
    from pulsar_steward.policy.schema import Policy


class Circles(BundleGuard):
    """Looks for circles in the whole namespace, as the same load may return in another bundle."""

    name = "circles"
    objection = Objection.REFUSED
    not_asked_of_rollbacks = "a person asks for it, and no balancer; what is proposed next stops at the circle"

    def check_bundle(self, change: BundleChange, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes a step in a namespace with a bundle that was moved away and back within `guards.circle_minutes`."""
        minutes = f"{counted(policy.guards.circle_minutes, 'minute')} (policy key guards.circle_minutes)"
        circling = facts.circling(change.namespace)
        if not circling:
            return self.result(f"no bundle of {change.namespace} moved in a circle within {minutes}", passed=True)
        reason = f"{circling[0]} of {change.namespace} was moved away and back within {minutes}"
        return self.result(reason, passed=False)
