"""Guard: the cluster that responds is the cluster of the plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.guards.kinds import Guard, Objection

if TYPE_CHECKING:
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.model.step import GuardedChange, GuardResult
    from pulsar_steward.policy.schema import Policy


class SameCluster(Guard):
    """Compares identities: a connection may have been pointed at another cluster since the approval."""

    name = "same_cluster"
    objection = Objection.DRIFTED

    def check(self, step: GuardedChange, facts: ClusterFacts, policy: Policy) -> GuardResult:  # noqa: ARG002 - part of the protocol
        """Vetoes any change if another cluster responds."""
        planned, answers = facts.planned_for, facts.identity()
        if not planned.is_same(answers):
            return self.result(f"Pulsar cluster {answers} answers, and the plan is for {planned}", passed=False)
        return self.result(f"Pulsar cluster {answers} answers", passed=True)
