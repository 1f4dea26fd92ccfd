"""Guard: the snapshot that the plan rests on is not too old."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from pulsar_steward.guard.kinds import Guard
from pulsar_steward.guard.view import Objection

if TYPE_CHECKING:
    from pulsar_steward.guard.view import ClusterView
    from pulsar_steward.model.step import GuardResult, Step


class FreshSnapshot(Guard):
    """A cluster changes in ways that no other guard looks at."""

    name = "fresh_snapshot"
    objection = Objection.DRIFTED

    def check(self, step: Step, view: ClusterView) -> GuardResult:  # noqa: ARG002 - part of the protocol
        """Vetoes every step of a plan whose snapshot is older than `guards.snapshot_valid_minutes`."""
        valid = timedelta(minutes=view.policy.guards.snapshot_valid_minutes)
        passed = view.now - view.seen_at <= valid
        reason = (
            f"the cluster was seen at {view.seen_at:%Y-%m-%d %H:%M:%S} UTC, {'within' if passed else 'longer ago than'}"
            f" {view.policy.guards.snapshot_valid_minutes:,} minutes (policy key guards.snapshot_valid_minutes)"
        )
        return self.said(reason, passed=passed)
