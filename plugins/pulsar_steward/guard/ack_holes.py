"""Guard: no subscription of the bundle gets acknowledged messages a second time.

A broker persists only so many ack holes of a cursor; what is beyond them is forgotten with the move, without a log line
(apache/pulsar#25540).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.guard.kinds import BundleGuard, Objection
from pulsar_steward.model.units import counted

if TYPE_CHECKING:
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.model.step import BundleChange, GuardResult
    from pulsar_steward.policy.schema import Policy


class AckHoles(BundleGuard):
    """Counts the messages that might be delivered again; by default none may be."""

    name = "ack_holes"
    objection = Objection.REFUSED

    def check_bundle(self, change: BundleChange, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes a step that would deliver more than `guards.most_redelivered_messages` a second time."""
        risks, most = facts.move_risks(change), policy.guards.most_redelivered_messages
        if not risks.holey:
            return self.result("every subscription's ack holes fit what brokers persist", passed=True)
        worst, again = risks.holey[0], risks.may_come_again
        passed = again <= most
        reason = (
            f"up to {counted(again, 'acknowledged message')} would be delivered again,"
            f" {'at most' if passed else 'more than'} {most:,} (policy key guards.most_redelivered_messages):"
            f" {worst.subscription} of {worst.topic} has {counted(worst.holes, 'ack hole')}, more than are persisted"
        )
        return self.result(reason, passed=passed)
