"""Waiting for a condition, never for a fixed time."""

import time
from collections.abc import Callable

from lab.errors import NotReachedError


def wait_until(reached: Callable[[], bool], what: str, within_s: float, every_s: float = 0.1) -> None:
    """Waits until ``reached``.

    Raises:
        NotReachedError: It was not, in time.
    """
    deadline = time.monotonic() + within_s
    while not reached():
        if time.monotonic() > deadline:
            raise NotReachedError(f"waited {within_s:.0f} s in vain until {what}")
        time.sleep(every_s)
