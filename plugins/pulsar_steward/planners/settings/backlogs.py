"""Backlogs of topics in a snapshot by namespace: the largest with their holders, their ages, and topics' own quotas."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.admin.own_settings import own_settings_in
from pulsar_steward.decoding import decode
from pulsar_steward.facts.backlogs import TopicAge, ages_of, backlog_of
from pulsar_steward.model.setting import BacklogQuota, SettingName
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
    select namespace, topic, backlog_bytes, replication_json, coalesce(waiting, []) as waiting
    from (from ({LIMITED}) where backlog_bytes > 0
        qualify row_number() over (partition by namespace order by backlog_bytes desc, topic) <= {MAX_BACKLOGS})
    left join (select topic, list({{'subscription': subscription, 'entries': backlog_entries}}) as waiting
        from subscriptions where backlog_entries > 0 and namespace in (select unnest($names)) group by topic)
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
    select distinct namespace, topic, coalesce(topic_quota_json, '{}') as quota,
        coalesce(topic_retention_json, '{}') as retention
    from drilled where namespace in (select unnest($names))"""


class _Replication(msgspec.Struct, frozen=True):
    """One remote cluster in `replication_json`."""

    cluster: str
    backlog_entries: int


class _Waiting(msgspec.Struct, frozen=True):
    subscription: str
    entries: int


class _Largest(msgspec.Struct, frozen=True):
    namespace: str
    topic: str
    backlog_bytes: int
    replication_json: str | None
    waiting: tuple[_Waiting, ...]


class _Ages(msgspec.Struct, frozen=True):
    namespace: str
    waiting: int
    unknown: int
    oldest: TopicAge | None


class OwnSettings(msgspec.Struct, frozen=True):
    """Settings that a topic sets itself, as JSON."""

    topic: str
    namespace: str
    quota: str
    retention: str


def topic_quotas(snapshot: Snapshot, namespaces: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Largest own limits of drilled topics with their namespace's retention, in bytes and seconds, by namespace.

    Raises:
        SnapshotError: If the table cannot be read.
    """
    found: dict[str, tuple[int, int]] = {}
    for row in snapshot.select(_QUOTAS, OwnSettings, names=namespaces):
        own = own_settings_in(row.quota, row.retention)
        if SettingName.RETENTION in own:
            continue
        size, age = (own.get(name) for name in (SettingName.SIZE_QUOTA, SettingName.AGE_QUOTA))
        most = found.get(row.namespace, (0, 0))
        found[row.namespace] = (
            max(most[0], size.limit_bytes if isinstance(size, BacklogQuota) else 0),
            max(most[1], age.limit_seconds if isinstance(age, BacklogQuota) else 0),
        )
    return found


def largest_backlogs(snapshot: Snapshot, namespaces: Sequence[str]) -> dict[str, list[Backlog]]:
    """The largest backlogs of topics, falling, with their holders, by namespace; at most `MAX_BACKLOGS` of each.

    Raises:
        SnapshotError: If a table cannot be read.
    """
    found: defaultdict[str, list[Backlog]] = defaultdict(list)
    for row in snapshot.select(_LARGEST, _Largest, names=namespaces):
        waiting = {each.subscription: each.entries for each in row.waiting}
        remote = decode(row.replication_json, list[_Replication]) if row.replication_json else []
        unsent = {each.cluster: each.backlog_entries for each in remote}
        found[row.namespace].append(backlog_of(row.topic, row.backlog_bytes, waiting, unsent))
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
