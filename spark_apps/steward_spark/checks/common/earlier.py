"""Earlier snapshots within a window: what changed is told by comparing with them."""

from __future__ import annotations

from datetime import timedelta
from itertools import takewhile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from steward_spark.frames import Frames


def within(frames: Frames, minutes: int) -> list[Frames]:
    """Earlier snapshots taken at most so many minutes before this one, the newest first."""
    since = frames.about.taken_at - timedelta(minutes=minutes)
    return list(takewhile(lambda each: each.about.taken_at >= since, frames.earlier))


def at(frames: Frames) -> str:
    """When a snapshot was taken, as a timestamp literal of Spark SQL."""
    return f"timestamp '{frames.about.taken_at:%Y-%m-%d %H:%M:%S.%f}+00:00'"


def too_few(found: int, needed: int, minutes: int, also: str = "") -> str:
    """Why so few snapshots cannot tell anything, this one counted.

    Args:
        found: How many there are.
        needed: How many it takes.
        minutes: The window.
        also: What else it takes, as a clause.
    """
    there = "there is 1" if found == 1 else f"there are {found}"
    return f"Needs at least {needed} snapshots within {minutes:,} minutes, this one included{also}; {there}."
