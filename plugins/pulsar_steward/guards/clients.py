"""Guard: one step disturbs no more clients than the policy permits.

Thousands of clients that reconnect at once are a risk themselves: operators saw this in clusters with 10,000 clients on
one partition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.guards.kinds import BundleGuard, Objection
from pulsar_steward.model.units import counted

if TYPE_CHECKING:
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.model.step import BundleChange, GuardResult
    from pulsar_steward.policy.schema import Policy


class Clients(BundleGuard):
    """Counts the producers and consumers that have to reconnect."""

    name = "clients"
    objection = Objection.REFUSED

    def check_bundle(self, change: BundleChange, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes a step on a bundle with more clients than `apply.most_clients_per_step`."""
        most = policy.apply.most_clients_per_step
        clients = facts.clients(change)
        passed = clients <= most
        compared = "at most" if passed else "more than"
        reason = (
            f"{counted(clients, 'client')} would reconnect, {compared} {most:,} (policy key"
            " apply.most_clients_per_step)"
        )
        return self.result(reason, passed=passed)
