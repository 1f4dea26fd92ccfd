"""Backlogs of one setting's topics: their holders, sizes and ages, and the messages that would be deleted."""

from __future__ import annotations

import sys
from itertools import chain
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.apply.topic_looks import BUDGET_KEY
from pulsar_steward.facts.backlogs import (
    SOON_MILLISECONDS,
    Backlog,
    TopicAge,
    ages_of,
    backlog_of,
    beyond,
    deleted,
    evicted,
    evicting_from,
    expired,
    held_by_pulsar,
    keeps_nothing,
    unshown_holders,
)
from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.model.subscription import replicator_to
from pulsar_steward.model.units import counted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from pulsar_steward.apply.topic_looks import ShownTopic, TopicLooks
    from pulsar_steward.facts.backlogs import BacklogAges, PulsarsHold, Taken
    from pulsar_steward.model.setting import Retention
    from pulsar_steward.model.subscription import Holder
    from pulsar_steward.pulsar.owner import TopicDetail


class LiveBacklogs:
    """Backlogs of a setting's topics. Every method raises `AdminError` if they cannot be read.

    Args:
        looks: The topics.
    """

    def __init__(self, looks: TopicLooks) -> None:
        self._looks = looks
        self._holder = looks.change.holder

    # -- what brokers delete

    def taken_by_size(self, limit_bytes: int) -> Taken | Unknown:
        """Messages that a size quota with eviction deletes at once."""
        backlogs = self._of_all()
        if isinstance(backlogs, Unknown):
            return backlogs
        least = evicting_from(limit_bytes)
        over = [each for each in backlogs if each.bytes >= least]
        if len(over) > self._looks.budget:
            return self._looks.too_many(f"{counted(len(over), 'topic')} of {self._holder} are over it")
        return evicted((self._evictable(each, least) for each in over), limit_bytes)

    def taken_by_time_to_live(self, seconds: int) -> Taken | Unknown:
        """Messages that a time to live deletes at once: a topic's whole backlog if a message is, or may be, older."""
        if unknown := self._unread_not_known():
            return unknown
        details = self._looks.details(ages=True)
        if isinstance(details, Unknown):
            backlogs = self._of_loaded()
            return backlogs if isinstance(backlogs, Unknown) else expired(backlogs)
        return expired(self._older(name, each, seconds) for name, each in details.items())

    def deleted_beyond(self, kept: Retention) -> Taken | Unknown:
        """Data that a retention does not keep, in closed ledgers that are, or may be, consumed."""
        apart, consumed = self._apart_beyond(kept), self._consumed()
        if isinstance(apart, Unknown):
            return apart
        if isinstance(consumed, Unknown):
            return consumed
        # Topics beyond the budget count wholly: the age of their ledgers is not read.
        asked, rest = consumed[: self._looks.budget], consumed[self._looks.budget :]
        closed = [(name, min(size, self._closed_beyond(name, kept))) for size, name in asked]
        return deleted([*apart, *closed, *((name, size) for size, name in rest)])

    # -- what there is

    def largest(self) -> Backlog | Unknown:
        """The largest backlog of a topic."""
        backlogs = self._of_all()
        if isinstance(backlogs, Unknown):
            return backlogs
        none = Backlog(topic=self._holder, bytes=0)
        return max(backlogs, key=lambda each: (each.bytes, each.topic), default=none)

    def held_by_pulsar(self) -> PulsarsHold | Unknown:
        """What Pulsar's own cursors hold, and the largest compaction threshold of a topic.

        Only topics with a cursor of compaction are asked for a threshold of their own: enabling it makes one.
        """
        backlogs, compaction = self._of_all(), self._looks.compaction_bytes()
        if isinstance(backlogs, Unknown):
            return backlogs
        return compaction if isinstance(compaction, Unknown) else held_by_pulsar(backlogs, compaction)

    def ages(self) -> BacklogAges | Unknown:
        """Ages of the backlogs by their owners' clocks, for at most as many topics as the budget permits."""
        waiting = self._unread_not_known() or self._waiting()
        if isinstance(waiting, Unknown):
            return waiting
        details, left = waiting
        told = [self._age(name, each) for name, each in details.items()]
        ages = [each for each in told if each is not None]
        unanswered = len(told) - len(ages)
        why = (
            f"{unanswered:,} were asked, and their brokers do not tell"
            if unanswered
            else f"no more than {self._looks.budget:,} are asked ({BUDGET_KEY})"
        )
        return ages_of(ages, waiting=len(told) + left, unknown=unanswered + left, why_unknown=why)

    def _of_all(self) -> list[Backlog] | Unknown:
        """Backlogs of all topics: of the loaded ones, if the others have no cursors; else unknown."""
        return self._unread_not_known() or self._of_loaded()

    def _unread_not_known(self) -> Unknown | None:
        """Unknown if a topic with a cursor is not loaded, as no broker reports its backlog; None: there is none."""
        found = self._looks.not_loaded()
        if isinstance(found, Unknown):
            return found
        held = [name for name, each in found.items() if each.cursors]
        return self._last_ledger_not_known(held) if held else None

    # -- loaded topics

    def _of_loaded(self) -> list[Backlog] | Unknown:
        """Backlogs of loaded topics."""
        details = self._looks.details()
        if not isinstance(details, Unknown):
            return [_backlog(name, each) for name, each in details.items()]
        statistics = self._looks.statistics()
        if isinstance(statistics, Unknown):
            return statistics
        new = (_backlog(name, each) for name, each in self._looks.of_new().items())
        shown = (
            backlog_of(name, each.backlog_size, each.subscriptions, each.replicators)
            for name, each in statistics.items()
        )
        return [*shown, *new]

    def _evictable(self, backlog: Backlog, least_bytes: float) -> Backlog:
        """The backlog with the cursors that are `least_bytes` or more behind: brokers evict from no others."""
        name, details = backlog.topic, self._looks.details()
        asked = self._looks.asked([name]) if isinstance(details, Unknown) else details
        if name not in asked:
            return backlog
        internals = self._looks.internals(name)
        whole = _backlog(name, asked[name], unshown_holders(internals, _cursors(asked[name])))
        behind = {cursor: internals.bytes_behind(cursor) for cursor in internals.cursors}
        safe = {cursor for cursor, size in behind.items() if size is not None and size < least_bytes}
        return msgspec.structs.replace(whole, holders=tuple(each for each in whole.holders if each.name not in safe))

    def _waiting(self) -> tuple[dict[str, TopicDetail], int] | Unknown:
        """Loaded topics with a backlog, with ages, and the number of such topics beyond the budget."""
        details = self._looks.details(ages=True)
        if not isinstance(details, Unknown):
            return {name: each for name, each in details.items() if _waits(each)}, 0
        backlogs, most = self._of_loaded(), self._looks.budget
        if isinstance(backlogs, Unknown):
            return backlogs
        waiting = sorted(each.topic for each in backlogs if each.holders)
        return self._looks.asked(waiting[:most], ages=True), max(len(waiting) - most, 0)

    def _older(self, name: str, detail: TopicDetail, seconds: int) -> Backlog:
        """The backlog of a topic, with the holders of messages that are, may be, or soon will be `seconds` old."""
        backlog = _backlog(name, detail, every=True)
        since = self._since(name, detail, [each.name for each in backlog.holders])
        limit = self._looks.milliseconds(name) + SOON_MILLISECONDS - seconds * 1000
        old = tuple(each for each in backlog.holders if since[each.name] <= limit)
        return Backlog(topic=name, bytes=backlog.bytes, holders=old)

    def _age(self, name: str, detail: TopicDetail) -> TopicAge | None:
        """Age of a topic's oldest message that a durable cursor has not consumed; None: not reported."""
        durable = {cursor for cursor, each in detail.subscriptions.items() if each.msg_backlog > 0 and each.is_durable}
        if durable - _published(detail).keys():
            return None
        waiting = [replicator_to(to) for to, each in detail.replication.items() if each.replication_backlog > 0]
        hidden = [each.name for each in unshown_holders(self._looks.internals(name), _cursors(detail))]
        since = self._since(name, detail, [*durable, *waiting, *hidden])
        if not since:
            return TopicAge(0, name)
        cursor = min(since, key=lambda each: (since[each], each))
        seconds = max(self._looks.milliseconds(name) - since[cursor], 0) // 1000
        return TopicAge(seconds, name, holder="" if cursor in durable else cursor)

    def _since(self, name: str, detail: TopicDetail, cursors: Collection[str]) -> dict[str, int]:
        """Age limit of each cursor's backlog: the time of its oldest message, in ms since the epoch; 0: not known.

        Brokers use the earlier of two times: when the message was published, by the producer's clock, and when its
        ledger was closed. They report the publish time for subscriptions only. For other cursors it is assumed to be
        the end of the ledger before, which is never later.
        """
        if not cursors:
            return {}
        internals, stored, published = self._looks.internals(name), self._looks.stored(name), _published(detail)
        since: dict[str, int] = {}
        for each in cursors:
            ledger = internals.first_unread_ledger(each)
            if ledger is None:
                since[each] = 0
                continue
            told = published.get(each, 0) if each in detail.subscriptions else stored.published_since(ledger) or 0
            closed = stored.closed_since(ledger)
            since[each] = told if closed is None else min(told, closed)
        return since

    def _consumed(self) -> list[tuple[int, str]] | Unknown:
        """Bytes that every durable cursor has passed, by loaded topic, largest first."""
        details = self._looks.details()
        sizes: dict[str, TopicDetail | ShownTopic]
        if isinstance(details, Unknown):
            statistics = self._looks.statistics()
            if isinstance(statistics, Unknown):
                return statistics
            sizes = {**statistics, **self._looks.of_new()}
        else:
            sizes = {**details}
        consumed = ((max(each.storage_size - each.backlog_size, 0), name) for name, each in sizes.items())
        return sorted(consumed, reverse=True)

    def _closed_beyond(self, name: str, kept: Retention) -> int:
        """Bytes of a loaded topic that a retention would not keep if everything were consumed."""
        details, now = self._looks.details(), int(self._looks.now.timestamp() * 1000)
        stored = None if isinstance(details, Unknown) else details[name].storage_size
        found = self._looks.stored(name)
        # Without a list of ledgers, all stored data may be deleted.
        return beyond(found.closed, kept, now, stored) if found.ledgers else sys.maxsize

    # -- topics that are not loaded

    def _apart_beyond(self, kept: Retention) -> list[tuple[str, int]] | Unknown:
        """Bytes that a retention does not keep, by topic that is not loaded."""
        found, now = self._looks.not_loaded(), int(self._looks.now.timestamp() * 1000)
        if isinstance(found, Unknown):
            return found
        open_ones = [name for name, each in found.items() if len(each.ledgers) > len(each.closed)]
        if open_ones and keeps_nothing(kept):
            return self._last_ledger_not_known(open_ones)
        return [(name, beyond(each.consumed, kept, now)) for name, each in found.items()]

    def _last_ledger_not_known(self, names: Collection[str]) -> Unknown:
        return Unknown(
            f"{counted(len(names), 'topic of', 'topics of')} {self._holder} {'is' if len(names) == 1 else 'are'} not"
            f" loaded ({min(names)}), so nothing tells how much is stored: run `pulsar-admin topics stats` on each,"
            " which loads it"
        )


def _backlog(name: str, detail: TopicDetail, more: Iterable[Holder] = (), *, every: bool = False) -> Backlog:
    """A topic's backlog from its own statistics: of its durable cursors, or of all cursors."""
    subscriptions = {
        cursor: each.msg_backlog for cursor, each in detail.subscriptions.items() if each.is_durable or every
    }
    replicators = {to: each.replication_backlog for to, each in detail.replication.items()}
    return backlog_of(name, detail.backlog_size, subscriptions, replicators, *more)


def _published(detail: TopicDetail) -> dict[str, int]:
    """Publish time of the oldest message in each subscription's backlog, in ms since the epoch, if it is reported."""
    times = {cursor: each.earliest_msg_publish_time_in_backlog for cursor, each in detail.subscriptions.items()}
    return {cursor: at for cursor, at in times.items() if at > 0}


def _cursors(detail: TopicDetail) -> Iterator[str]:
    """Names of the cursors in a topic's own statistics."""
    return chain(detail.subscriptions, map(replicator_to, detail.replication))


def _waits(detail: TopicDetail) -> bool:
    behind = (each.msg_backlog > 0 and each.is_durable for each in detail.subscriptions.values())
    return detail.backlog_size > 0 or any(behind)
