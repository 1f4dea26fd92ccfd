"""Statistics of suspected topics (*suspects*) as Arrow batches; the broker-wide document lacks them.

A request about a topic would load its bundle if it has no owner. So before its topics are read, the owner is asked
whether it still owns the bundle. Redirects are not followed, and moved topics are left out: reading changes nothing.
"""

from __future__ import annotations

import dataclasses
import logging
import time
from heapq import nsmallest
from itertools import groupby
from typing import TYPE_CHECKING, Any

import msgspec

from pulsar_steward.collect.arrow import OWN_POLICIES
from pulsar_steward.collect.bundles import GIVING_UP
from pulsar_steward.collect.rows import UNFIT, Rows
from pulsar_steward.errors import AdminError
from pulsar_steward.model.subscription import DEDUPLICATION
from pulsar_steward.model.tables import DRILLED
from pulsar_steward.pulsar.own_settings import own_settings_in
from pulsar_steward.pulsar.owner import OwnerReader, cursors_in
from pulsar_steward.pulsar.reader import Reader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pulsar_steward.collect.arrow import TableBatch
    from pulsar_steward.policy.schema import CollectPolicy
    from pulsar_steward.pulsar.own_settings import StoredTopic
    from pulsar_steward.pulsar.owner import InternalDetail, SubscriptionDetail, TopicDetail
    from pulsar_steward.pulsar.settings import AdminSettings


class TimeIsUp(Exception):
    """The time for requests is over."""


