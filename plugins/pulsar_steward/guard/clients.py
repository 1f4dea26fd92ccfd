"""Guard: one step disturbs no more clients than the policy permits.

Thousands of clients that reconnect at once are themselves a risk: operators of clusters with 10,000 clients on a
partition saw it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.guard.view import ClusterView, Objection
from pulsar_steward.model.step import GuardResult

if TYPE_CHECKING:
    from pulsar_steward.model.step import Step


class Clients:
    """Counts the producers and consumers that the step sends to reconnect."""

    name = "clients"
    objection = Objection.REFUSED

    def check(self, _step: Step, view: ClusterView) -> GuardResult:
        """Vetoes a step on a bundle with more clients than `apply.most_clients_per_step`."""
        most = view.policy.apply.most_clients_per_step
        clients = view.bundle.clients
        passed = clients <= most
        compared = "at most" if passed else "more than"
        reason = f"{clients:,} clients would reconnect, {compared} {most:,} (policy key apply.most_clients_per_step)"
        return GuardResult(guard=self.name, passed=passed, reason=reason)
