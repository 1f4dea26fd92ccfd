"""Times of maintenance windows: the next opening, and the end of an approval that waits for it.

A window is open for its minutes, even if clocks change meanwhile. When clocks go back, a time that comes twice opens it
only the first time. When clocks go forward, a skipped time opens it at the moment of the change.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from croniter import croniter

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pulsar_steward.model.plan import Batch
    from pulsar_steward.policy.guards import MaintenanceWindow
    from pulsar_steward.policy.schema import Policy

_A_MOMENT = timedelta(microseconds=1)


def closes_at(window: MaintenanceWindow, at: datetime) -> datetime:
    """Time at which the window that opened last before `at` (UTC) closes, or closed."""
    began = _once(croniter(window.opens, (at + _A_MOMENT).astimezone(window.zone)).all_prev(datetime))
    # Added to a local time, minutes would be an hour more or less in the nights when clocks change.
    return (began.astimezone(UTC) + timedelta(minutes=window.minutes)).astimezone(window.zone)


def opens_at(window: MaintenanceWindow, at: datetime) -> datetime:
    """Time at which the window opens next."""
    return _once(croniter(window.opens, at.astimezone(window.zone)).all_next(datetime))


def _once(openings: Iterable[datetime]) -> datetime:
    """First opening that is not the second occurrence of a local time that comes twice."""
    return next(each for each in openings if each.utcoffset() == each.replace(fold=0).utcoffset())


def windows_for(batch: Batch, policy: Policy) -> tuple[MaintenanceWindow, ...]:
    """Windows in which a batch may be carried out; none: at any time, as for every rollback."""
    return () if batch.is_rollback else policy.guards.windows


def next_opening(windows: Sequence[MaintenanceWindow], at: datetime) -> datetime | None:
    """When a window opens next, UTC; None: one is open, or there are none."""
    if not windows or closing(windows, at) is not None:
        return None
    return min(opens_at(window, at) for window in windows).astimezone(UTC)


def closing(windows: Sequence[MaintenanceWindow], at: datetime) -> datetime | None:
    """When the windows that are open close, UTC; None: none is open."""
    ends = [end for window in windows if (end := closes_at(window, at)) > at]
    return max(ends).astimezone(UTC) if ends else None


def good_until(
    answered_at: datetime,
    valid_minutes: int,
    wait_minutes: int,
    windows: Sequence[MaintenanceWindow],
    most_minutes: int | None,
) -> datetime:
    """Last time at which an approval permits a change.

    Args:
        answered_at: Time of the answer, UTC.
        valid_minutes: Validity of an approval, from the answer or from the opening of the window that it waits for.
        wait_minutes: Longest wait from the answer to the opening of the window; the approval does not wait for a later
            one.
        windows: Windows in which the batch may be carried out.
        most_minutes: Longest validity from the answer, including any wait; None: no limit.
    """
    valid, opens = timedelta(minutes=valid_minutes), next_opening(windows, answered_at)
    waits = opens is not None and opens <= answered_at + timedelta(minutes=wait_minutes)
    until = (opens if waits and opens is not None else answered_at) + valid
    return until if most_minutes is None else min(until, answered_at + timedelta(minutes=most_minutes))
