"""Growth of a topic's backlog over the snapshots of a window, steady or not.

Partitions that each grow too slowly to matter may together fill the bookies, if there are a thousand of them. Only the
backlog beyond `FLOOR_BYTES` of each topic counts: most topics of a large cluster have less, and are left out first.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from pulsar_steward.model.section import Section, number, percent
from pulsar_steward.model.topics import PARTITION_END, partitioned_topic
from pulsar_steward.model.units import MIB

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from pulsar_steward.checks.check import AboutSnapshot, Earlier, Queried, Row


class BacklogGrowingPolicy(Section):
    """Thresholds for backlogs that keep growing: by the time until their size quota is reached, or by their rate."""

    UNORDERED = frozenset({"hours_to_quota"})

    window_minutes: int = number(
        360, "earlier snapshots that are looked at: a backlog that shrank within it is not growing"
    )
    minimum_snapshots: int = number(
        4, "over which it has to grow, this one included: three steps show more than a burst", ge=3, le=13
    )
    minimum_minutes: int = number(10, "over which it has to grow: brokers' statistics are up to a minute old")
    rising_percent: int = percent(75, "steps between snapshots in which it has to have grown")
    most_shrunk_percent: int = percent(25, "of its growth, that it may have shrunk by within the window", ge=0)
    warning_hours_to_quota: int = number(
        12, "until the size quota in force is reached at this rate: time to act in daylight"
    )
    critical_hours_to_quota: int = number(2, "the same: time to act is running out")
    warning_bytes_per_second: int = number(MIB, "where no size quota is in force; 1 MiB/s fills 84 GiB a day")
    warning_bytes_per_second_together: int = number(
        5 * MIB, "of a topic's partitions or a namespace's topics together, without a size quota: 420 GiB a day"
    )
    minimum_seconds_behind: int = number(
        60, "of production, by which backlogs have to have grown together: less is noise", ge=0
    )


FLOOR_BYTES = MIB
"""Bytes of each topic's backlog that are not counted."""

_PARTITION = f"^(.+){PARTITION_END}"


# Each topic counts for its namespace, and for the partitioned topic that it belongs to.
_NAMED = f"""
named as (
    select *, namespace as name from members
    union all select *, regexp_extract(topic, '{_PARTITION}', 1) as name from members where name <> '')
"""

# One shard's part of each sum: the parts of all shards are added up.
SUMS = f"""
with members as (
    select topic, namespace, backlog_bytes, backlog_bytes - {FLOOR_BYTES} as bytes,
        trunc(least(greatest(coalesce(throughput_in_bytes, 0), 0), 1e12))::bigint as throughput_in_bytes,
        warning_bytes_per_second_together::double * minimum_minutes * 60 as least_bytes
    from user_topics semi join (from namespace_policies where limit_bytes < 0) using (namespace)
        join limits using (namespace)
    where backlog_bytes > {FLOOR_BYTES}),
{_NAMED}
select name, namespace, count(*) as topics, sum(bytes)::bigint as bytes,
    sum(throughput_in_bytes)::bigint as throughput_in_bytes, max(least_bytes) as least_bytes,
    max({{'bytes': backlog_bytes, 'topic': topic}}) as largest
from named group by name, namespace
"""

# A sum cannot have grown by more than its present size.
SUMS_BEFORE = f"""
with wanted as (
    select name, namespace from sums group by name, namespace
    having sum(topics) > 1 and sum(bytes) >= max(least_bytes)),
loaded as (
    select topic, coalesce(namespace, namespace_of(topic)) as namespace, backlog_bytes - {FLOOR_BYTES} as bytes
    from raw_topics where backlog_bytes > {FLOOR_BYTES} and of_users(topic)),
members as (from loaded semi join wanted using (namespace)),
{_NAMED}
select name, sum(bytes)::bigint as bytes from named semi join wanted using (name) group by name
"""


def sums_of(queried: Queried) -> list[BacklogSum]:
    """Sums with more than one member; partitioned topics first, then by name."""
    found: dict[str, BacklogSum] = {}
    for row in queried["sums"].rows:
        found.setdefault(row["name"], BacklogSum(row["name"], row["namespace"])).add(row)
    for row in queried["sums_before"].rows:
        before = found[row["name"]].before
        before[row["taken_at"]] = before.get(row["taken_at"], 0) + row["bytes"]
    several = [each for each in found.values() if each.topics > 1]
    return sorted(several, key=lambda each: (not each.of_partitions, each.name))


def growing_together(
    sums: Iterable[BacklogSum],
    alone: Sequence[Growth],
    now: datetime,
    earlier: Sequence[Earlier],
    before: Earlier,
    limits: BacklogGrowingPolicy,
) -> list[Growth]:
    """Sums that grow steadily, and fast enough even without the topics `alone`, which are reported by themselves.

    Sums of partitioned topics come first. `earlier` are the snapshots of the window, the newest first, of which partial
    ones are skipped; `before` is the reference for recent growth, a whole snapshot.
    """
    told: dict[str, float] = defaultdict(float)
    for growth in alone:
        told[growth.row["namespace"]] += growth.rate
        told[partitioned_topic(growth.row["topic"])] += growth.rate
    found = []
    for each in sums:
        history = {then.taken_at: each.before.get(then.taken_at, 0) for then in earlier if not then.partial}
        rise = Rise.of({**history, now: each.bytes_now})
        lately = (each.bytes_now - history[before.taken_at]) / (now - before.taken_at).total_seconds()
        rate = min(rise.rate, lately)
        rest = rate - told[each.name]
        behind = (rise.now_bytes - rise.low_bytes) >= limits.minimum_seconds_behind * each.throughput_in_bytes
        if rest >= limits.warning_bytes_per_second_together and behind and rise.steady(limits):
            row = {"topic": each.name, "namespace": each.namespace, "backlog_bytes": each.bytes_now, "limit_bytes": -1}
            found.append(Growth(row, rise, rate, None, critical=False, together=each))
            told[each.namespace] += rest if each.of_partitions else 0
    return found


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
        before: The same sum in earlier snapshots, by their time. If a time is missing in a whole snapshot, the sum was
            0 then, or it was not looked up because growth from 0 would have been too slow.
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
    """Reference snapshot for recent growth: the newest that is old enough, preferably a whole one; None: there is none.

    `earlier` are the snapshots of the window, the newest first.
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
        rate: Bytes per second: the lower of the mean since the low and the median of the steps; 0 if the backlog is at
            its lowest now.
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
        rate: Bytes per second: the lower of the rate since the low and the recent rate.
        seconds_left: Time until it reaches its size quota at that rate; None without a quota.
        critical: True if the quota is reached soon.
        together: The sum, for several topics; None: for one topic.
    """

    row: Row
    rise: Rise
    rate: float
    seconds_left: float | None
    critical: bool
    together: BacklogSum | None = None
