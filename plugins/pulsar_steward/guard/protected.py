"""Guard: namespaces that the policy protects are never changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.guard.kinds import Guard, Objection

if TYPE_CHECKING:
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.model.step import GuardResult, Step
    from pulsar_steward.policy.schema import Policy


class Protected(Guard):
    """Looks the namespace up in the policy, which overrides every finding."""

    name = "protected"
    objection = Objection.REFUSED

    def check(self, step: Step, facts: ClusterFacts, policy: Policy) -> GuardResult:  # noqa: ARG002 - part of the protocol
        """Vetoes a step in one of `apply.protected_namespaces`."""
        namespace = step.change.namespace
        passed = namespace not in policy.apply.protected_namespaces
        state = "is not" if passed else "is"
        reason = f"{namespace} {state} protected (policy key apply.protected_namespaces)"
        return self.result(reason, passed=passed)
