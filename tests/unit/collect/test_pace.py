"""The rate at which brokers are asked for details."""

from __future__ import annotations

import pytest

from pulsar_steward.collect.drill import CallPace, TimeIsUp


class Clock:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        """Seconds."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Lets time pass."""
        self.now += seconds


def test_calls_keep_their_distance() -> None:
    """Calls begin at least the policy's interval apart, and at once after a call that took longer."""
    clock = Clock()
    pace = CallPace(4, 60, clock, clock.sleep)
    moments = []
    for took in (0.0, 0.1, 5.0, 0.0):
        pace.wait()
        moments.append(clock.now - 100)
        clock.sleep(took)

    assert moments == pytest.approx([0, 0.25, 0.5, 5.5])


def test_no_call_begins_after_the_end() -> None:
    """A call that would begin at the end of the time or later is refused at once, without sleeping."""
    clock = Clock()
    pace = CallPace(1, 2, clock, clock.sleep)
    pace.wait()
    pace.wait()

    with pytest.raises(TimeIsUp, match="2 seconds"):
        pace.wait()
    assert clock.now == pytest.approx(101)
    clock.sleep(9)
    with pytest.raises(TimeIsUp, match="2 seconds"):
        pace.wait()
    assert clock.now == pytest.approx(110)
