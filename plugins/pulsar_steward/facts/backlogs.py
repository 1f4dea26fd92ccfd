"""Backlogs of topics, their holders and ages, and the most that brokers delete of them at once for a changed setting.

- `consumer_backlog_eviction`: at each check, the broker makes the slowest durable cursor skip a share of its entries,
  then the next one, until none is over nine tenths of the limit. The share is from the mean size of entries: if old
  entries are larger or smaller than new ones, almost all may be skipped.
- Time to live: subscriptions and replicators skip older messages.
- Lower retention: closed ledgers that every durable cursor has passed are deleted, oldest first.

All of this was seen on 4.0.7 (docs/pulsar-behaviour.md).
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.model.loss import NOTHING_LOST, Loss, TopicLoss, total
from pulsar_steward.model.setting import Retention
from pulsar_steward.model.subscription import EXPIRING, Holder, HolderKind, replicator_to, slowest, unexplained
from pulsar_steward.model.units import MIB, MINUTE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pulsar_steward.model.setting import Setting
    from pulsar_steward.pulsar.own_settings import StoredLedger
    from pulsar_steward.pulsar.owner import InternalDetail


class Backlog(msgspec.Struct, frozen=True, kw_only=True):
    """Backlog of one topic.

    Attributes:
        topic: Full name.
        bytes: Backlog of its slowest durable cursor, of any kind.
        holders: Known cursors with a backlog, by name.
    """

    topic: str
    bytes: int
    holders: tuple[Holder, ...] = ()

    @property
    def held_by(self) -> str:
        """The cursor with the largest backlog, in words; empty: none, or none is known."""
        found = slowest(self.holders)
        return found.words if found else ""


class PulsarsHold(msgspec.Struct, frozen=True, kw_only=True):
    """What Pulsar's own cursors hold of a setting's topics, and may come to hold.

    Attributes:
        backlog: The largest backlog that a replicator, deduplication or compaction holds; None: there is none.
        compaction_bytes: The largest compaction threshold in force: as many bytes a topic may hold before it is
            compacted; 0: none.
    """

    backlog: Backlog | None = None
    compaction_bytes: int = 0


def held_by_pulsar(backlogs: Iterable[Backlog], compaction_bytes: int) -> PulsarsHold:
    """What Pulsar's own cursors hold of some topics with these backlogs."""
    own = (found for each in backlogs if (found := _own_part(each)))
    return PulsarsHold(
        backlog=max(own, key=lambda each: (each.bytes, each.topic), default=None), compaction_bytes=compaction_bytes
    )


def _own_part(backlog: Backlog) -> Backlog | None:
    """The part of a backlog that Pulsar's own slowest cursor holds, by its share of entries; None: it holds nothing."""
    own, most = slowest(each for each in backlog.holders if each.is_own), slowest(backlog.holders)
    if own is None or most is None:
        return None
    part = backlog.bytes
    if own.entries is not None and most.entries:
        part = backlog.bytes * min(own.entries, most.entries) // most.entries
    return Backlog(topic=backlog.topic, bytes=part, holders=(own,))


def backlog_of(
    topic: str, size: int, subscriptions: Mapping[str, int], replicators: Mapping[str, int], *more: Holder
) -> Backlog:
    """The backlog of a topic, from its statistics.

    Args:
        topic: Full name.
        size: Bytes of the backlog.
        subscriptions: Entries that each subscription has not consumed.
        replicators: Entries that were not sent to each remote cluster.
        more: Cursors that statistics do not show. Without any, a backlog without a holder in the statistics is
            attributed to deduplication.
    """
    shown = {**subscriptions, **{replicator_to(cluster): entries for cluster, entries in replicators.items()}}
    holders = [*(Holder(name=name, entries=entries) for name, entries in sorted(shown.items()) if entries), *more]
    if size > 0 and not holders:
        holders = [unexplained()]
    return Backlog(topic=topic, bytes=size, holders=tuple(holders))


def unshown_holders(internals: InternalDetail, shown: Iterable[str]) -> tuple[Holder, ...]:
    """Cursors in a topic's ``internalStats`` that its statistics do not show, such as deduplication's.

    Args:
        internals: Its ledgers and cursors.
        shown: Names of the cursors in the statistics, including non-durable readers.
    """
    hidden = sorted(set(internals.cursors) - set(shown))
    holders = (Holder(name=name, entries=internals.entries_behind(name)) for name in hidden)
    return tuple(each for each in holders if each.entries != 0)


class BacklogAges(msgspec.Struct, frozen=True, kw_only=True):
    """The oldest unconsumed message of several topics.

    Attributes:
        oldest_seconds: Its age, among topics with a known or estimated age; 0: none of them has a backlog.
        topic: Its topic; None: there is none.
        holder: Pulsar's own cursor that has not consumed it; empty: it is a subscription.
        estimated: True if the age is estimated from the size of the backlog and the present rate in.
        waiting: Number of topics with a backlog.
        unknown: Number of these topics with an unknown age.
        why_unknown: Reason for the unknown ages, in words.
    """

    oldest_seconds: int = 0
    topic: str | None = None
    holder: str = ""
    estimated: bool = False
    waiting: int = 0
    unknown: int = 0
    why_unknown: str = ""


class TopicAge(msgspec.Struct, frozen=True, order=True):
    """Age of a topic's backlog, reported or estimated; sorts by age. For `holder` see `BacklogAges`."""

    seconds: int
    topic: str
    estimated: bool = False
    holder: str = ""


