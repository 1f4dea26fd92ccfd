"""Guard: namespaces that the policy protects are never changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.guards.kinds import Guard, Objection
from pulsar_steward.policy.names import naming

if TYPE_CHECKING:
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.model.step import GuardedChange, GuardResult
    from pulsar_steward.policy.schema import Policy


class Protected(Guard):
    """Looks the namespace up in the policy, which overrides every finding."""

    name = "protected"
    objection = Objection.REFUSED

    def check(self, step: GuardedChange, facts: ClusterFacts, policy: Policy) -> GuardResult:  # noqa: ARG002 - part of the protocol
        """Vetoes a step in one of `apply.protected_namespaces`."""
        namespace = step.change.namespace
        by = naming(namespace, policy.apply.protected_namespaces)
        state = "is not protected" if by is None else "is protected" if by == namespace else f"is protected, as {by} is"
        return self.result(f"{namespace} {state} (policy key apply.protected_namespaces)", passed=by is None)
