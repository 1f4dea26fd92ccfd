"""Backlogs with the size quota and the retention that are in force for them.

A topic's own limits take precedence over its namespace's, and these over the brokers' defaults. A topic's own limits
are known if its own statistics were read (table `drilled`); other topics are assumed to have their namespace's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.checks.backlog.policies import IN_FORCE
from pulsar_steward.model.units import MIB
from pulsar_steward.report.checkup.measures.data import LimitedBacklog

if TYPE_CHECKING:
    from pulsar_steward.snapshots.read import Snapshot

MAX_TOPICS = 20
"""Number of topics shown."""

FULLEST = 10
"""Number of shown topics that are nearest to their quota; the others are the largest of the rest."""

_LIMITED = f"""
    with limited as (
        select t.topic, t.namespace, backlog_bytes, coalesce(own.limit_bytes, whole.limit_bytes) as quota,
            coalesce(own.bytes_by, whole.bytes_by) as quota_by,
            coalesce(own.retention_megabytes, whole.retention_megabytes) as megabytes,
            coalesce(own.retention_by, whole.retention_by) as retention_by
        from topics t left join limits_in_force own on own.holder = t.topic
            left join limits_in_force whole on whole.holder = t.namespace
        where backlog_bytes > 0 and of_users(t.topic)),
    shares as (select *,
            case when quota = 0 then 'infinity'::double when quota > 0 then backlog_bytes / quota end as share
        from limited),
    fullest as (from shares where share is not null order by share desc, topic limit {FULLEST}),
    largest as (from shares anti join fullest using (topic) order by backlog_bytes desc, topic limit {MAX_TOPICS})
    select topic, namespace, backlog_bytes, if(quota >= 0, quota, null) as quota_bytes, quota_by,
        if(megabytes >= 0, megabytes * {MIB}, null) as retention_bytes, retention_by
    from (select *, share as figure, true as is_full from fullest
        union all select *, backlog_bytes, false from largest)
    order by is_full desc, figure desc, topic limit {MAX_TOPICS}"""


def limited_backlogs(snapshot: Snapshot) -> tuple[LimitedBacklog, ...]:
    """Topics of users with a backlog: the fullest, then the largest."""
    return tuple(snapshot.select(_LIMITED, LimitedBacklog, views=IN_FORCE))
