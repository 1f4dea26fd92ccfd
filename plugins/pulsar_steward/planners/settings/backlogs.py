"""Backlogs of topics in a snapshot by namespace: the largest with their holders, their ages, and topics' own quotas."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.checks.backlog.policies import IN_FORCE
from pulsar_steward.checks.backlog.replicators import BACKLOGS
from pulsar_steward.facts.backlogs import TopicAge, ages_of, backlog_of
from pulsar_steward.model.holders import Holder
from pulsar_steward.model.topics import SYSTEM_TOPIC
from pulsar_steward.planners.settings.facts import MAX_BACKLOGS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsar_steward.facts.backlogs import Backlog, BacklogAges
    from pulsar_steward.snapshots.read import Snapshot

WHY_UNKNOWN = "brokers tell it only where an age quota is set, and nothing comes in by which it could be estimated"

LIMITED = f"""
    select * from topics where namespace in (select unnest($names)) and not regexp_matches(topic, '{SYSTEM_TOPIC}')"""
"""SQL: topics of namespaces, without system topics such as ``__change_events``, which are under no quota."""

_LARGEST = f"""
    select namespace, topic, backlog_bytes, coalesce(holders, []) as holders
    from (from ({LIMITED}) where backlog_bytes > 0
        qualify row_number() over (partition by namespace order by backlog_bytes desc, topic) <= {MAX_BACKLOGS})
    left join (select topic, list({{'name': holder, 'entries': entries}} order by holder) as holders
        from backlogs where namespace in (select unnest($names)) group by topic)
    using (topic) order by namespace, backlog_bytes desc, topic"""

_AGES = f"""
    select namespace, count(*) as waiting, count(*) filter (seconds is null) as unknown,
        max({{'seconds': seconds, 'topic': topic, 'estimated': estimated}}) filter (seconds is not null) as oldest
    from (select namespace, topic, told is null as estimated, coalesce(told,
            case when throughput_in_bytes > 0 and backlog_bytes >= 0
                then least(ceil(backlog_bytes / throughput_in_bytes), {1 << 40}) end)::bigint as seconds
        from ({LIMITED}) left join (select topic, max(oldest_backlog_age_seconds) as told from drilled group by topic)
        using (topic) where coalesce(backlog_bytes, 1) > 0)
    group by namespace"""

_QUOTAS = """
    select namespace, coalesce(max(limit_bytes) filter (bytes_by = 'topic' and limit_bytes > 0), 0) as bytes,
        coalesce(max(limit_seconds) filter (seconds_by = 'topic' and limit_seconds > 0), 0) as seconds
    from limits_in_force where namespace in (select unnest($names)) and retention_by is distinct from 'topic'
    group by namespace"""


class _Largest(msgspec.Struct, frozen=True):
    namespace: str
    topic: str
    backlog_bytes: int
    holders: tuple[Holder, ...]


class _Quotas(msgspec.Struct, frozen=True):
    namespace: str
    bytes: int
    seconds: int


class _Ages(msgspec.Struct, frozen=True):
    namespace: str
    waiting: int
    unknown: int
    oldest: TopicAge | None


def topic_quotas(snapshot: Snapshot, namespaces: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Largest own limits of drilled topics with their namespace's retention, in bytes and seconds, by namespace.

    Raises:
        SnapshotError: If the table cannot be read.
    """
    rows = snapshot.select(_QUOTAS, _Quotas, views=IN_FORCE, names=namespaces)
    return {row.namespace: (row.bytes, row.seconds) for row in rows}


def largest_backlogs(snapshot: Snapshot, namespaces: Sequence[str]) -> dict[str, list[Backlog]]:
    """The largest backlogs of topics, falling, with their holders, by namespace; at most `MAX_BACKLOGS` of each.

    Raises:
        SnapshotError: If a table cannot be read.
    """
    found: defaultdict[str, list[Backlog]] = defaultdict(list)
    for row in snapshot.select(_LARGEST, _Largest, views=BACKLOGS, names=namespaces):
        found[row.namespace].append(backlog_of(row.topic, row.backlog_bytes, {}, {}, *row.holders))
    return found


def backlog_ages(snapshot: Snapshot, namespaces: Sequence[str]) -> dict[str, BacklogAges]:
    """Ages of backlogs, by namespace: as brokers report them, else estimated from size and present inflow.

    Raises:
        SnapshotError: If a table cannot be read.
    """
    return {
        row.namespace: ages_of(
            [row.oldest] if row.oldest else [],
            waiting=row.waiting,
            unknown=row.unknown,
            why_unknown=WHY_UNKNOWN if row.unknown else "",
        )
        for row in snapshot.select(_AGES, _Ages, names=namespaces)
    }
