"""Guard: the producers of every topic of the bundle can come back.

A move disconnects them, and a broker takes no producer of a topic that is over a `producer_*` quota: seen on 4.0.7
(docs/findings.md, Quotas); operators lost a cluster's whole production that way (docs/knowledge.md B).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.guard.kinds import BundleGuard
from pulsar_steward.guard.view import Objection

if TYPE_CHECKING:
    from pulsar_steward.guard.view import BundleView, ClusterView
    from pulsar_steward.model.step import BundleChange, GuardResult


class ProducersReturn(BundleGuard):
    """The worst that a careless remediation can do is to stop production."""

    name = "producers_return"
    objection = Objection.REFUSED

    def check_bundle(self, change: BundleChange, bundle: BundleView, view: ClusterView) -> GuardResult:  # noqa: ARG002 - part of the protocol
        """Vetoes a step on a bundle with a topic over a `producer_*` quota, or within the policy's margin of it."""
        hazards, margin = bundle.hazards, view.policy.guards.quota_margin_percent
        if hazards.unknown:
            return self.said(f"not known: {'; '.join(hazards.unknown)}", passed=False)
        key = "policy key guards.quota_margin_percent"
        if not hazards.held_count:
            return self.said(
                f"no topic uses over {100 - margin} % of a quota that stops producers ({key})", passed=True
            )
        worst = hazards.held[0]
        reason = (
            f"PRODUCERS COULD NOT COME BACK to {hazards.held_count:,} of its topics: {worst.topic} uses"
            f" {worst.used_percent} % of its quota ({worst.limit}), with {worst.producers:,} producers; {margin} % have"
            f" to be free ({key}). Drain the backlog or raise the quota first"
        )
        return self.said(reason, passed=False)
