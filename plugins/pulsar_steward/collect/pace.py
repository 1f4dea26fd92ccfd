"""Rate and time limit for detailed requests to a broker."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class TimeIsUp(Exception):
    """The time for requests is over."""


class CallPace:
    """Limits calls to so many a second, one after the other, until the time is up.

    Args:
        calls_per_second: Highest rate.
        seconds: Total time, from now on.
        clock: Monotonic clock, in seconds.
        sleep: Waits for so many seconds.
    """

    def __init__(
        self,
        calls_per_second: int,
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._between = 1 / calls_per_second
        self._clock = clock
        self._sleep = sleep
        self._next = clock()
        self._end = self._next + seconds
        self._seconds = seconds

    def wait(self) -> None:
        """Returns when the next call may be made.

        Raises:
            TimeIsUp: No more calls may be made.
        """
        now = self._clock()
        if max(now, self._next) >= self._end:
            raise TimeIsUp(f"the {self._seconds:g} seconds that the policy leaves for it are over")
        if now < self._next:
            self._sleep(self._next - now)
        self._next = max(now, self._next) + self._between
