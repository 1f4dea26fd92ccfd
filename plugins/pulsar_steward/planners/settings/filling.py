"""Who would fill a quota: the cursors that hold the largest backlogs, and those of them that nobody reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.checks.clients.consumers import subject_of
from pulsar_steward.checks.clients.subscription_abandoned import CHECK as SUBSCRIPTION_ABANDONED
from pulsar_steward.facts.backlogs import Backlog
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy
from pulsar_steward.model.subscription import HolderKind, slowest
from pulsar_steward.model.units import counted, epoch_in_words, named

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pulsar_steward.model.finding import Finding
    from pulsar_steward.model.setting import Setting
    from pulsar_steward.snapshots.read import Snapshot

MOST_NAMED = 3
"""Topics of which it is said who fills their quota, those with the largest backlogs."""


class Filling(msgspec.Struct, frozen=True, kw_only=True):
    """Who fills the quotas of some topics.

    Attributes:
        backlogs: The largest backlogs, falling, with their holders: only the one that is furthest behind, where its
            broker tells it; at most `MOST_NAMED`.
        unread: Their subscriptions without consumers by subject, with the last time that a message of them was sent or
            acknowledged, in milliseconds since the epoch; 0: not known.
        abandoned: Subjects of the topics' abandoned subscriptions, sorted.
    """

    backlogs: tuple[Backlog, ...] = ()
    unread: dict[str, int] = {}
    abandoned: tuple[str, ...] = ()

    def in_words(self, quota: Setting | None) -> str:
        """Further clauses about a proposed quota; empty if nothing is known to fill it."""
        holders = [words for each in self.backlogs if (words := self._holder(each))]
        said = f"; the largest backlogs wait for {', and for '.join(holders)}" if holders else ""
        if not self.abandoned or not isinstance(quota, BacklogQuota):
            return said
        evicts = quota.policy is QuotaPolicy.EVICT
        harm = "its oldest messages would be deleted unread" if evicts else "producers would be stopped"
        return (
            f"{said}; nobody reads {named(self.abandoned)} any more: such a backlog would fill this quota, and then"
            f" {harm}. Before you approve, ask the owners whether they still need what waits there"
        )

    def _holder(self, backlog: Backlog) -> str:
        waiting = [each for each in backlog.holders if each.entries != 0 and each.kind is not HolderKind.READER]
        holder = slowest(waiting)
        if holder is None:
            return ""
        # A quota counts from the oldest message that is not acknowledged, whatever is acknowledged behind it.
        apart = "" if len(waiting) == 1 else " (most entries; who is furthest behind is not told)"
        many = "" if holder.entries is None else f" with {counted(holder.entries, 'entry', 'entries')}"
        subject = subject_of({"topic": backlog.topic, "subscription": holder.name})
        moved = None if holder.is_own else self.unread.get(subject)
        unread = "" if moved is None else ", which has no consumer"
        if moved:
            unread += f", and got and acknowledged nothing since {epoch_in_words(moved)}"
        return f"{holder.words} of {backlog.topic}{many}{apart}{unread}"


_UNREAD = """
    select s.topic, s.subscription,
        coalesce(max(greatest(last_consumed_milliseconds, last_acked_milliseconds)), 0) as moved_milliseconds
    from subscriptions s left join drilled d on d.topic = s.topic and d.subscription = s.subscription
    where s.topic in (select unnest($topics)) and s.consumers = 0
    group by all"""

_BEHIND = """
    select topic, max(slowest_subscription) as subscription from drilled
    where topic in (select unnest($topics)) and slowest_subscription is not null group by topic"""


class _Behind(msgspec.Struct, frozen=True):
    topic: str
    subscription: str


class _Unread(msgspec.Struct, frozen=True):
    topic: str
    subscription: str
    moved_milliseconds: int


def fillings(
    snapshot: Snapshot, backlogs: Mapping[str, Sequence[Backlog]], findings: Iterable[Finding]
) -> dict[str, Filling]:
    """Who fills the quotas of these topics, by the names under which their largest backlogs are given.

    Args:
        snapshot: The snapshot.
        backlogs: The backlogs of each namespace, or of each topic with partitions, falling.
        findings: The snapshot's findings.

    Raises:
        SnapshotError: If a table cannot be read.
    """
    largest = {name: tuple(each[:MOST_NAMED]) for name, each in backlogs.items()}
    topics = sorted({each.topic for named in largest.values() for each in named})
    unread = {
        subject_of({"topic": row.topic, "subscription": row.subscription}): row.moved_milliseconds
        for row in (snapshot.select(_UNREAD, _Unread, topics=topics) if topics else ())
    }
    behind = {
        row.topic: row.subscription for row in (snapshot.select(_BEHIND, _Behind, topics=topics) if topics else ())
    }
    abandoned = sorted(
        each.subject
        for each in findings
        if each.check_id == SUBSCRIPTION_ABANDONED.check_id and each.severity.rank >= Severity.WARNING.rank
    )
    return {
        name: Filling(
            backlogs=tuple(_furthest(backlog, behind.get(backlog.topic)) for backlog in each),
            unread={
                subject: moved
                for subject, moved in unread.items()
                if any(subject.startswith(f"{backlog.topic} ") for backlog in each)
            },
            abandoned=tuple(
                subject
                for subject in abandoned
                if any(subject.startswith(f"{backlog.topic} ") for backlog in backlogs[name])
            ),
        )
        for name, each in largest.items()
    }


def _furthest(backlog: Backlog, behind: str | None) -> Backlog:
    """The backlog with its slowest cursor only; with all of them, if that one is not known, or has read all."""
    told = tuple(each for each in backlog.holders if each.name == behind and each.entries != 0)
    return msgspec.structs.replace(backlog, holders=told or backlog.holders)
