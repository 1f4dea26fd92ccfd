"""Guard: the producers of every topic of the bundle can reconnect.

A move disconnects producers, and a broker accepts no producer for a topic over a `producer_*` quota: seen on 4.0.7
(docs/pulsar-behaviour.md, Quotas). Operators lost the production of a whole cluster that way (docs/knowledge.md B).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.guards.kinds import BundleGuard, Objection
from pulsar_steward.model.units import counted

if TYPE_CHECKING:
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.model.step import BundleChange, GuardResult
    from pulsar_steward.policy.schema import Policy


class ProducersReturn(BundleGuard):
    """Compares backlogs with `producer_*` quotas, as a careless remediation can stop production."""

    name = "producers_return"
    objection = Objection.REFUSED

    def check_bundle(self, change: BundleChange, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes a step on a bundle with a topic over a `producer_*` quota, or within the policy's margin of it."""
        risks, margin = facts.move_risks(change), policy.guards.quota_margin_percent
        if risks.unknown:
            return self.result(f"not known: {'; '.join(risks.unknown)}", passed=False)
        key = "policy key guards.quota_margin_percent"
        if not risks.held_count:
            return self.result(
                f"no topic uses over {100 - margin} % of a quota that stops producers ({key})", passed=True
            )
        worst = risks.held[0]
        reason = (
            f"PRODUCERS COULD NOT COME BACK to {risks.held_count:,} of its topics: {worst.topic} uses"
            f" {worst.used_percent} % of its quota ({worst.limit}), with {counted(worst.producers, 'producer')};"
            f" {margin} % have to be free ({key}). Drain the backlog or raise the quota first"
        )
        return self.result(reason, passed=False)
