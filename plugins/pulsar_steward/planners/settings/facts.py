"""Facts for the planners of settings, and the effects of a changed setting on the cluster and on stored data.

Functions of a snapshot raise `SnapshotError` if a table cannot be read.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.checks.backlog.policies import IN_FORCE
from pulsar_steward.checks.backlog.replication_stopped import BACKLOGS
from pulsar_steward.facts.backlogs import (
    NOTHING_TAKEN,
    Backlog,
    BacklogAges,
    Taken,
    TopicAge,
    ages_of,
    backlog_of,
    evicted,
    evicting_from,
    expired,
    summed,
)
from pulsar_steward.facts.unknown import Unknown, loss_unknown
from pulsar_steward.model.loss import Loss, TopicLoss
from pulsar_steward.model.setting import (
    BacklogQuota,
    Persistence,
    QuotaPolicy,
    Setting,
    SettingName,
    in_words,
    when_in_force,
)
from pulsar_steward.model.subscription import Holder
from pulsar_steward.model.topics import SYSTEM_TOPIC
from pulsar_steward.model.units import bytes_in_words, counted, seconds_in_words
from pulsar_steward.planners.settings.filling import Filling

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulsar_steward.model.step import ChangeSetting
    from pulsar_steward.snapshots.read import Snapshot


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
        busiest_bytes_per_second: Incoming throughput; of the busiest partition if there are any. None: not known.
        delayed_messages: Delayed messages of its namespace; None: not known.
        backlogs: Known backlogs of the topic or its partitions, with their holders.
        compaction_bytes: As of the namespace.
        filling: Who fills its quota.
    """

    subject: str
    topic: str
    namespace: str
    own: dict[SettingName, Setting]
    inherited: dict[SettingName, Setting]
    peak: int
    snapshots: int = 1
    busiest_bytes_per_second: float | None = 0.0
    delayed_messages: int | None = None
    backlogs: tuple[Backlog, ...] = ()
    compaction_bytes: int = 0
    filling: Filling = Filling()


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
        busiest_bytes_per_second: Incoming throughput of its busiest topic; None: not known of one of them.
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
        scalable: Its scalable topics whose segments are loaded, in order.
        compaction_bytes: Backlog from which its topics are compacted, its own or the brokers' default; 0: they are not.
        filling: Who fills its quotas.
    """

    namespace: str
    own: dict[SettingName, Setting]
    looks: tuple[BacklogSample, ...]
    busiest_bytes_per_second: float | None
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
    scalable: tuple[str, ...] = ()
    compaction_bytes: int = 0
    filling: Filling = Filling()

    @property
    def peak(self) -> int:
        """Bytes of the largest backlog of a single topic in any of the snapshots."""
        return max(look.peak for look in self.looks)


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
        from ({LIMITED}) left join (select topic, max(oldest_backlog_age_seconds) as told from drilled
            where oldest_backlog_age_seconds >= 0 group by topic)
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
    """Largest own limits of drilled topics with their namespace's retention, in bytes and seconds, by namespace."""
    rows = snapshot.select(_QUOTAS, _Quotas, views=IN_FORCE, names=namespaces)
    return {row.namespace: (row.bytes, row.seconds) for row in rows}


def largest_backlogs(snapshot: Snapshot, namespaces: Sequence[str]) -> dict[str, list[Backlog]]:
    """The largest backlogs of topics, falling, with their holders, by namespace; at most `MAX_BACKLOGS` of each."""
    found: defaultdict[str, list[Backlog]] = defaultdict(list)
    for row in snapshot.select(_LARGEST, _Largest, views=BACKLOGS, names=namespaces):
        found[row.namespace].append(backlog_of(row.topic, row.backlog_bytes, {}, {}, *row.holders))
    return found


def backlog_ages(snapshot: Snapshot, namespaces: Sequence[str]) -> dict[str, BacklogAges]:
    """Ages of backlogs, by namespace: as brokers report them, else estimated from size and present inflow."""
    return {
        row.namespace: ages_of(
            [row.oldest] if row.oldest else [],
            waiting=row.waiting,
            unknown=row.unknown,
            why_unknown=WHY_UNKNOWN if row.unknown else "",
        )
        for row in snapshot.select(_AGES, _Ages, names=namespaces)
    }


