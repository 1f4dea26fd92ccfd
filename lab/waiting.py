"""Waiting for a condition, never for a fixed time."""

import time
from collections.abc import Callable

from lab.errors import NotReachedError


def wait_until(
    reached: Callable[[], bool],
    what: str,
    within_s: float,
    every_s: float = 0.1,
    *,
    instead: Callable[[], object] | None = None,
) -> None:
    """Waits until ``reached``; ``instead`` gives what there is instead, for the error.

    Raises:
        NotReachedError: It was not, in time.
    """
    deadline = time.monotonic() + within_s
    while not reached():
        if time.monotonic() > deadline:
            there = "" if instead is None else f"; instead: {instead()}"
            raise NotReachedError(f"waited {within_s:.0f} s in vain until {what}{there}")
        time.sleep(every_s)
