"""Guards of the number of transaction coordinators, which can never be lowered again."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from pulsar_steward.guards.kinds import CoordinatorGuard, Objection
from pulsar_steward.model.units import counted

if TYPE_CHECKING:
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.model.step import GuardResult, RaiseCoordinators
    from pulsar_steward.policy.schema import Policy


class CoordinatorLimit(CoordinatorGuard):
    """Compares the new number with the policy's maximum, which permits no raise by default."""

    name = "coordinator_limit"
    objection = Objection.REFUSED

    def check_change(self, change: RaiseCoordinators, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes a number above `guards.most_coordinators`, and a number that is no raise."""
        most = policy.guards.most_coordinators
        if not most:
            return self.result("the policy permits no raise of their number (guards.most_coordinators)", passed=False)
        if change.after <= change.before:
            return self.result(f"{change.after:,} are not more than {change.before:,}", passed=False)
        reason = f"{change.after:,} of at most {most:,} (policy key guards.most_coordinators)"
        return self.result(reason, passed=change.after <= most)


MAX_NAMED = 3


class CoordinatorsRest(CoordinatorGuard):
    """Checks the present coordinators: more of them would not help while these recover."""

    name = "coordinators_rest"
    objection = Objection.REFUSED

    def check_change(self, change: RaiseCoordinators, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes a raise while a coordinator is unserved or recovering, and in the rest time after another raise."""
        if restless := facts.restless_coordinators():
            more = len(restless) - MAX_NAMED
            rest = f" and {counted(more, 'coordinator')} more" if more > 0 else ""
            return self.result(f"{', '.join(restless[:MAX_NAMED])}{rest}", passed=False)
        raised_at = facts.raised_at(change)
        if raised_at is None:
            return self.result("every coordinator is served, and their number was not raised lately", passed=True)
        end = raised_at + timedelta(minutes=policy.guards.coordinators_rest_minutes)
        passed = facts.now >= end
        verb = "rested" if passed else "rests"
        reason = (
            f"raised at {raised_at:%Y-%m-%d %H:%M:%S}, {verb} until {end:%Y-%m-%d %H:%M:%S} UTC"
            " (policy key guards.coordinators_rest_minutes)"
        )
        return self.result(reason, passed=passed)
