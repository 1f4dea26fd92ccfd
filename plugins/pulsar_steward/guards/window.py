"""Guard: changes are made only in maintenance windows, if the policy has any."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.guards.kinds import Guard, Objection
from pulsar_steward.guards.window_times import closes_at, opens_at

if TYPE_CHECKING:
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.model.step import GuardedChange, GuardResult
    from pulsar_steward.policy.schema import Policy


class Window(Guard):
    """Checks the time of the call; a plan may be made and approved at any time."""

    name = "window"
    objection = Objection.REFUSED
    not_asked_of_rollbacks = "what does harm is taken back now, and not in the next window"

    def check(self, step: GuardedChange, facts: ClusterFacts, policy: Policy) -> GuardResult:  # noqa: ARG002 - part of the protocol
        """Vetoes every step outside all of `guards.windows`."""
        windows = policy.guards.windows
        if not windows:
            return self.result("changes may be made at any time (policy key guards.windows)", passed=True)
        ends = [end for window in windows if (end := closes_at(window, facts.now)) > facts.now]
        if ends:
            return self.result(f"a maintenance window is open until {max(ends):%Y-%m-%d %H:%M %Z}", passed=True)
        opens = min(opens_at(window, facts.now) for window in windows)
        reason = f"no maintenance window is open; the next one opens at {opens:%Y-%m-%d %H:%M %Z}"
        return self.result(f"{reason} (policy key guards.windows)", passed=facts.planning)
