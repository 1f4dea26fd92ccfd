"""Guard: no limit destroys messages that are meant to wait.

Delayed messages are backlog, and their time counts from publishing: eviction, TTL and age limits take them before they
are due (docs/knowledge.md B and F; apache/pulsar#21898, #25010).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.guard.kinds import SettingGuard
from pulsar_steward.guard.view import Objection

if TYPE_CHECKING:
    from pulsar_steward.guard.view import ClusterView, SettingView
    from pulsar_steward.model.step import ChangeSetting, GuardResult


class DelayedKept(SettingGuard):
    """Looks for delayed messages where a limit is set, or made tighter, that takes messages away."""

    name = "delayed_kept"
    objection = Objection.REFUSED

    def check_setting(self, change: ChangeSetting, setting: SettingView, view: ClusterView) -> GuardResult:  # noqa: ARG002 - part of the protocol
        """Vetoes what would take delayed messages away, and what might where these are not known."""
        if not change.takes_messages:
            return self.said("it takes no message away", passed=True)
        delayed = setting.delayed_messages
        if delayed is None:
            return self.said(f"whether {change.holder} has delayed messages is not known", passed=False)
        if delayed:
            return self.said(f"{delayed:,} delayed messages of {change.holder} could be lost", passed=False)
        return self.said(f"{change.holder} has no delayed messages", passed=True)
