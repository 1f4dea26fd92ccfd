"""How the backlog of a topic grew over the snapshots of a window, steadily or not."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from pulsar_steward.checks.backlog.backlog_growing import BacklogGrowingPolicy
    from pulsar_steward.checks.backlog.growing_sums import Sum
    from pulsar_steward.checks.check import About, Earlier, Row

HOUR = 3600


def within(about: About, minutes: int) -> tuple[Earlier, ...]:
    """Earlier snapshots taken at most so many minutes before this one, the newest first."""
    since = about.taken_at - timedelta(minutes=minutes)
    return tuple(each for each in about.earlier if each.taken_at >= since)


def reference(about: About, earlier: Sequence[Earlier], enough: BacklogGrowingPolicy) -> Earlier | None:
    """The snapshot that shows what grew lately: the newest that is far enough back, and whole if one of them is.

    Args:
        about: What this snapshot is.
        earlier: Those of the window, the newest first.
        enough: How many snapshots and minutes are far enough.

    Returns:
        None where none is.
    """
    latest = about.taken_at - timedelta(minutes=enough.minimum_minutes)
    far = [each for each in earlier[enough.minimum_snapshots - 2 :] if each.taken_at <= latest]
    return next((each for each in far if not each.partial), far[0] if far else None)


def too_few(found: int, enough: BacklogGrowingPolicy) -> str:
    """Why so few snapshots cannot tell anything, this one counted."""
    there = "there is 1" if found == 1 else f"there are {found}"
    return (
        f"Needs at least {enough.minimum_snapshots} snapshots within {enough.window_minutes:,} minutes, this one"
        f" included, the first of them at least {enough.minimum_minutes} minutes before it; {there}."
    )


@dataclass(frozen=True)
class Rise:
    """The latest rise of a backlog: from where it last was lowest within the window until now.

    Attributes:
        low_bytes: How large it was then.
        low_at: When that was.
        now_bytes: How large it is.
        now_at: When this snapshot was taken.
        snapshots: Those since the low, it included.
        rising: The steps between them that rose.
        rate: Bytes per second: the mean since the low or the median of the steps, whichever is lower; 0 where it is
            lowest now.
        shrunk_bytes: The sum of all falls within the window.
    """

    low_bytes: int
    low_at: datetime
    now_bytes: int
    now_at: datetime
    snapshots: int
    rising: int
    rate: float
    shrunk_bytes: int

    @classmethod
    def of(cls, backlogs: Mapping[datetime, int]) -> Rise:
        """The latest rise of a backlog, in bytes by time; snapshots that do not have the topic are passed over."""
        points = sorted(backlogs.items())
        low_at, low_bytes = max(points, key=lambda each: (-each[1], each[0]))
        now_at, now_bytes = points[-1]
        steps = [
            (before >= low_at, after_bytes - bytes_, (after - before).total_seconds())
            for (before, bytes_), (after, after_bytes) in pairwise(points)
        ]
        since = [(change, seconds) for counts, change, seconds in steps if counts]
        rates = [change / seconds for change, seconds in since]
        mean = (now_bytes - low_bytes) / (now_at - low_at).total_seconds() if since else 0.0
        return cls(
            low_bytes=low_bytes,
            low_at=low_at,
            now_bytes=now_bytes,
            now_at=now_at,
            snapshots=len(since) + 1,
            rising=sum(change > 0 for change, _ in since),
            rate=min(mean, median(rates)) if rates else 0.0,
            shrunk_bytes=-sum(min(change, 0) for _, change, _ in steps),
        )

    def steady(self, enough: BacklogGrowingPolicy) -> bool:
        """Whether it took enough snapshots and minutes, rose in most steps, and hardly shrank within the window."""
        grown = self.now_bytes - self.low_bytes
        return (
            self.snapshots >= enough.minimum_snapshots
            and self.now_at - self.low_at >= timedelta(minutes=enough.minimum_minutes)
            and self.rising * 100 >= (self.snapshots - 1) * enough.rising_percent
            and self.shrunk_bytes * 100 <= grown * enough.most_shrunk_percent
        )


@dataclass(frozen=True)
class Growth:
    """How something grows that has a backlog.

    Attributes:
        row: The topic, of `POSSIBLE`; of a sum `topic`, its name, `namespace`, `backlog_bytes` and `limit_bytes`.
        rise: Its latest rise.
        rate: Bytes per second: the lower one of that since the low and that lately.
        seconds_left: Until it reaches its size quota at that rate; None where there is none.
        critical: Whether that is soon.
        together: Whose backlogs grow together; None: it is one topic.
    """

    row: Row
    rise: Rise
    rate: float
    seconds_left: float | None
    critical: bool
    together: Sum | None = None
