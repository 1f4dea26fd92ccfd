"""Guard: limits on the age of messages are set or shortened only if the brokers' clocks agree.

A broker compares the client's timestamp with its own clock: clock skew evicts or expires messages too early
(docs/knowledge.md B).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.guards.kinds import Objection, SettingGuard
from pulsar_steward.model.setting import BacklogQuota, SettingName, TimeToLive

if TYPE_CHECKING:
    import msgspec

    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.model.setting import Setting
    from pulsar_steward.model.step import ChangeSetting, GuardResult
    from pulsar_steward.policy.schema import Policy

BY_AGE = frozenset({SettingName.AGE_QUOTA, SettingName.TTL})


class Clocks(SettingGuard):
    """Compares the brokers' clocks with each other."""

    name = "clocks"
    objection = Objection.REFUSED

    def check_setting(self, change: ChangeSetting, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes a new or shorter age limit if clocks differ by more than `guards.most_clock_difference_seconds`."""
        if change.name not in BY_AGE or _is_no_shorter(change.before_in_force, change.after_in_force):
            return self.result("no limit by age is set, or becomes shorter", passed=True)
        apart, most = facts.clock_difference(), policy.guards.most_clock_difference_seconds
        if isinstance(apart, Unknown):
            return self.result(apart.reason, passed=False)
        passed = apart <= most * 1000
        reason = (
            f"brokers' clocks are {apart / 1000:,.1f} s apart, {'at most' if passed else 'more than'} {most} s"
            " (policy key guards.most_clock_difference_seconds)"
        )
        return self.result(reason if passed else f"{reason}: have them follow one time server first", passed=passed)


def _is_no_shorter(before: Setting | msgspec.UnsetType | None, after: Setting | msgspec.UnsetType | None) -> bool:
    """True if no message reaches the limit earlier than before, and the limit has the same effect."""
    match before, after:
        case _, None | TimeToLive(seconds=0):
            return True
        case TimeToLive(seconds=then), TimeToLive(seconds=now):
            return 0 < then <= now
        case BacklogQuota(policy=did, limit_seconds=then), BacklogQuota(policy=does, limit_seconds=now):
            return did is does and 0 < then <= now
        case _:
            return False