class CallPace:
    """Limits calls to a rate, one after the other, until the time is up.

    Args:
        calls_per_second: Maximum rate.
        seconds: Total time, from now on.
        clock: Monotonic clock, in seconds.
        sleep: Waits for so many seconds.
    """

    def __init__(
        self,
        calls_per_second: int,
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._between = 1 / calls_per_second
        self._clock = clock
        self._sleep = sleep
        self._next = clock()
        self._end = self._next + seconds
        self._seconds = seconds

    def wait(self) -> None:
        """Returns when the next call is allowed.

        Raises:
            TimeIsUp: If no more calls are allowed.
        """
        now = self._clock()
        if max(now, self._next) >= self._end:
            raise TimeIsUp(f"the {self._seconds:g} seconds that the policy leaves for it are over")
        if now < self._next:
            self._sleep(self._next - now)
        self._next = max(now, self._next) + self._between


log = logging.getLogger(__name__)

CALL_SECONDS = 10
"""Time limit of one call in seconds: a stuck topic, probably one of the suspects, must not delay the others."""


class DetailRequest(msgspec.Struct, frozen=True, order=True):
    """One request to a bundle's owner.

    Attributes:
        bundle: ``tenant/ns/range``; the broker has to own it.
        topic: Full name; for policies, the name of the partitioned topic.
        policies: True: read the topic's own policies; False: its statistics.
        internals: True: read its ledgers and cursors too, with their creation times.
        rates: Names of the topic's own rates that are read with its policies.
    """

    bundle: str
    topic: str
    policies: bool = False
    internals: bool = False
    rates: tuple[str, ...] = ()


class DrillTask(msgspec.Struct, frozen=True):
    """The suspects of one broker."""

    broker: str
    pulsar_cluster: str
    wanted: tuple[DetailRequest, ...]


def drill(settings: AdminSettings, task: DrillTask, policy: CollectPolicy) -> Iterator[TableBatch]:
    """Reads a broker's suspects, one after the other, and yields rows of `DRILL_TABLES`.

    Unreadable topics are logged and left out; once a broker does not respond, it is not read any further.
    """
    limits = settings.limits.model_copy(
        update={
            "read_timeout_seconds": min(settings.limits.read_timeout_seconds, CALL_SECONDS),
            "total_timeout_seconds": min(settings.limits.total_timeout_seconds, CALL_SECONDS),
            "read_attempts": 1,
        }
    )
    brief = dataclasses.replace(settings, limits=limits)
    with Reader(brief, broker=task.broker) as reader, OwnerReader(brief, task.broker) as owner:
        pace = CallPace(policy.drill_calls_per_second, policy.drill_seconds)
        drilling = _Drilling(task, reader, owner, pace, policy.clients_per_subscription)
        try:
            drilling.all()
        except (TimeIsUp, *GIVING_UP) as error:
            log.warning("suspects of %s are left out from here on: %s", task.broker, error)
        yield from drilling.rest()


class _Drilling:
    """Reads the suspects of one broker and collects their rows."""

    def __init__(
        self, task: DrillTask, reader: Reader, owner: OwnerReader, pace: CallPace, most_consumers: int
    ) -> None:
        self._task = task
        self._reader = reader
        self._owner = owner
        self._pace = pace
        self._most_consumers = most_consumers
        self._details = Rows(DRILLED)
        self._policies = Rows(OWN_POLICIES)

    def all(self) -> None:
        """Makes all requests, bundle by bundle, for bundles that the broker still owns."""
        for bundle, wanted in groupby(sorted(self._task.wanted), key=lambda each: each.bundle):
            self._pace.wait()
            if self._owns(bundle):
                for each in wanted:
                    self._ask(each)

    def rest(self) -> Iterator[TableBatch]:
        """Yields the rows of all responses."""
        yield from self._details.rest()
        yield from self._policies.rest()

    def _owns(self, bundle: str) -> bool:
        """True if the broker still owns a bundle; False if unknown, as its topics must not be read then."""
        try:
            owns = bundle in self._reader.owned_bundles(self._task.pulsar_cluster, self._task.broker)
        except GIVING_UP:
            raise
        except (AdminError, *UNFIT) as error:
            log.warning("suspects in %s are left out: %s", bundle, error)
            return False
        if not owns:
            log.info("%s is no longer on %s: its suspects are left out", bundle, self._task.broker)
        return owns

    def _ask(self, wanted: DetailRequest) -> None:
        try:
            self._add_policies(wanted) if wanted.policies else self._add_details(wanted)
        except GIVING_UP:
            raise
        except (AdminError, *UNFIT) as error:
            log.warning("a suspect is left out: %s", error)

    def _add_policies(self, wanted: DetailRequest) -> None:
        topic = wanted.topic
        self._pace.wait()
        quotas = self._owner.own_quotas(topic)
        self._pace.wait()
        retention = self._owner.own_retention(topic)
        own_settings_in(_json(quotas), _json(retention))  # decoded as in planners, so that errors show here
        row = (topic, _json(quotas), _json(retention), self._rates(wanted))
        self._policies.require_fit(*row)
        self._policies.add(*([value] for value in row))

    def _rates(self, wanted: DetailRequest) -> str | None:
        """The topic's own rates, a JSON object; None: they were not asked for, or not told."""
        found: dict[str, Any] = {}
        try:
            for name in wanted.rates:
                self._pace.wait()
                found |= self._owner.own_rates(wanted.topic, [name])
        except GIVING_UP:
            raise
        except (AdminError, *UNFIT) as error:
            log.warning("a suspect's own rates are left out: %s", error)
            return None
        return _json(found) if wanted.rates else None

    def _add_details(self, wanted: DetailRequest) -> None:
        self._pace.wait()
        detail = self._owner.statistics(wanted.topic)
        internals = self._internals(wanted.topic) if wanted.internals else None
        told = rows_of(wanted, detail, internals, self._most_consumers)
        rows = [[row.get(name) for name in DRILLED.names] for row in told]
        for row in rows:
            self._details.require_fit(*row)
        for row in rows:
            self._details.add(*([value] for value in row))

    def _internals(self, topic: str) -> tuple[InternalDetail, StoredTopic] | None:
        try:
            self._pace.wait()
            internals = self._owner.internals(topic)
            self._pace.wait()
            return internals, self._owner.stored(topic)
        except GIVING_UP:
            raise
        except (AdminError, *UNFIT) as error:
            log.warning("a suspect's ledgers are left out: %s", error)
            return None


def rows_of(
    wanted: DetailRequest,
    detail: TopicDetail,
    inside: tuple[InternalDetail, StoredTopic] | None,
    most_consumers: int,
) -> Iterator[dict[str, Any]]:
    """Rows of a topic in `drilled`, by column: one per subscription, or one for the topic if it has none."""
    internals, cursors = (inside[0], cursors_in(*inside)) if inside else (None, {})
    topic = {
        "topic": wanted.topic,
        "namespace": wanted.bundle.rpartition("/")[0],
        "oldest_backlog_age_seconds": detail.oldest_backlog_message_age_seconds,
        "quota_limit_bytes": detail.backlog_quota_limit_size,
        "quota_limit_seconds": detail.backlog_quota_limit_time,
        "slowest_subscription": detail.oldest_backlog_message_subscription_name,
        "ledgers": None if internals is None else len(internals.ledgers),
        "offloaded_bytes": detail.offloaded_storage_size,
        "offloaded_milliseconds": detail.last_offload_success_time_stamp,
        "offload_failed_milliseconds": detail.last_offload_failure_time_stamp,
        "publishing_limited": detail.publish_rate_limited_times,
        "compacted_milliseconds": detail.compaction.last_compaction_succeed_timestamp,
        "compaction_failed_milliseconds": detail.compaction.last_compaction_failed_timestamp,
        "oldest_ledger_milliseconds": _oldest(inside[1]) if inside else None,
        "deduplication_entries": internals and internals.entries_behind(DEDUPLICATION),
    }
    for name, each in detail.subscriptions.items():
        cursor = internals and internals.cursors.get(name)
        yield topic | {
            "subscription": name,
            "dispatching_limited": each.times_limited,
            "expired_messages": each.total_msg_expired,
            "delayed_messages": each.msg_delayed,
            "delayed_index_bytes": each.delayed_message_index_size_in_bytes,
            "ack_state_bytes": each.non_contiguous_deleted_messages_ranges_serialized_size,
            "last_consumed_milliseconds": each.last_consumed_timestamp,
            "last_acked_milliseconds": each.last_acked_timestamp,
            "holders_json": _json(_holders(each, most_consumers)),
            "consumers_waiting": len(each.consumers_after_mark_delete_position or ()),
            "entries_behind": internals and internals.entries_behind(name),
            "unread_closed_milliseconds": _unread_closed(*inside, name) if inside else None,
            "cursor_properties_json": _json(sorted({*cursor.properties, *cursor.cursor_properties}))
            if cursor
            else None,
            "cursor_json": _json(cursors[name]) if name in cursors else None,
            "replicated": each.is_replicated,
        }
    if not detail.subscriptions:
        yield topic


def _oldest(stored: StoredTopic) -> int | None:
    """When the oldest ledger was closed; None: only one is there, and it is open."""
    return min((each.timestamp for each in stored.closed), default=None)


def _unread_closed(internals: InternalDetail, stored: StoredTopic, cursor: str) -> int | None:
    """When the ledger of a cursor's first unread entry was closed; None: it is open, or not known."""
    unread = internals.first_unread_ledger(cursor)
    return next((each.timestamp for each in stored.closed if each.ledger_id == unread), None)


def _holders(subscription: SubscriptionDetail, most: int) -> list[dict[str, object]]:
    """The consumers that hold messages: the ones that others wait for first, then the ones with most messages."""
    holding = [each for each in subscription.consumers if each.unacked_messages > 0]
    worst = nsmallest(
        most, holding, key=lambda each: (-each.draining_hashes_count, -each.unacked_messages, each.address or "")
    )
    return [
        {
            "consumer": each.consumer_name or "",
            "address": (each.address or "").removeprefix("/"),
            "connected_since": each.connected_since or "",
            "unacked_messages": each.unacked_messages,
            "messages_per_entry": each.avg_messages_per_entry,
            "acked_milliseconds": each.last_acked_timestamp,
            "consumed_milliseconds": each.last_consumed_timestamp,
            "draining_hashes": each.draining_hashes_count,
            "draining_messages": each.draining_hashes_unacked_messages,
        }
        for each in worst
    ]


def _json(value: object) -> str:
    return msgspec.json.encode(value, order="sorted").decode()
