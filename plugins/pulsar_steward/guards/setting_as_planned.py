"""Guard: the setting still has the value of the plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.guards.kinds import Objection, SettingGuard
from pulsar_steward.model.setting import in_words

if TYPE_CHECKING:
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.model.step import ChangeSetting, GuardResult
    from pulsar_steward.policy.schema import Policy


class SettingAsPlanned(SettingGuard):
    """Compares values: a value that somebody set since planning is not overwritten, as no rollback would know it."""

    name = "setting_as_planned"
    objection = Objection.DRIFTED

    def check_setting(self, change: ChangeSetting, facts: ClusterFacts, policy: Policy) -> GuardResult:  # noqa: ARG002 - part of the protocol
        """Vetoes a change of a setting that has, or inherits, another value by now."""
        found = facts.setting(change)
        now, then = change.in_words(found), change.in_words(change.before)
        words = f"the {change.name} of {change.holder} is {now}"
        if found != change.before:
            return self.result(f"{words}, no longer {then}", passed=False)
        if not isinstance(change.inherited, msgspec.UnsetType):
            applies = facts.inherited(change)
            if applies != change.inherited:
                now, then = in_words(change.name, applies), in_words(change.name, change.inherited)
                inherits = f"where none is set on {change.holder}, the {change.name} is {now}, no longer {then}"
                return self.result(inherits, passed=False)
        return self.result(words, passed=True)
