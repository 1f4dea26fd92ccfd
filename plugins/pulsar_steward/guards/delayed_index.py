"""Guard: a move does not make a broker read a large backlog of delayed messages again.

The in-memory tracker stores its index nowhere else: the broker that loads the topic reads all delayed messages anew
(docs/knowledge.md D).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.guards.kinds import BundleGuard, Objection
from pulsar_steward.model.units import bytes_in_words

if TYPE_CHECKING:
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.model.step import BundleChange, GuardResult
    from pulsar_steward.policy.schema import Policy


class DelayedIndex(BundleGuard):
    """Adds up the indexes that are in memory only; indexes in buckets survive a move."""

    name = "delayed_index"
    objection = Objection.REFUSED

    def check_bundle(self, change: BundleChange, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes a step on a bundle with more than `guards.most_delayed_index_megabytes`."""
        held, most = facts.move_risks(change).delayed_index_bytes, policy.guards.most_delayed_index_megabytes << 20
        passed = held <= most
        compared = "at most" if passed else "more than"
        reason = (
            f"{bytes_in_words(held)} of delayed messages' indexes are in memory alone, {compared}"
            f" {bytes_in_words(most)} (policy key guards.most_delayed_index_megabytes)"
        )
        return self.result(reason if passed else f"{reason}: their backlogs would be read again", passed=passed)
