"""Guard: a step is made only if its call was tried on the brokers' Pulsar version, or the operator permits it.

A broker may respond normally to a call that it does not know: before 3.0, it ignores the destination of an unload.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.changes import kind_of
from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.guards.kinds import Guard, Objection
from pulsar_steward.model.pulsar_versions import objection_to, tried_as

if TYPE_CHECKING:
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.model.step import GuardedChange, GuardResult
    from pulsar_steward.policy.schema import Policy


class VersionTried(Guard):
    """Looks up the step's operation in the table of docs/versions.md; the least capable broker counts."""

    name = "version_tried"
    objection = Objection.REFUSED

    def check(self, step: GuardedChange, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes an operation that a broker's version lacks, that failed there, or that was never tried."""
        operation = kind_of(step.change).operation
        if operation is None:
            return self.result("it asks for nothing that a version of Pulsar might lack", passed=True)
        versions = facts.versions()
        if isinstance(versions, Unknown):
            return self.result(versions.reason, passed=False)
        here = policy.guards.versions_tried_here
        against = [reason for version in versions if (reason := objection_to(operation, version, here))]
        if against:
            return self.result("; ".join(against), passed=False)
        return self.result(f"{operation}: tried on {' and '.join(map(tried_as, versions))}", passed=True)
