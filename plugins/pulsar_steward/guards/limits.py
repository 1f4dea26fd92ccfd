"""Guard: the number of changes in one run, and in one hour, stays within the policy's limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.guards.kinds import Guard, Objection
from pulsar_steward.model.units import counted

if TYPE_CHECKING:
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.model.step import GuardedChange, GuardResult
    from pulsar_steward.policy.schema import Policy


class Limits(Guard):
    """Counts changes, so that a mistake in a plan or policy stays small."""

    name = "limits"
    objection = Objection.REFUSED
    not_asked_of_rollbacks = (
        "it has no more steps than what it takes back, and harm must not stay until an hour is over"
    )

    def check(self, step: GuardedChange, facts: ClusterFacts, policy: Policy) -> GuardResult:  # noqa: ARG002 - part of the protocol
        """Vetoes a step beyond `guards.most_changes_per_run` or `guards.most_changes_per_hour`."""
        guards, made = policy.guards, facts.changes_in_the_last_hour()
        of_run = f"change {facts.place_in_run:,} of its run, of {guards.most_changes_per_run:,}"
        of_hour = f"{counted(made, 'change')} in the last hour, of {guards.most_changes_per_hour:,}"
        if facts.place_in_run > guards.most_changes_per_run:
            return self.result(f"{of_run} (policy key guards.most_changes_per_run)", passed=False)
        if made >= guards.most_changes_per_hour:
            return self.result(f"{of_hour} (policy key guards.most_changes_per_hour)", passed=False)
        return self.result(f"{of_run}; {of_hour}", passed=True)
