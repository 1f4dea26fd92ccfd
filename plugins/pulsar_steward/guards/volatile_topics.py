"""Guard: non-persistent topics lose no more messages than was approved.

Their messages are not stored: messages that are published while a consumer reconnects are lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.guards.in_flight import disturbs_consumers
from pulsar_steward.guards.kinds import BundleStepGuard, Objection
from pulsar_steward.model.units import counted

if TYPE_CHECKING:
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.model.step import BundleChange, GuardedChange, GuardResult
    from pulsar_steward.policy.schema import Policy


class VolatileTopics(BundleStepGuard):
    """Compares the non-persistent topics and their rates with those of the approval."""

    name = "volatile_topics"
    objection = Objection.REFUSED

    def check_step(self, step: GuardedChange, change: BundleChange, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes a step on a bundle with more such topics, or higher rates, than in the approval."""
        if not disturbs_consumers(step):
            return self.result("no client has to reconnect", passed=True)
        risks, approved = facts.move_risks(change), step.moving_messages
        topics, lost = risks.volatile_topics, risks.lost_messages
        if not topics:
            return self.result("no topic loses messages while its clients reconnect", passed=True)
        said = (
            f"{counted(topics, 'topic that is not persistent loses', 'topics that are not persistent lose')} up to"
            f" {counted(lost, 'message')} at their rates, within {policy.health.return_seconds} s"
            " (policy key health.return_seconds)"
        )
        if topics > approved.volatile_topics or lost > approved.lost:
            planned = f"{counted(approved.volatile_topics, 'topic')} and {counted(approved.lost, 'message')}"
            return self.result(f"{said}; more than the {planned} that were approved", passed=False)
        return self.result(f"{said}; no more than was approved", passed=True)
