"""Data of the charts, read from a snapshot's tables: the worst few of each kind, whatever the cluster's size."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from msgspec import Meta

from pulsar_steward.checks.backlog.policies import IN_FORCE
from pulsar_steward.model.measures import MEASURES
from pulsar_steward.model.units import MIB

if TYPE_CHECKING:
    from pulsar_steward.snapshots.read import Snapshot


SetBy = Literal["topic", "namespace", "default"]
"""Level at which a limit is set; default: in the brokers' configuration."""


class BrokerLoad(msgspec.Struct, frozen=True, kw_only=True):
    """Load of one broker; null where it did not answer."""

    broker: str
    topics: int | None
    coordinators: int | None


class BundleTopics(msgspec.Struct, frozen=True, kw_only=True):
    """Number of topics loaded in one bundle."""

    bundle: str
    topics: int


class CrowdedNamespace(msgspec.Struct, frozen=True, kw_only=True):
    """A namespace with many topics in one bundle."""

    namespace: str
    bundles: Annotated[tuple[BundleTopics, ...], Meta(description="the fullest first")]
    not_listed: Annotated[int, Meta(description="further bundles, with fewer topics each")]


class NamespaceBacklog(msgspec.Struct, frozen=True, kw_only=True):
    """Backlog of one namespace."""

    namespace: str
    backlog_bytes: int


class LimitedBacklog(msgspec.Struct, frozen=True, kw_only=True):
    """The backlog of one topic beside the size quota and the retention in force for it."""

    topic: str
    namespace: str
    backlog_bytes: int
    quota_bytes: Annotated[int | None, Meta(description="null: none, or not known, see quota_by")]
    quota_by: Annotated[SetBy | None, Meta(description="who sets the quota, or that there is none; null: not known")]
    retention_bytes: Annotated[int | None, Meta(description="null: without limit, or not known, see retention_by")]
    retention_by: Annotated[SetBy | None, Meta(description="who sets the retention; null: not known")]


