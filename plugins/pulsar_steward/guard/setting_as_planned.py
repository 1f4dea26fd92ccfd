"""Guard: the setting still has the value that the plan rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.guard.kinds import Objection, SettingGuard
from pulsar_steward.model.setting import in_words

if TYPE_CHECKING:
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.model.step import ChangeSetting, GuardResult
    from pulsar_steward.policy.schema import Policy


class SettingAsPlanned(SettingGuard):
    """Compares the value: one that somebody set in the meantime is not overwritten, as no rollback would know it."""

    name = "setting_as_planned"
    objection = Objection.DRIFTED

    def check_setting(self, change: ChangeSetting, facts: ClusterFacts, policy: Policy) -> GuardResult:  # noqa: ARG002 - part of the protocol
        """Vetoes a change of a setting that has another value by now."""
        found = facts.setting(change)
        now, then = in_words(change.name, found), in_words(change.name, change.before)
        if found == change.before:
            return self.result(f"the {change.name} of {change.holder} is {now}", passed=True)
        return self.result(f"the {change.name} of {change.holder} is {now}, no longer {then}", passed=False)
