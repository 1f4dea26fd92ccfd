"""Guard: the plan's snapshot is not too old."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from pulsar_steward.guards.kinds import Guard, Objection
from pulsar_steward.model.units import counted

if TYPE_CHECKING:
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.model.step import GuardedChange, GuardResult
    from pulsar_steward.policy.schema import Policy


class FreshSnapshot(Guard):
    """Checks the snapshot's age, as a cluster changes in ways that no other guard checks."""

    name = "fresh_snapshot"
    objection = Objection.DRIFTED

    def check(self, step: GuardedChange, facts: ClusterFacts, policy: Policy) -> GuardResult:  # noqa: ARG002 - part of the protocol
        """Vetoes every step if the plan's snapshot is older than `guards.snapshot_valid_minutes`."""
        valid = timedelta(minutes=policy.guards.snapshot_valid_minutes)
        passed = facts.now - facts.seen_at <= valid
        reason = (
            f"the cluster was seen at {facts.seen_at:%Y-%m-%d %H:%M:%S} UTC,"
            f" {'within' if passed else 'longer ago than'} {counted(policy.guards.snapshot_valid_minutes, 'minute')}"
            " (policy key guards.snapshot_valid_minutes)"
        )
        return self.result(reason, passed=passed)
