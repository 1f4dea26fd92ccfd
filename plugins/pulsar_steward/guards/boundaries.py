"""Guard: the namespace still has a bundle with exactly the step's boundaries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.guards.kinds import BundleGuard, Objection

if TYPE_CHECKING:
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.model.step import BundleChange, GuardResult
    from pulsar_steward.policy.schema import Policy


class Boundaries(BundleGuard):
    """Compares boundaries: for a bundle that was split since, brokers would respond with 412 or move other topics."""

    name = "boundaries"
    objection = Objection.DRIFTED

    def check_bundle(self, change: BundleChange, facts: ClusterFacts, policy: Policy) -> GuardResult:  # noqa: ARG002 - part of the protocol
        """Vetoes a step if its bundle is gone."""
        if there := facts.has_bundle(change):
            reason = f"{change.namespace} has a bundle {change.bundle}"
        else:
            reason = f"{change.namespace} has no bundle {change.bundle} any more: it was divided otherwise"
        return self.result(reason, passed=there)
