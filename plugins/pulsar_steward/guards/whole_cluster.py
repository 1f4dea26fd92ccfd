"""Guard: every broker responds, and no bookie is read-only; a cluster in trouble is left alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.guards.kinds import Guard, Objection

if TYPE_CHECKING:
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.model.step import GuardedChange, GuardResult
    from pulsar_steward.policy.schema import Policy


class WholeCluster(Guard):
    """Checks all brokers and bookies: it is not known yet where a silent broker's bundles will be loaded."""

    name = "whole_cluster"
    objection = Objection.REFUSED

    def check(self, step: GuardedChange, facts: ClusterFacts, policy: Policy) -> GuardResult:  # noqa: ARG002 - part of the protocol
        """Vetoes every step while a listed broker does not respond, or a bookie takes no writes."""
        if silent := facts.silent_brokers():
            return self.result(f"no answer from {', '.join(silent)}, which the cluster lists", passed=False)
        if read_only := facts.read_only_bookies():
            return self.result(f"read-only bookies: {', '.join(read_only)}", passed=False)
        return self.result("every listed broker answers, and no watched bookie is read-only", passed=True)
