"""Times of maintenance windows: which one opens next, and until when an approval counts that was given before it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from pulsar_steward.guard.window import closes_at, opens_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsar_steward.model.plan import Batch
    from pulsar_steward.policy.guards import MaintenanceWindow
    from pulsar_steward.policy.schema import Policy


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
    answered_at: datetime, valid_minutes: int, wait_minutes: int, windows: Sequence[MaintenanceWindow]
) -> datetime:
    """Last time at which a change may be made under an approval.

    Args:
        answered_at: Time of the answer, UTC.
        valid_minutes: How long an approval counts: from the answer, or from the opening of the window that it waits
            for.
        wait_minutes: How long after the answer that window may open; for a later one nothing waits.
        windows: Windows in which the batch may be carried out.
    """
    valid, opens = timedelta(minutes=valid_minutes), next_opening(windows, answered_at)
    waits = opens is not None and opens <= answered_at + timedelta(minutes=wait_minutes)
    return (opens if waits and opens is not None else answered_at) + valid
