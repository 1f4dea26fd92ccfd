"""Guard: changes are made in maintenance windows only, where the policy names any."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from croniter import croniter

from pulsar_steward.guard.kinds import Guard, Objection

if TYPE_CHECKING:
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.model.step import GuardResult, Step
    from pulsar_steward.policy.guards import MaintenanceWindow as WindowPolicy
    from pulsar_steward.policy.schema import Policy

_A_MOMENT = timedelta(microseconds=1)


class Window(Guard):
    """Compares the time of the call; a plan may be made and approved at any time."""

    name = "window"
    objection = Objection.REFUSED
    applies_to_rollbacks = False

    def check(self, step: Step, facts: ClusterFacts, policy: Policy) -> GuardResult:  # noqa: ARG002 - part of the protocol
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


def closes_at(window: WindowPolicy, now: datetime) -> datetime:
    """Time at which the window that opened last closes, or closed; `now` is in UTC."""
    began: datetime = croniter(window.opens, (now + _A_MOMENT).astimezone(window.zone)).get_prev(datetime)
    # Added to a local time, minutes would be an hour more or less in the nights when clocks change.
    return (began.astimezone(UTC) + timedelta(minutes=window.minutes)).astimezone(window.zone)


def opens_at(window: WindowPolicy, now: datetime) -> datetime:
    """Time at which the window opens next."""
    return croniter(window.opens, now.astimezone(window.zone)).get_next(datetime)  # type: ignore[no-any-return]  # as above
