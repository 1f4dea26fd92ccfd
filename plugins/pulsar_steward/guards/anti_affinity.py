"""Guard: a move does not bring namespaces of one anti-affinity group together while another broker has fewer of them.

Brokers place the namespaces of a group on different brokers, so that the loss of one broker affects few of them. An
unload with a destination ignores that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.guards.kinds import Objection, TargetGuard
from pulsar_steward.model.units import counted

if TYPE_CHECKING:
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.model.step import GuardResult, UnloadBundle
    from pulsar_steward.policy.schema import Policy


class AntiAffinity(TargetGuard):
    """Counts the group's other namespaces on the target and on every broker that may have the bundle."""

    name = "anti_affinity"
    objection = Objection.REFUSED

    def check_target(self, change: UnloadBundle, facts: ClusterFacts, policy: Policy) -> GuardResult:  # noqa: ARG002 - part of the protocol
        """Vetoes a move to a broker with more namespaces of the group than another broker has."""
        found = facts.anti_affinity(change.namespace)
        if isinstance(found, Unknown):
            return self.result(found.reason, passed=facts.planning)
        if found is None:
            return self.result(f"{change.namespace} is in no anti-affinity group", passed=True)
        allowed = facts.allowed_brokers(change.namespace)
        others = {broker: count for broker, count in found.others.items() if allowed is None or broker in allowed}
        there, least = found.others.get(change.target, 0), min(others.values(), default=0)
        reason = (
            f"{change.target} has bundles of {counted(there, 'other namespace')} of the anti-affinity group"
            f" {found.group}, the broker with fewest {least:,}"
        )
        return self.result(reason, passed=there <= least)
