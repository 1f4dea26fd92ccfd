"""Backlogs that grow together: of the partitions of one topic, of the topics of one namespace, without a size quota.

A thousand partitions that each grow too slowly to matter may fill the bookies. Of each topic that counts which is
beyond `FLOOR_BYTES`: most topics of a large cluster have no backlog to speak of, and are left out before all else.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pulsar_steward.checks.backlog.growth import Growth, Rise

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from pulsar_steward.checks.backlog.backlog_growing import BacklogGrowingPolicy
    from pulsar_steward.checks.check import Answers, Earlier, Row

FLOOR_BYTES = 1024**2
"""Of a topic's backlog so much is not counted."""

_PARTITION = r"^(.+)-partition-[0-9]+$"


# Each topic counts for its namespace, and for the topic that it is a partition of.
_NAMED = f"""
named as (
    select *, namespace as name from members
    union all select *, regexp_extract(topic, '{_PARTITION}', 1) as name from members where name <> '')
"""

# What one shard has of each: however the snapshot is cut, all of it comes together.
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

# Nothing grew by more than it is now.
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


@dataclass
class Sum:
    """The backlogs of a partitioned topic's partitions, or of a namespace's topics.

    Attributes:
        name: The topic's full name, or the namespace.
        namespace: Its namespace.
        topics: Those that count.
        bytes_now: What they have beyond `FLOOR_BYTES` each.
        throughput_in_bytes: What is produced into them a second.
        largest: The one with the largest backlog: `bytes`, `topic`.
        before: The same sum by the time of an earlier snapshot. What is absent was 0, where that snapshot is whole; or
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
        """Whether it is of one topic."""
        return "://" in self.name

    def add(self, row: Row) -> None:
        """Adds what one shard has of it."""
        self.topics += row["topics"]
        self.bytes_now += row["bytes"]
        self.throughput_in_bytes += row["throughput_in_bytes"]
        both = (self.largest or row["largest"], row["largest"])
        self.largest = max(both, key=lambda each: (each["bytes"], each["topic"]))


def sums_of(answers: Answers) -> list[Sum]:
    """All that have more than one member; those of partitions first, by name."""
    found: dict[str, Sum] = {}
    for row in answers["sums"].rows:
        found.setdefault(row["name"], Sum(row["name"], row["namespace"])).add(row)
    for row in answers["sums_before"].rows:
        before = found[row["name"]].before
        before[row["taken_at"]] = before.get(row["taken_at"], 0) + row["bytes"]
    several = [each for each in found.values() if each.topics > 1]
    return sorted(several, key=lambda each: (not each.of_partitions, each.name))


def growing_together(
    sums: Iterable[Sum],
    alone: Sequence[Growth],
    now: datetime,
    earlier: Sequence[Earlier],
    before: Earlier,
    limits: BacklogGrowingPolicy,
) -> list[Growth]:
    """Those that grow steadily, and fast enough without what was found to grow by itself.

    Args:
        sums: Of partitioned topics first.
        alone: Topics that were found.
        now: When this snapshot was taken.
        earlier: Snapshots of the window, the newest first; partial ones are passed over.
        before: The one that shows what grew lately, a whole one.
        limits: What is fast.
    """
    told: dict[str, float] = defaultdict(float)
    for growth in alone:
        told[growth.row["namespace"]] += growth.rate
        told[base_of(growth.row["topic"])] += growth.rate
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


def base_of(topic: str) -> str:
    """The topic that a partition is of; of any other topic its own name, which no sum has."""
    match = re.fullmatch(_PARTITION, topic)
    return match[1] if match else topic
