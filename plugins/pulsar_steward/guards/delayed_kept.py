"""Guard: no limit deletes delayed messages, or stops producers because of them.

Delayed messages count as backlog, and their age counts from publishing. Eviction, TTL and age limits delete them before
they are due, or stop their topic's producers until then (docs/knowledge.md B and F; apache/pulsar#21898, #25010).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.guards.kinds import Objection, SettingGuard
from pulsar_steward.model.setting import BacklogQuota, SettingName
from pulsar_steward.model.units import counted

if TYPE_CHECKING:
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.model.step import ChangeSetting, GuardResult
    from pulsar_steward.policy.schema import Policy


class DelayedKept(SettingGuard):
    """Looks for delayed messages if a limit that deletes messages is set or tightened."""

    name = "delayed_kept"
    objection = Objection.REFUSED

    def check_setting(self, change: ChangeSetting, facts: ClusterFacts, policy: Policy) -> GuardResult:  # noqa: ARG002 - part of the protocol
        """Vetoes a limit that would delete delayed messages, or might because their number is unknown."""
        if not concerns_delayed(change):
            return self.result("it takes no message away, and none is too old for it", passed=True)
        delayed = facts.delayed_messages(change)
        if isinstance(delayed, Unknown):
            return self.result(delayed.reason, passed=False)
        if delayed:
            fate = "could be lost" if change.takes_messages else "would grow too old, and stop their producers"
            return self.result(f"{counted(delayed, 'delayed message')} of {change.holder} {fate}", passed=False)
        return self.result(f"{change.holder} has no delayed messages", passed=True)


def concerns_delayed(change: ChangeSetting) -> bool:
    """True if a change deletes messages, or limits the age of a backlog that may contain delayed messages."""
    quota = change.after_in_force
    by_age = change.name is SettingName.AGE_QUOTA and isinstance(quota, BacklogQuota) and quota.limit_seconds > 0
    return change.takes_messages or by_age
