"""Bytes, durations, times, rates and counts in words: exact for limits, rounded for what was measured."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from pulsar_steward.model.units import (
    bytes_in_words,
    counted,
    number_in_words,
    seconds_in_words,
    throughput_in_words,
    time_in_words,
)


@pytest.mark.parametrize(
    ("count", "exact", "rounded"),
    [
        (-1, "unlimited", "-1 B"),
        (0, "0 B", "0 B"),
        (1023, "1,023 B", "1,023 B"),
        (1024, "1 KiB", "1.0 KiB"),
        (5 * 1024**3 // 4, "1.25 GiB", "1.2 GiB"),
        (1536 * 1024**2, "1.5 GiB", "1.5 GiB"),
        (2 * 1024**4, "2 TiB", "2.0 TiB"),
        (2 * 1024**6, "2,048 PiB", "2,048.0 PiB"),
        (0.4, "0 B", "0 B"),
    ],
)
def test_bytes_in_a_unit_that_fits(count: float, exact: str, rounded: str) -> None:
    """Bytes are written in units of powers of 1024, exact or rounded to one decimal."""
    assert (bytes_in_words(count), bytes_in_words(count, rounded=True)) == (exact, rounded)


@pytest.mark.parametrize(
    ("count", "exact", "rounded"),
    [
        (-1, "unlimited", "-1 s"),
        (0, "0 s", "0 s"),
        (90, "90 s", "90 s"),
        (120, "2 min", "2.0 min"),
        (750, "750 s", "12.5 min"),
        (36 * 3600, "36 h", "36.0 h"),
        (20 * 86_400, "20 d", "20.0 d"),
        (2_000_000, "2,000,000 s", "23.1 d"),
    ],
)
def test_seconds_in_a_unit_that_fits(count: float, exact: str, rounded: str) -> None:
    """A duration is written exactly to the second by default, and with one decimal where it is to be rounded."""
    assert (seconds_in_words(count), seconds_in_words(count, rounded=True)) == (exact, rounded)


@pytest.mark.parametrize(
    ("number", "words"), [(0, "0"), (1234, "1,234"), (0.254, "0.25"), (99.5, "99.50"), (1e6 + 0.5, "1,000,000")]
)
def test_numbers_with_as_many_decimals_as_tell(number: float, words: str) -> None:
    """Small fractions are written with two decimals, and counts and large numbers without decimals."""
    assert number_in_words(number) == words


def test_throughput_and_counts() -> None:
    """Throughput is written in powers of 1000, and a noun is singular or plural by its count."""
    assert throughput_in_words(1_540_000) == "1.5 MB/s"
    assert [counted(1, "topic"), counted(2000, "topic"), counted(3, "entry", "entries")] == [
        "1 topic",
        "2,000 topics",
        "3 entries",
    ]


@pytest.mark.parametrize("zone", [UTC, timezone(timedelta(hours=5, minutes=30))])
def test_a_time_is_in_utc_wherever_it_was_read(zone: timezone) -> None:
    """A time of any zone is written in UTC, to the minute or on request to the second."""
    moment = datetime(2026, 1, 31, 23, 59, 58, 999_999, UTC).astimezone(zone)
    assert time_in_words(moment) == "2026-01-31 23:59 UTC"
    assert time_in_words(moment, seconds=True) == "2026-01-31 23:59:58 UTC"
    assert time_in_words(moment, date=False) == "23:59 UTC"
    assert time_in_words(moment, date=False, seconds=True) == "23:59:58 UTC"
