"""Guard: no subscription of the bundle gets messages again that it has acknowledged.

A broker persists only so many ack holes of a cursor; what is beyond them is forgotten with the move, without a log line
(apache/pulsar#25540).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.guard.kinds import BundleGuard
from pulsar_steward.guard.view import Objection

if TYPE_CHECKING:
    from pulsar_steward.guard.view import BundleView, ClusterView
    from pulsar_steward.model.step import BundleChange, GuardResult


class AckHoles(BundleGuard):
    """Counts the messages that might come again; by default not one may."""

    name = "ack_holes"
    objection = Objection.REFUSED

    def check_bundle(self, change: BundleChange, bundle: BundleView, view: ClusterView) -> GuardResult:  # noqa: ARG002 - part of the protocol
        """Vetoes a step that would deliver more than `guards.most_redelivered_messages` a second time."""
        hazards, most = bundle.hazards, view.policy.guards.most_redelivered_messages
        if not hazards.holey:
            return self.said("every subscription's ack holes fit what brokers persist", passed=True)
        worst, again = hazards.holey[0], hazards.may_come_again
        passed = again <= most
        reason = (
            f"up to {again:,} acknowledged messages would be delivered again, {'at most' if passed else 'more than'}"
            f" {most:,} (policy key guards.most_redelivered_messages): {worst.subscription} of {worst.topic} has"
            f" {worst.holes:,} ack holes, more than are persisted"
        )
        return self.said(reason, passed=passed)
