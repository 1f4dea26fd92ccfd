"""Guard: a limit deletes no messages that Pulsar's own cursors still need (replicator, deduplication, compaction).

Eviction, a time to live and age limits apply to every durable cursor of a topic. No application can decide that a
cursor of Pulsar's own needs no more messages: some may not be replicated or compacted yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.guards.kinds import Objection, SettingGuard

if TYPE_CHECKING:
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.model.step import ChangeSetting, GuardResult
    from pulsar_steward.policy.schema import Policy


class OwnCursors(SettingGuard):
    """Looks for Pulsar's own cursors that a limit would move past messages."""

    name = "own_cursors"
    objection = Objection.REFUSED

    def check_setting(self, change: ChangeSetting, facts: ClusterFacts, policy: Policy) -> GuardResult:  # noqa: ARG002 - part of the protocol
        """Vetoes a limit that would or might skip messages of such a cursor, and names the cursor and the remedy."""
        if not change.takes_messages:
            return self.result("it takes no message away", passed=True)
        taken = facts.taken(change)
        if isinstance(taken, Unknown):
            return self.result(f"of whose cursors on {change.holder} it would take is not known", passed=False)
        if not taken.own:
            return self.result("no cursor of Pulsar's own would lose anything at once", passed=True)
        first, others = taken.own[0], len(taken.own) - 1
        more = f" (and the like of {others:,} more)" if others else ""
        words = f"{first.holder.taken_in_words(first.topic)}{more} would be lost at once: {first.holder.remedy}"
        return self.result(words, passed=False)