class HoledSubscription(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription with ranges of individual acknowledgements beyond its first gap."""

    topic: str
    subscription: str
    ack_holes: int
    persisted_at_most: Annotated[
        int | None,
        Meta(description="managedLedgerMaxUnackedRangesToPersist of the broker that holds the topic; null: not read"),
    ]


class DelayedSubscription(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription with messages that wait for their time, of the topics whose own statistics were read."""

    topic: str
    subscription: str
    delayed_messages: int | None
    index_bytes: Annotated[int | None, Meta(description="memory that their index takes; null: not told")]
    buckets: Annotated[int | None, Meta(description="of a bucket tracker; null: not told")]


class TrendPoint(msgspec.Struct, frozen=True, kw_only=True):
    """A figure at the time of a snapshot."""

    taken_at: datetime
    value: float


class Trend(msgspec.Struct, frozen=True, kw_only=True):
    """One figure over time."""

    measure: Annotated[str, Meta(description="such as backlog_bytes, with its unit")]
    meaning: str
    subject: Annotated[str, Meta(description="the cluster, a broker or a topic")]
    points: Annotated[tuple[TrendPoint, ...], Meta(description="two or more, oldest first")]

    @property
    def span(self) -> float:
        """Difference between its highest and its lowest value."""
        values = [point.value for point in self.points]
        return max(values) - min(values)


class Measures(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of the page's charts."""

    brokers: Annotated[tuple[BrokerLoad, ...], Meta(description="every broker, by name")]
    crowded: Annotated[tuple[CrowdedNamespace, ...], Meta(description="the few most crowded ones, worst first")]
    backlog: Annotated[tuple[NamespaceBacklog, ...], Meta(description="the largest ones, largest first; none is 0")]
    limited: Annotated[
        tuple[LimitedBacklog, ...],
        Meta(description="topics that fill most of their quota, then the largest others; none has no backlog"),
    ]
    ack_holes: Annotated[tuple[HoledSubscription, ...], Meta(description="the worst few, worst first; none has none")]
    delayed: Annotated[tuple[DelayedSubscription, ...], Meta(description="the largest indexes, largest first")]
    trends: Annotated[
        tuple[Trend, ...], Meta(description="by measure; empty as long as there is no second snapshot to compare with")
    ]


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


MAX_NAMESPACES = 4
"""Number of crowded namespaces that are shown bundle by bundle."""

MAX_BUNDLES = 16
"""Number of bundles shown for each of them: the most that a new namespace has in the lab's clusters."""

MAX_BACKLOGS = 20
"""Number of namespaces whose backlog is shown."""

LEAST_TOPICS = 2
"""Minimum number of topics in one bundle for a crowded namespace."""


_CROWDED = f"""
    select namespace,
        list({{'bundle': bundle, 'topics': topics}} order by topics desc, bundle)[:{MAX_BUNDLES}] as bundles,
        greatest(count(*) - {MAX_BUNDLES}, 0) as not_listed
    from bundles where topics is not null group by namespace having max(topics) >= {LEAST_TOPICS}
    order by max(topics) desc, namespace limit {MAX_NAMESPACES}"""

_BACKLOGS = f"""
    select namespace, sum(backlog_bytes)::bigint as backlog_bytes from bundles group by namespace
    having sum(backlog_bytes) > 0 order by 2 desc, namespace limit {MAX_BACKLOGS}"""


MAX_SUBSCRIPTIONS = 20
"""Number of subscriptions shown of each kind."""

_HOLED = f"""
    with worst as (select topic, subscription, ack_holes from subscriptions where ack_holes > 0 and of_users(topic)
        order by ack_holes desc, topic, subscription limit {MAX_SUBSCRIPTIONS})
    select topic, subscription, ack_holes, try_cast(value as bigint) as persisted_at_most
    from worst left join topics using (topic) left join configuration
        on configuration.broker = topics.broker and key = 'managedLedgerMaxUnackedRangesToPersist'
    order by ack_holes desc, topic, subscription"""

_DELAYED = f"""
    select topic, subscription, delayed_messages, delayed_index_bytes as index_bytes, delayed_buckets as buckets
    from drilled where subscription <> '' and of_users(topic) and greatest(delayed_index_bytes, delayed_messages) > 0
    order by delayed_index_bytes desc nulls last, if(delayed_index_bytes is null, delayed_messages, null) desc,
        topic, subscription limit {MAX_SUBSCRIPTIONS}"""


MAX_SUBJECTS = 10
"""Maximum number of lines for one measure (one per broker, for example): more cannot be distinguished."""

LEAST_POINTS = 2


def _trends(snapshot: Snapshot) -> tuple[Trend, ...]:
    """Trends in the order of `MEASURES`; for each measure the subjects that changed most, by name."""
    made = [
        Trend(
            measure=measure,
            meaning=MEASURES.get(measure, measure),
            subject=subject,
            points=tuple(TrendPoint(taken_at=row.taken_at, value=row.value) for row in rows),
        )
        for (measure, subject), rows in groupby(snapshot.trends(), key=lambda row: (row.measure, row.subject))
    ]
    order = {measure: number for number, measure in enumerate(MEASURES)}
    several = sorted(
        (trend for trend in made if len(trend.points) >= LEAST_POINTS),
        key=lambda trend: (order.get(trend.measure, len(order)), trend.measure),
    )
    found: list[Trend] = []
    for _, each in groupby(several, key=lambda trend: trend.measure):
        most_changed = sorted(each, key=lambda trend: (-trend.span, trend.subject))[:MAX_SUBJECTS]
        found += sorted(most_changed, key=lambda trend: trend.subject)
    return tuple(found)


def measures_of(snapshot: Snapshot) -> Measures:
    """Reads the charts' data; DuckDB processes a table of a million topics, not Python row by row.

    Raises:
        SnapshotError: If a table cannot be read.
    """
    held = Counter(row.broker for row in snapshot.coordinators() if row.broker is not None)
    return Measures(
        brokers=tuple(
            BrokerLoad(broker=row.broker, topics=row.topics, coordinators=held[row.broker] if row.read else None)
            for row in snapshot.brokers()
        ),
        crowded=tuple(snapshot.select(_CROWDED, CrowdedNamespace)),
        backlog=tuple(snapshot.select(_BACKLOGS, NamespaceBacklog)),
        limited=tuple(snapshot.select(_LIMITED, LimitedBacklog, views=IN_FORCE)),
        ack_holes=tuple(snapshot.select(_HOLED, HoledSubscription)),
        delayed=tuple(snapshot.select(_DELAYED, DelayedSubscription)),
        trends=_trends(snapshot),
    )
