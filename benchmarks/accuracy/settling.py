"""Waits until brokers' statistics no longer hold the minute in which many faults were made at once."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

STATISTICS_S = 60.0
"""Seconds between two of a broker's statistics, as ``broker.conf`` has it; the first come as long after its start."""

SETTLED_WITHIN_S = 240.0
LOOKS_APART_S = 15.0


def statistics_apart_s(settings: Mapping[str, str]) -> float:
    """Seconds between two of a broker's statistics, with these settings of ``broker.conf``."""
    return float(settings.get("statsUpdateFrequencyInSecs", STATISTICS_S))


def wait_for_quick_writes(
    slow: Callable[[], bool],
    statistics_s: float,
    *,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Returns once writes are quick by statistics that cover the end of what was made, or after some minutes.

    Until brokers have their next statistics, they tell of the time before: a burst that was slow is in none of them
    yet, and would be in those of the next look.

    Args:
        slow: True while a look finds slow writes.
        statistics_s: Seconds between two of the brokers' statistics.
        sleep: Waits so many seconds.
        clock: Seconds, from any beginning.
    """
    sleep(statistics_s)
    deadline = clock() + SETTLED_WITHIN_S
    while slow() and clock() < deadline:
        sleep(LOOKS_APART_S)
