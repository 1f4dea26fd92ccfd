"""Guard: the namespace still has a bundle of exactly the step's boundaries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.guard.view import ClusterView, Objection
from pulsar_steward.model.step import GuardResult

if TYPE_CHECKING:
    from pulsar_steward.model.step import Step


class Boundaries:
    """A bundle that was split since is another one: the broker would answer 412, or the wrong topics would move."""

    name = "boundaries"
    objection = Objection.DRIFTED

    def check(self, step: Step, view: ClusterView) -> GuardResult:
        """Vetoes a step whose bundle is gone."""
        change = step.change
        if view.bundle.exists:
            reason = f"{change.namespace} has a bundle {change.bundle}"
        else:
            reason = f"{change.namespace} has no bundle {change.bundle} any more: it was divided otherwise"
        return GuardResult(guard=self.name, passed=view.bundle.exists, reason=reason)