def ages_of(known: Iterable[TopicAge], *, waiting: int, unknown: int, why_unknown: str) -> BacklogAges:
    """The oldest of these ages, and the number of topics with an unknown age.

    Args:
        known: Known or estimated ages; topics that are certainly not the oldest may be left out.
        waiting: Number of topics with a backlog.
        unknown: Number of these topics with an unknown age.
        why_unknown: Reason for the unknown ages, in words.
    """
    oldest = max(known, default=None)
    return BacklogAges(
        oldest_seconds=oldest.seconds if oldest else 0,
        topic=oldest.topic if oldest else None,
        holder=oldest.holder if oldest else "",
        estimated=oldest.estimated if oldest else False,
        waiting=waiting,
        unknown=unknown,
        why_unknown=why_unknown,
    )


def retained_seconds(kept: Setting | None) -> int | None:
    """Seconds for which a retention keeps consumed messages; None: without time limit, or not at all."""
    return kept.minutes * 60 if isinstance(kept, Retention) and kept.minutes > 0 else None


MAX_NAMED = 10
"""Maximum number of topics that are named, as there may be thousands."""

SOON_MILLISECONDS = 10 * MINUTE * 1000
"""Messages that become too old within this time count as well: brokers check every 5 minutes by default."""


class OwnLoss(msgspec.Struct, frozen=True):
    """Loss of one of Pulsar's own cursors of a topic; the holder has the entries."""

    topic: str
    holder: Holder


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """Maximum of the data that brokers delete at once for a change.

    Attributes:
        loss: Loss of all cursors.
        own: Losses of Pulsar's own cursors, the first `MAX_NAMED`.
    """

    loss: Loss
    own: tuple[OwnLoss, ...] = ()


NOTHING_TAKEN = Taken(loss=NOTHING_LOST)


def evicting_from(limit_bytes: int) -> float:
    """Backlog in bytes from which on a size quota may evict: nine tenths of its limit; infinite without a quota.

    Eviction leaves nine tenths, and a backlog near the limit may exceed it at the brokers' next check.

    Args:
        limit_bytes: The quota's limit; below 0: no quota.
    """
    return max(limit_bytes * 9 // 10, 1) if limit_bytes >= 0 else inf


def evicted(backlogs: Iterable[Backlog], limit_bytes: int) -> Taken:
    """Loss by a size quota that evicts: the whole backlogs over the limit, or near it.

    Args:
        backlogs: Backlogs of the quota's topics (at least all that exceed it), with the holders that may lose messages.
        limit_bytes: The quota's limit; below 0: no quota.
    """
    over = (each for each in backlogs if each.bytes >= evicting_from(limit_bytes))
    return _taken((each, each.holders, each.bytes) for each in over)


def expired(backlogs: Iterable[Backlog]) -> Taken:
    """Loss by a time to live, for backlogs that are, or may be, too old."""
    taken = ((each, tuple(holder for holder in each.holders if holder.kind in EXPIRING)) for each in backlogs)
    return _taken((each, holders, each.bytes) for each, holders in taken if holders)


def deleted(stored: Iterable[tuple[str, int]]) -> Taken:
    """Loss by a lower retention: bytes that are stored and consumed, by topic."""
    return Taken(loss=summed(TopicLoss(topic=topic, messages=0, bytes=size) for topic, size in stored if size))


def beyond(closed: Iterable[StoredLedger], kept: Retention, now_milliseconds: int, stored: int | None = None) -> int:
    """Maximum bytes of a topic that a retention does not keep if everything is consumed.

    The size limit deletes only the excess over the retention's size. The age of a ledger counts from its closing.

    Args:
        closed: Its ledgers with a known size.
        kept: The retention.
        now_milliseconds: The time, since the epoch.
        stored: Bytes of all of its ledgers; None: not known, as it is not loaded.
    """
    sizes = [(each.size or 0, now_milliseconds + SOON_MILLISECONDS - each.timestamp) for each in closed]
    every = sum(size for size, _ in sizes)
    if keeps_nothing(kept):
        return max(every, stored or 0)
    oldest = kept.minutes * MINUTE * 1000
    in_time = sum(size for size, age in sizes if age >= oldest) if kept.minutes > 0 else 0
    in_size = 0 if kept.megabytes < 0 else every if stored is None else stored - kept.megabytes * MIB
    return min(every, max(in_time, in_size, 0))


def keeps_nothing(kept: Retention) -> bool:
    """True for a retention that keeps no consumed messages."""
    return kept.minutes == 0 or kept.megabytes == 0


def summed(losses: Iterable[TopicLoss]) -> Loss:
    """The total over topics, with the worst topics by name."""
    ordered = sorted(losses, key=lambda each: (each.bytes is not None, -(each.bytes or 0), each.topic))
    return Loss(
        topics=tuple(ordered[:MAX_NAMED]),
        more=max(len(ordered) - MAX_NAMED, 0),
        messages=total(each.messages for each in ordered),
        bytes=total(each.bytes for each in ordered),
    )


def _taken(lost: Iterable[tuple[Backlog, tuple[Holder, ...], int]]) -> Taken:
    """The sum over topics, each given with the holders that lose messages and the deleted bytes."""
    every = list(lost)
    own = [OwnLoss(each.topic, holder) for each, holders, _ in every for holder in holders if holder.is_own]
    return Taken(
        loss=summed(
            TopicLoss(topic=each.topic, messages=_messages(each, holders), bytes=size, holder=each.held_by)
            for each, holders, size in every
        ),
        own=tuple(sorted(own, key=lambda each: (each.topic, each.holder.name))[:MAX_NAMED]),
    )


def _messages(backlog: Backlog, lost: Iterable[Holder]) -> int | None:
    """Unread messages that are lost, without deduplication's, which may be read; None: the holders are not known."""
    if not backlog.holders:
        return None
    return total(each.entries for each in lost if each.kind is not HolderKind.DEDUPLICATION)
