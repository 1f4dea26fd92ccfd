"""Guard: limits on the age of messages are set only where brokers' clocks agree.

A broker compares the time that the client wrote with its own clock: skew evicts or expires too early
(docs/knowledge.md B).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.guard.kinds import Objection, SettingGuard
from pulsar_steward.model.setting import SettingName

if TYPE_CHECKING:
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.model.step import ChangeSetting, GuardResult
    from pulsar_steward.policy.schema import Policy

BY_AGE = frozenset({SettingName.AGE_QUOTA, SettingName.TTL})


class Clocks(SettingGuard):
    """Compares the brokers' clocks with each other."""

    name = "clocks"
    objection = Objection.REFUSED
    applies_to_rollbacks = False

    def check_setting(self, change: ChangeSetting, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes an age limit where brokers' clocks differ by more than `guards.most_clock_difference_seconds`."""
        if change.name not in BY_AGE or change.after_in_force is None:
            return self.result("no limit goes by age", passed=True)
        apart, most = facts.clock_difference(), policy.guards.most_clock_difference_seconds
        if isinstance(apart, Unknown):
            return self.result(apart.reason, passed=False)
        passed = apart <= most * 1000
        reason = (
            f"brokers' clocks are {apart / 1000:,.1f} s apart, {'at most' if passed else 'more than'} {most} s"
            " (policy key guards.most_clock_difference_seconds)"
        )
        return self.result(reason if passed else f"{reason}: have them follow one time server first", passed=passed)
