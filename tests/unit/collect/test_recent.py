"""Which clients connected recently."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from pulsar_steward.admin.statistics import PublisherStatistics
from pulsar_steward.collect.recent import Recent

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
    """Ten minutes before the snapshot is the limit, to the second; what is no time is not recent."""
    recent, client = Recent(TAKEN_AT, 10), PublisherStatistics(written)

    assert recent.among([client]) == int(expected)
    assert recent.among([client, PublisherStatistics("2026-03-01T00:04:59Z"), client]) == 1 + 2 * int(expected)
