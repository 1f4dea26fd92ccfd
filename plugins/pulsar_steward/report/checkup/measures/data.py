"""Data of the charts, as frozen data; part of a check-up's JSON form (`report.checkup.document`)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

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
