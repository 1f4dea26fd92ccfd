"""Times, figures and addresses as the pages write them."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest

from pulsar_steward.pages.rendering import (
    MISSING,
    ago,
    duration,
    heat_step,
    link_to,
    number,
    percent,
    polyline,
    rate,
    size,
)
from pulsar_steward.pages.sources import SnapshotCache
from tests.builders import NOW


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (59, "59 s"), (60, "1 min"), (3599, "59 min"), (3600, "1 h"), (3700, "1 h 1 min"), (90000, "1 d 1 h")],
)
def test_durations(seconds: int, words: str) -> None:
    """A duration is written in at most two units, and reads the same before and after the present time."""
    assert duration(seconds) == words
    assert ago(NOW)(NOW - timedelta(seconds=seconds)) == words
    assert ago(NOW)(NOW + timedelta(seconds=seconds)) == words


def test_figures_that_are_not_there() -> None:
    """A missing figure is written as a dash, and never as 0."""
    assert {number(None), percent(None), size(None), rate(None)} == {MISSING}
    assert (number(1234), percent(12.4), size(3 << 30), rate(1_250_000)) == ("1,234", "12 %", "3.0 GiB", "1.2")


def test_every_part_of_an_address_stays_a_part() -> None:
    """A link escapes special characters in each part of its path and query, and leaves out empty parameters."""
    assert link_to("/steward", "clusters", "../x?y#z/é", text="a&b", page="", check=None) == (
        "/steward/clusters/..%2Fx%3Fy%23z%2F%C3%A9?text=a%26b"
    )
    assert link_to("") == "/"


def test_drawings_stay_within_their_frame() -> None:
    """A line stays within its frame, also for zeros and for one value, and heat is drawn in five steps."""
    assert polyline([0.0, 0.0], 10, 10) == "0.0,9.0 10.0,9.0"
    assert polyline([5.0], 10, 10) == "0.0,1.0"
    assert [heat_step(heat) for heat in (0.0, 0.01, 0.2, 0.5, 1.0)] == [0, 0, 2, 3, 4]


def test_what_is_kept_is_bounded() -> None:
    """The cache keeps only the entries that were used last, and does not keep errors."""
    kept = SnapshotCache(2)
    read: list[str] = []

    def reading(key: str) -> str:
        read.append(key)
        if key == "bad":
            raise OSError
        return key

    for key in ("a", "b", "a", "c", "a", "b"):
        assert kept.get(key, partial(reading, key)) == key
    assert read == ["a", "b", "c", "b"]
    for _ in range(2):
        with pytest.raises(OSError):  # noqa: PT011 - the one above
            kept.get("bad", lambda: reading("bad"))
    assert read[-2:] == ["bad", "bad"]
