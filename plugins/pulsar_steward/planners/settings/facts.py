"""Facts for the planners of settings: namespaces and topics."""

from __future__ import annotations

from datetime import datetime

import msgspec

from pulsar_steward.facts.backlogs import Backlog, BacklogAges
from pulsar_steward.model.setting import Setting, SettingName


class BacklogSample(msgspec.Struct, frozen=True, kw_only=True):
    """The topics of a namespace in one snapshot.

    Attributes:
        taken_at: Snapshot time, UTC.
        topics: Loaded topics.
        backlogs: Bytes of the largest backlogs of single topics, falling; at most `MAX_BACKLOGS`.
        producers: Connected producers of the same topics.
    """

    taken_at: datetime
    topics: int
    backlogs: tuple[int, ...] = ()
    producers: tuple[int, ...] = ()

    @property
    def peak(self) -> int:
        """Bytes of the largest backlog of a single topic."""
        return max(self.backlogs, default=0)

    def over(self, limit_bytes: int) -> int:
        """Number of topics over a limit; `MAX_BACKLOGS` means that many or more."""
        return sum(backlog > limit_bytes for backlog in self.backlogs)

    def held(self, limit_bytes: int) -> int:
        """Connected producers of the topics over a limit."""
        return sum(self.producers[: self.over(limit_bytes)])

    def evicted(self, limit_bytes: int) -> int:
        """Maximum number of bytes that brokers would evict: the whole backlogs of the topics over a limit."""
        return sum(self.backlogs[: self.over(limit_bytes)])


class TopicSettings(msgspec.Struct, frozen=True, kw_only=True):
    """A topic with a finding and settings of its own.

    Attributes:
        subject: The finding's subject, which may be a partition.
        topic: Full name; for a partition, the name of the partitioned topic.
        namespace: ``tenant/namespace``.
        own: Its own settings, by name.
        inherited: Settings of its namespace or the brokers, by name.
        peak: Bytes of the largest backlog in the last snapshots, of the topic or of one of its partitions.
        snapshots: Number of these snapshots.
        busiest_bytes_per_second: Incoming throughput; of the busiest partition if there are any.
        delayed_messages: Delayed messages of its namespace; None: not known.
    """

    subject: str
    topic: str
    namespace: str
    own: dict[SettingName, Setting]
    inherited: dict[SettingName, Setting]
    peak: int
    snapshots: int = 1
    busiest_bytes_per_second: float = 0.0
    delayed_messages: int | None = None


class FullTopic(msgspec.Struct, frozen=True, kw_only=True):
    """A topic that is near its size quota, or growing towards it.

    Attributes:
        topic: Full name.
        backlog_bytes: Its backlog.
        bytes_per_second: Mean growth since the lowest point of the last snapshots; the inflow, if there are none.
        seconds: Time since that point; 0: no earlier snapshot has the topic.
    """

    topic: str
    backlog_bytes: int
    bytes_per_second: float = 0.0
    seconds: int = 0

    def after(self, seconds: int) -> int:
        """Bytes of its backlog in so many seconds, at the same growth."""
        return self.backlog_bytes + int(self.bytes_per_second * seconds)


MAX_BACKLOGS = 1_000
"""Number of backlogs in a sample of a namespace."""


class NamespaceFact(msgspec.Struct, frozen=True, kw_only=True):
    """A namespace with a finding.

    Attributes:
        namespace: ``tenant/namespace``.
        own: Its own settings, by name.
        looks: Its topics in this snapshot and in earlier ones, the newest first; at least this one.
        busiest_bytes_per_second: Incoming throughput of its busiest topic.
        stored_bytes: Stored bytes of its loaded topics.
        consumed_bytes: Stored bytes that every durable cursor has passed: the most that a lower retention can delete.
        backlogs: The largest backlogs of this snapshot, falling, by topic; at most `MAX_BACKLOGS`.
        ages: Ages of its backlogs in this snapshot, as far as they are known.
        outgrown: Bytes and seconds of the worst backlogs that exceed the namespace's retention.
        age_quota_delay_seconds: Maximum delay of an age quota: the time until the oldest ledger is closed.
        delayed_messages: Delayed messages of all its subscriptions; None: brokers' metrics have no topic metrics.
        delayed_topics: The same by topic, without topics that have none.
        topic_quotas: The largest own limits of its drilled topics, in bytes and in seconds; 0: none.
        full: Topics that are near a size quota or growing towards it, by name.
        clusters: Clusters that serve it, by its policies, in order.
    """

    namespace: str
    own: dict[SettingName, Setting]
    looks: tuple[BacklogSample, ...]
    busiest_bytes_per_second: float
    stored_bytes: int
    consumed_bytes: int = 0
    backlogs: tuple[Backlog, ...] = ()
    ages: BacklogAges = BacklogAges()
    outgrown: tuple[int, int] = (0, 0)
    age_quota_delay_seconds: int = 0
    delayed_messages: int | None = None
    delayed_topics: dict[str, int] = {}
    topic_quotas: tuple[int, int] = (0, 0)
    full: tuple[FullTopic, ...] = ()
    clusters: tuple[str, ...] = ()

    @property
    def peak(self) -> int:
        """Bytes of the largest backlog of a single topic in any of the snapshots."""
        return max(look.peak for look in self.looks)
