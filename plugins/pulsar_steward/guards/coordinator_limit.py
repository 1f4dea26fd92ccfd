"""Guard: the number of transaction coordinators stays within the policy's limit, as it can never be lowered again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.guards.kinds import CoordinatorGuard, Objection

if TYPE_CHECKING:
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.model.step import GuardResult, RaiseCoordinators
    from pulsar_steward.policy.schema import Policy


class CoordinatorLimit(CoordinatorGuard):
    """Compares the new number with the policy's maximum, which permits no raise by default."""

    name = "coordinator_limit"
    objection = Objection.REFUSED

    def check_raise(self, change: RaiseCoordinators, facts: ClusterFacts, policy: Policy) -> GuardResult:  # noqa: ARG002 - part of the protocol
        """Vetoes a number above `guards.most_coordinators`, and a number that is no raise."""
        most = policy.guards.most_coordinators
        if not most:
            return self.result("the policy permits no raise of their number (guards.most_coordinators)", passed=False)
        if change.after <= change.before:
            return self.result(f"{change.after:,} are not more than {change.before:,}", passed=False)
        reason = f"{change.after:,} of at most {most:,} (policy key guards.most_coordinators)"
        return self.result(reason, passed=change.after <= most)
