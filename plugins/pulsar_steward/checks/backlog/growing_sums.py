"""Backlogs that grow together: of the partitions of one topic, of the topics of one namespace, without a size quota.

A thousand partitions that each grow too slowly to matter may fill the bookies. Of each topic only the backlog beyond
`FLOOR_BYTES` counts: most topics of a large cluster have hardly any backlog, and are left out first.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from pulsar_steward.checks.backlog.growth import BacklogSum, Growth, Rise
from pulsar_steward.model.topics import PARTITION_END, partitioned_topic
from pulsar_steward.model.units import MIB

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from pulsar_steward.checks.backlog.growth import BacklogGrowingPolicy
    from pulsar_steward.checks.check import Answers, Earlier

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

# Nothing grew by more than its present size.
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


def sums_of(answers: Answers) -> list[BacklogSum]:
    """Sums with more than one member; those of partitions first, by name."""
    found: dict[str, BacklogSum] = {}
    for row in answers["sums"].rows:
        found.setdefault(row["name"], BacklogSum(row["name"], row["namespace"])).add(row)
    for row in answers["sums_before"].rows:
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
    """Sums that grow steadily, and fast enough without the topics that were found to grow by themselves.

    Args:
        sums: Sums, those of partitioned topics first.
        alone: Topics that were found to grow.
        now: Snapshot time.
        earlier: Snapshots of the window, the newest first; partial ones are skipped.
        before: Reference for recent growth, a whole snapshot.
        limits: Thresholds of growth.
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
