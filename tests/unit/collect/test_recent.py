"""Which clients connected recently."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from pulsar_steward.collect.pending import Recent

TAKEN_AT = datetime(2026, 3, 1, 0, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("2026-02-28T23:55:00.000000001Z", True),
        ("2026-02-28T23:54:59.999999999Z", False),
        ("2026-03-01T00:04:59Z", True),
        ("2026-03-01T00:55:00.123+01:00", True),
        ("2026-03-01T00:54:59.123+01:00", False),
        ("2026-02-28T18:25:00-05:30", True),
        ("2026-02-28T18:24:59.9-05:30", False),
        ("2027-01-01T00:00:00Z", True),
        ("", False),
        ("yesterday", False),
    ],
)
def test_a_time_is_compared_in_the_zone_that_it_was_written_in(written: str, *, expected: bool) -> None:
    """A client is recent from ten minutes before the snapshot on, in any time zone. Other text is not recent."""
    recent = Recent(TAKEN_AT, 10)

    assert recent.holds(written) is expected
    assert written >= recent.earliest or not expected


@pytest.mark.parametrize("offset", ["+14:00", "-12:00", "+18:00", "-18:00"])
def test_the_earliest_time_holds_for_every_zone(offset: str) -> None:
    """A client that connected exactly ten minutes before the snapshot is recent in every time zone."""
    zone = datetime.fromisoformat(f"2026-01-01T00:00:00{offset}").tzinfo
    recent, written = Recent(TAKEN_AT, 10), (TAKEN_AT - timedelta(minutes=10)).astimezone(zone).isoformat()

    assert written >= recent.earliest
    assert recent.holds(written)
