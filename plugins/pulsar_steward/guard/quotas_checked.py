"""Guard: a backlog quota is set only where brokers check quotas, as it has little effect elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.guard.kinds import Objection, SettingGuard
from pulsar_steward.model.setting import BacklogQuota

if TYPE_CHECKING:
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.model.step import ChangeSetting, GuardResult
    from pulsar_steward.policy.schema import Policy

FIX = "set backlogQuotaCheckEnabled=true in broker.conf and restart the brokers one by one first"


class QuotasChecked(SettingGuard):
    """Reads brokers' setting; without checks producers may be refused, but nothing is evicted (docs/knowledge.md B)."""

    name = "quotas_checked"
    objection = Objection.REFUSED
    applies_to_rollbacks = False

    def check_setting(self, change: ChangeSetting, facts: ClusterFacts, policy: Policy) -> GuardResult:  # noqa: ARG002 - part of the protocol
        """Vetoes a quota where `backlogQuotaCheckEnabled` is false on a broker, or not known."""
        if not isinstance(change.after, BacklogQuota):
            return self.result("no quota is set", passed=True)
        checked = facts.quotas_are_checked()
        if isinstance(checked, Unknown):
            return self.result(checked.reason, passed=False)
        if checked:
            return self.result("brokers check backlog quotas", passed=True)
        return self.result(f"brokers do not check backlog quotas: {FIX}", passed=False)
