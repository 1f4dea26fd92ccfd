"""Backlogs of topics, their holders and ages; used at planning and before calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.model.holders import Holder, replicator_to, slowest, unexplained
from pulsar_steward.model.setting import Retention

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pulsar_steward.admin.owner import InternalDetail
    from pulsar_steward.model.setting import Setting


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
