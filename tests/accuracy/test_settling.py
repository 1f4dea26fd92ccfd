"""After a burst of faults, writes are called quick by statistics that have seen the burst, and by no others."""

from __future__ import annotations

from benchmarks.accuracy.settling import SETTLED_WITHIN_S, STATISTICS_S, statistics_apart_s, wait_for_quick_writes


class Brokers:
    """Tell of the last whole minute: the burst just before is in their statistics only from the next one on."""

    def __init__(self, slow_until: float) -> None:
        self.now = 0.0
        self.slow_until = slow_until
        self.looks: list[float] = []

    def sleep(self, seconds: float) -> None:
        """Time passes."""
        self.now += seconds

    def slow(self) -> bool:
        """Whether this look finds slow writes."""
        self.looks.append(self.now)
        return STATISTICS_S <= self.now < self.slow_until

    def waited_for(self) -> list[float]:
        """Seconds at which they were looked at."""
        wait_for_quick_writes(self.slow, STATISTICS_S, sleep=self.sleep, clock=lambda: self.now)
        return self.looks


def test_statistics_of_before_the_burst_end_no_waiting() -> None:
    looks = Brokers(slow_until=100).waited_for()
    assert looks[0] >= STATISTICS_S
    assert looks[-1] >= 100


def test_quick_writes_are_looked_at_once() -> None:
    assert Brokers(slow_until=0).waited_for() == [STATISTICS_S]


def test_a_machine_that_stays_busy_is_looked_at_all_the_same() -> None:
    assert Brokers(slow_until=1e9).waited_for()[-1] == STATISTICS_S + SETTLED_WITHIN_S


def test_brokers_say_how_often_they_have_statistics() -> None:
    """The interval of statistics is that of the broker's settings, or the default if they have none."""
    assert statistics_apart_s({}) == STATISTICS_S
    assert statistics_apart_s({"statsUpdateFrequencyInSecs": "2"}) == 2
