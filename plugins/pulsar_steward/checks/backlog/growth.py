"""Growth of a topic's backlog over the snapshots of a window, steady or not."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from pydantic import Field

from pulsar_steward.model.section import Section
from pulsar_steward.model.units import MIB

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from pulsar_steward.checks.check import AboutSnapshot, Earlier, Row


class BacklogGrowingPolicy(Section):
    """Thresholds for backlogs that keep growing: by the time until their size quota is reached, or by their rate."""

    UNORDERED = frozenset({"hours_to_quota"})

    window_minutes: int = Field(
        360, ge=1, description="earlier snapshots that are looked at: a backlog that shrank within it is not growing"
    )
    minimum_snapshots: int = Field(
        4, ge=3, le=13, description="over which it has to grow, this one included: three steps show more than a burst"
    )
    minimum_minutes: int = Field(
        10, ge=1, description="over which it has to grow: brokers' statistics are up to a minute old"
    )
    rising_percent: int = Field(75, ge=1, le=100, description="steps between snapshots in which it has to have grown")
    most_shrunk_percent: int = Field(
        25, ge=0, le=100, description="of its growth, that it may have shrunk by within the window"
    )
    warning_hours_to_quota: int = Field(
        12, ge=1, description="until the size quota in force is reached at this rate: time to act in daylight"
    )
    critical_hours_to_quota: int = Field(2, ge=1, description="the same: time to act is running out")
    warning_bytes_per_second: int = Field(
        MIB, ge=1, description="where no size quota is in force; 1 MiB/s fills 84 GiB a day"
    )
    warning_bytes_per_second_together: int = Field(
        5 * MIB,
        ge=1,
        description="of a topic's partitions or a namespace's topics together, without a size quota: 420 GiB a day",
    )
    minimum_seconds_behind: int = Field(
        60, ge=0, description="what grows together has to have grown by what is produced in so long: less is to and fro"
    )


@dataclass
class BacklogSum:
    """Total backlog of a partitioned topic's partitions, or of a namespace's topics.

    Attributes:
        name: The topic's full name, or the namespace.
        namespace: Its namespace.
        topics: Number of topics that count.
        bytes_now: Sum of their backlogs beyond `FLOOR_BYTES` each.
        throughput_in_bytes: Bytes produced into them per second.
        largest: The topic with the largest backlog: `bytes`, `topic`.
        before: The same sum by the time of an earlier snapshot. An absent one was 0, if that snapshot is whole; or
            it was not looked up, as even from 0 on it would not have grown fast enough.
    """

    name: str
    namespace: str
    topics: int = 0
    bytes_now: int = 0
    throughput_in_bytes: int = 0
    largest: Row = field(default_factory=dict)
    before: dict[datetime, int] = field(default_factory=dict)

    @property
    def of_partitions(self) -> bool:
        """True for the sum of a partitioned topic."""
        return "://" in self.name

    def add(self, row: Row) -> None:
        """Adds one shard's part."""
        self.topics += row["topics"]
        self.bytes_now += row["bytes"]
        self.throughput_in_bytes += row["throughput_in_bytes"]
        both = (self.largest or row["largest"], row["largest"])
        self.largest = max(both, key=lambda each: (each["bytes"], each["topic"]))


def reference(about: AboutSnapshot, earlier: Sequence[Earlier], enough: BacklogGrowingPolicy) -> Earlier | None:
    """Reference snapshot for recent growth: the newest that is old enough, preferably a whole one.

    Args:
        about: Metadata of this snapshot.
        earlier: Snapshots of the window, the newest first.
        enough: The required number of snapshots and minutes.

    Returns:
        None if there is none.
    """
    latest = about.taken_at - timedelta(minutes=enough.minimum_minutes)
    far = [each for each in earlier[enough.minimum_snapshots - 2 :] if each.taken_at <= latest]
    return next((each for each in far if not each.partial), far[0] if far else None)


@dataclass(frozen=True)
class Rise:
    """Latest rise of a backlog: from its lowest point within the window until now.

    Attributes:
        low_bytes: Size at the lowest point.
        low_at: Time of the lowest point.
        now_bytes: Present size.
        now_at: Time of this snapshot.
        snapshots: Number of snapshots since the lowest point, that one included.
        rising: Number of rising steps between them.
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
        """Computes the latest rise of a backlog, in bytes by time; snapshots without the topic are skipped."""
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
        """True if there are enough snapshots and minutes, most steps rose, and it hardly shrank within the window."""
        grown = self.now_bytes - self.low_bytes
        return (
            self.snapshots >= enough.minimum_snapshots
            and self.now_at - self.low_at >= timedelta(minutes=enough.minimum_minutes)
            and self.rising * 100 >= (self.snapshots - 1) * enough.rising_percent
            and self.shrunk_bytes * 100 <= grown * enough.most_shrunk_percent
        )


@dataclass(frozen=True)
class Growth:
    """Growth of a backlog.

    Attributes:
        row: The topic, a row of `POSSIBLE`; for a sum `topic`, its name, `namespace`, `backlog_bytes` and
            `limit_bytes`.
        rise: Its latest rise.
        rate: Bytes per second: the lower of the rates since the low and lately.
        seconds_left: Time until it reaches its size quota at that rate; None without a quota.
        critical: True if that is soon.
        together: The sum, if it is that of several topics; None: it is one topic.
    """

    row: Row
    rise: Rise
    rate: float
    seconds_left: float | None
    critical: bool
    together: BacklogSum | None = None