def effect(fact: NamespaceFact, change: ChangeSetting) -> str:
    """The new value, and its effect if it had been in force in the last snapshots, as text."""
    words = f"the {change.name} of {change.holder} is {in_words(change.name, change.after)}"
    if not isinstance(change.after, BacklogQuota):
        return words + when_in_force(change.before_in_force, change.after_in_force)
    past = _older if change.name is SettingName.AGE_QUOTA else _over
    return f"{words}; {past(fact, change.after)}{fact.filling.in_words(change.after)}"


def undo_note(change: ChangeSetting) -> str:
    """The way to undo a change, as text; deleted data does not return."""
    back, before, after = f"Set it back: {change.in_words(change.before)}.", change.before_in_force, change.after
    if isinstance(before, Persistence) and isinstance(after, Persistence) and after.ensemble < before.ensemble:
        return f"{back} That takes so many bookies that are known to take writes (policy key collect.metrics_urls)."
    return f"{back} What was deleted meanwhile stays deleted." if change.loses_messages else back


def taken_from(fact: NamespaceFact, change: ChangeSetting) -> Taken | Unknown:
    """Data that brokers delete at once; not known if the change concerns more topics than are known.

    A lower retention deletes all stored consumed data, as the age of each ledger is not known. A shorter time to live
    deletes the whole backlog. An evicting age quota deletes nothing, as it is only set if it would not (`age_room`).
    """
    after = change.after_in_force
    if isinstance(after, msgspec.UnsetType):
        return loss_unknown(change)
    if change.deletes_stored:
        return Taken(loss=Loss(messages=0, bytes=fact.consumed_bytes))
    if not change.may_delete or change.name is SettingName.AGE_QUOTA:
        return NOTHING_TAKEN
    least = evicting_from(after.limit_bytes) if isinstance(after, BacklogQuota) else 0
    if len(fact.backlogs) == MAX_BACKLOGS and fact.backlogs[-1].bytes >= least:
        return loss_unknown(change)
    return evicted(fact.backlogs, after.limit_bytes) if isinstance(after, BacklogQuota) else expired(fact.backlogs)


def unread_loss(fact: NamespaceFact, delayed: Mapping[str, int] | None = None) -> Loss:
    """Unread data that expires unless a time to live is raised, by topic; only of `delayed` messages if given."""
    if delayed is None:
        return expired(fact.backlogs).loss
    bytes_of = {each.topic: each.bytes for each in fact.backlogs}
    losses = [TopicLoss(topic=name, messages=many, bytes=bytes_of.get(name, 0)) for name, many in delayed.items()]
    return summed(sorted(losses, key=lambda each: -(each.messages or 0)))


def _over(fact: NamespaceFact, quota: BacklogQuota) -> str:
    limit = quota.limit_bytes
    over = max(look.over(limit) for look in fact.looks)
    many = f"{over:,} or more" if over == MAX_BACKLOGS else f"{over:,}"
    topics = max(look.topics for look in fact.looks)
    last = "snapshot" if len(fact.looks) == 1 else counted(len(fact.looks), "snapshot")
    words = f"of {counted(topics, 'loaded topic')}, {many} would have been over it in the last {last}"
    if quota.policy is QuotaPolicy.EVICT:
        return f"{words}, and up to {bytes_in_words(max(look.evicted(limit) for look in fact.looks))} evicted"
    stopped = "held" if quota.policy is QuotaPolicy.HOLD else "refused"
    return f"{words}, and {counted(max(look.held(limit) for look in fact.looks), 'producer')} {stopped}"


def _older(fact: NamespaceFact, quota: BacklogQuota) -> str:
    """The ages of backlogs: no backlog is known to be over a proposed quota, and unknown ages are counted."""
    ages, older = fact.ages, int(fact.ages.oldest_seconds > quota.limit_seconds)
    words = f"of {counted(fact.looks[0].topics, 'loaded topic')}, {ages.waiting:,} had a backlog in the last snapshot"
    if ages.topic is not None:
        known = "estimated, from its size and what came in, at" if ages.estimated else "known to be"
        oldest = f"the oldest, of {ages.topic}, is {known} {seconds_in_words(ages.oldest_seconds)}"
        words += f", {older:,} known to be older than that; {oldest}"
    if ages.unknown:
        words += f"; of {ages.unknown:,} the age is not known, and brokers are asked for it right before the call"
    return words
