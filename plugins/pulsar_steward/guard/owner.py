"""Guard: the bundle is still owned by the broker that the step was planned for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.guard.view import ClusterView, Objection
from pulsar_steward.model.step import GuardResult, UnloadBundle

if TYPE_CHECKING:
    from pulsar_steward.model.step import Step


class Owner:
    """A bundle that somebody else moved no longer has the trouble that the step answers."""

    name = "owner"
    objection = Objection.DRIFTED

    def check(self, step: Step, view: ClusterView) -> GuardResult:
        """Vetoes a step whose bundle has another owner, or none."""
        change = step.change
        expected = change.source if isinstance(change, UnloadBundle) else change.owner
        owner = view.bundle.owner
        if owner == expected:
            reason = f"{expected} owns it"
        elif owner is None:
            reason = f"nobody owns it, not {expected}: the call would be answered and do nothing"
        else:
            reason = f"{owner} owns it, not {expected}"
        return GuardResult(guard=self.name, passed=owner == expected, reason=reason)
