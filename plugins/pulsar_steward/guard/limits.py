"""Guard: no more changes in one run, and in one hour, than the policy permits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.guard.kinds import Guard
from pulsar_steward.guard.view import Objection

if TYPE_CHECKING:
    from pulsar_steward.guard.view import ClusterView
    from pulsar_steward.model.step import GuardResult, Step


class Limits(Guard):
    """Whatever was approved: a mistake in a plan or a policy stays a small one."""

    name = "limits"
    objection = Objection.REFUSED
    stops_a_way_back = False

    def check(self, step: Step, view: ClusterView) -> GuardResult:  # noqa: ARG002 - part of the protocol
        """Vetoes what is beyond `guards.most_changes_per_run` or `guards.most_changes_per_hour`."""
        policy = view.policy.guards
        of_run = f"change {view.place_in_run:,} of its run, of {policy.most_changes_per_run:,}"
        of_hour = f"{view.changes_in_the_last_hour:,} changes in the last hour, of {policy.most_changes_per_hour:,}"
        if view.place_in_run > policy.most_changes_per_run:
            return self.said(f"{of_run} (policy key guards.most_changes_per_run)", passed=False)
        if view.changes_in_the_last_hour >= policy.most_changes_per_hour:
            return self.said(f"{of_hour} (policy key guards.most_changes_per_hour)", passed=False)
        return self.said(f"{of_run}; {of_hour}", passed=True)
