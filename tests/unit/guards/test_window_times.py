"""Until when an approval counts, and which window is waited for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pulsar_steward.guards.window_times import closing, good_until, next_opening, windows_for
from pulsar_steward.model.plan import ROLLBACK
from pulsar_steward.policy.guards import MaintenanceWindow
from tests.builders import a_batch, a_policy

NIGHT = MaintenanceWindow(opens="0 22 * * *", minutes=120)
WEEKEND = MaintenanceWindow(opens="0 6 * * 6", minutes=600, time_zone="Europe/Berlin")
SUNDAY_NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
DAY = 24 * 60


def hours(number: float) -> datetime:
    """Returns the time this many hours after Sunday noon."""
    return SUNDAY_NOON + timedelta(hours=number)


@pytest.mark.parametrize(
    ("windows", "at", "opens"),
    [
        ((), 0, None),
        ((NIGHT,), 0, 10),
        ((NIGHT,), 9.999, 10),
        ((NIGHT,), 10, None),
        ((NIGHT,), 11.999, None),
        ((NIGHT,), 12, 34),
        ((WEEKEND,), 0, 5 * 24 + 17),
        ((NIGHT, WEEKEND), 0, 10),
    ],
)
def test_the_next_opening(windows: tuple[MaintenanceWindow, ...], at: float, opens: float | None) -> None:
    assert next_opening(windows, hours(at)) == (None if opens is None else hours(opens))
    assert (closing(windows, hours(at)) is None) is (not windows or opens is not None)


@pytest.mark.parametrize(
    ("windows", "wait_minutes", "until"),
    [
        ((), DAY, 1),
        ((MaintenanceWindow(opens="0 12 * * *", minutes=5),), DAY, 1),
        ((NIGHT,), DAY, 11),
        ((NIGHT,), 600, 11),
        ((NIGHT,), 599, 1),
        ((NIGHT,), 0, 1),
        ((WEEKEND,), DAY, 1),
        ((WEEKEND,), 7 * DAY, 5 * 24 + 18),
    ],
)
def test_an_approval_counts_from_the_opening_that_it_waits_for(
    windows: tuple[MaintenanceWindow, ...], wait_minutes: int, until: float
) -> None:
    assert good_until(SUNDAY_NOON, 60, wait_minutes, windows, None) == hours(until)


@pytest.mark.parametrize(
    ("windows", "most", "until"), [((NIGHT,), 10.5, 10.5), ((NIGHT,), 12, 11), ((), 0.5, 0.5), ((), 2, 1)]
)
def test_no_window_lengthens_what_the_risk_bounds(
    windows: tuple[MaintenanceWindow, ...], most: float, until: float
) -> None:
    """An approval counts from the answer no longer than its risk lets it, whatever window it waits for."""
    assert good_until(SUNDAY_NOON, 60, DAY, windows, int(most * 60)) == hours(until)


def test_a_way_back_waits_for_no_window() -> None:
    policy = a_policy(guards={"windows": [NIGHT.model_dump()]})
    assert windows_for(a_batch(), policy) == (NIGHT,)
    assert windows_for(a_batch(kind=ROLLBACK), policy) == ()


@pytest.mark.parametrize(
    ("window", "at", "closes"),
    [
        ({"opens": "0 22 * * *", "minutes": 480}, "2026-10-25T00:00", "2026-10-25T04:00"),
        ({"opens": "30 2 * * *", "minutes": 60}, "2026-10-25T01:00", "2026-10-25T01:30"),
        ({"opens": "0 22 * * *", "minutes": 480}, "2026-03-29T00:00", "2026-03-29T05:00"),
    ],
    ids=["back", "back, in the hour that comes twice", "forward"],
)
def test_a_window_lasts_its_minutes_in_the_nights_when_clocks_change(
    window: dict[str, Any], at: str, closes: str
) -> None:
    zoned = MaintenanceWindow(**window, time_zone="Europe/Berlin")
    now, end = (datetime.fromisoformat(each).replace(tzinfo=UTC) for each in (at, closes))
    assert closing((zoned,), now) == end
