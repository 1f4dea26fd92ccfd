"""Guard: no topic exceeds a size quota that stops producers when the quota is set.

Seen on 4.0.7: at its next check, the broker disconnects the producers of such a topic (docs/pulsar-behaviour.md). The
guard `loss_as_approved` checks the loss by a quota that evicts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.facts.unknown import Unknown, inherited_unknown
from pulsar_steward.guards.kinds import Objection, SettingGuard
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, SettingName
from pulsar_steward.model.units import bytes_in_words

if TYPE_CHECKING:
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.model.step import ChangeSetting, GuardResult
    from pulsar_steward.policy.schema import Policy


class QuotaRoom(SettingGuard):
    """Compares the largest backlog of a topic with the quota, less the policy's margin."""

    name = "quota_room"
    objection = Objection.REFUSED

    def check_setting(self, change: ChangeSetting, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes a `producer_*` size quota that a topic exceeds or nears (`backlog_quota_remedy.room_percent`)."""
        quota = change.after_in_force
        if change.name is SettingName.SIZE_QUOTA and isinstance(quota, msgspec.UnsetType):
            return self.result(inherited_unknown(change).reason, passed=False)
        if change.name is not SettingName.SIZE_QUOTA or not isinstance(quota, BacklogQuota) or quota.limit_bytes < 0:
            return self.result("no size quota is set", passed=True)
        if quota.policy is QuotaPolicy.EVICT:
            return self.result("the size quota stops no producer", passed=True)
        largest = facts.largest_backlog(change)
        if isinstance(largest, Unknown):
            return self.result(largest.reason, passed=False)
        percent = policy.backlog_quota_remedy.room_percent
        most = quota.limit_bytes * (100 - percent) // 100
        passed = largest.bytes <= most
        held = f" ({largest.topic}, held by {largest.held_by})" if largest.held_by else ""
        words = (
            f"the largest backlog of a topic is {bytes_in_words(largest.bytes)}{held}, the quota"
            f" {bytes_in_words(quota.limit_bytes)}, of which {percent} % have to be free"
            " (policy key backlog_quota_remedy.room_percent)"
        )
        return self.result(words if passed else f"{words}: {quota.policy} would act at once", passed=passed)
