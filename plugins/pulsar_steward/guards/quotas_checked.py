"""Guard: a backlog quota is set only if the brokers check quotas, as it has little effect otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.guards.kinds import Objection, SettingGuard
from pulsar_steward.model.setting import BacklogQuota

if TYPE_CHECKING:
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.model.step import ChangeSetting, GuardResult
    from pulsar_steward.policy.schema import Policy

FIX = "set backlogQuotaCheckEnabled=true in broker.conf and restart the brokers one by one first"


class QuotasChecked(SettingGuard):
    """Reads brokers' setting: without checks, producers may be refused, but nothing evicted (docs/knowledge.md B)."""

    name = "quotas_checked"
    objection = Objection.REFUSED
    not_asked_of_rollbacks = "the former quota is restored as it was, also where brokers do not check it"

    def check_setting(self, change: ChangeSetting, facts: ClusterFacts, policy: Policy) -> GuardResult:  # noqa: ARG002 - part of the protocol
        """Vetoes a quota if `backlogQuotaCheckEnabled` is false on a broker, or unknown."""
        if not isinstance(change.after, BacklogQuota):
            return self.result("no quota is set", passed=True)
        checked = facts.quotas_are_checked()
        if isinstance(checked, Unknown):
            return self.result(checked.reason, passed=False)
        if checked:
            return self.result("brokers check backlog quotas", passed=True)
        return self.result(f"brokers do not check backlog quotas: {FIX}", passed=False)
