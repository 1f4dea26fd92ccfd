"""Guard: namespaces that the policy protects are never changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.guard.kinds import Guard
from pulsar_steward.guard.view import Objection

if TYPE_CHECKING:
    from pulsar_steward.guard.view import ClusterView
    from pulsar_steward.model.step import GuardResult, Step


class Protected(Guard):
    """The operator's last word on a namespace, whatever was found in it."""

    name = "protected"
    objection = Objection.REFUSED

    def check(self, step: Step, view: ClusterView) -> GuardResult:
        """Vetoes a step in one of `apply.protected_namespaces`."""
        namespace = step.change.namespace
        passed = namespace not in view.policy.apply.protected_namespaces
        state = "is not" if passed else "is"
        reason = f"{namespace} {state} protected (policy key apply.protected_namespaces)"
        return self.said(reason, passed=passed)
