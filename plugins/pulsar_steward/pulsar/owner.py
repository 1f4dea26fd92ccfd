"""Reads that may be sent only to a topic's owner: other brokers would load a bundle that has no owner.

So the caller has to read right before, from the broker itself, that it owns the topic's bundle
(`Reader.owned_bundles`). A redirect is never followed: it means that the bundle was moved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from pulsar_steward.errors import NotFound
from pulsar_steward.model.setting import SettingName, TimeToLive
from pulsar_steward.model.subscription import Cursor
from pulsar_steward.pulsar import paths
from pulsar_steward.pulsar.body import Closing
from pulsar_steward.pulsar.figures import Amount, Figure, Long
from pulsar_steward.pulsar.own_settings import (
    DelayedDeliveryDocument,
    PersistenceDocument,
    QuotaDocument,
    RetentionDocument,
    StoredTopic,
    quotas_in,
)
from pulsar_steward.pulsar.transport import Transport

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pulsar_steward.model.setting import Setting
    from pulsar_steward.pulsar.settings import AdminSettings

T = TypeVar("T")


class ReplicatorDetail(msgspec.Struct, frozen=True, rename="camel"):
    """Replication to one remote cluster in a topic's ``stats``."""

    replication_backlog: Amount


class CompactionDetail(msgspec.Struct, frozen=True, rename="camel"):
    """Compaction in a topic's ``stats``, in ms since the epoch; 0: never."""

    last_compaction_succeed_timestamp: Figure = 0
    last_compaction_failed_timestamp: Figure = 0


class ConsumerDetail(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """One consumer in a topic's ``stats``; times in ms since the epoch, 0: never since it connected.

    Draining hashes are told from 4.0 on, of Key_Shared subscriptions: keys that belong to another consumer by now. It
    gets none of their messages before this one has acknowledged what it holds of them.
    """

    consumer_name: str | None = None
    address: str | None = None
    connected_since: str | None = None
    unacked_messages: Figure = 0
    avg_messages_per_entry: Figure = 0
    last_acked_timestamp: Figure = 0
    last_consumed_timestamp: Figure = 0
    draining_hashes_count: Figure = 0
    draining_hashes_unacked_messages: Figure = 0


class SubscriptionDetail(msgspec.Struct, frozen=True, rename="camel"):
    """One subscription in a topic's ``stats``; None: the broker does not report a figure.

    Here and below, fields without a default are reported by every broker: a document without them, or with a negative
    value, is rejected instead of counting as 0.
    """

    msg_backlog: Amount
    is_replicated: bool
    is_durable: bool
    consumers: list[ConsumerDetail]
    last_consumed_timestamp: Figure
    last_acked_timestamp: Figure
    earliest_msg_publish_time_in_backlog: Figure = 0
    msg_delayed: Figure | None = None
    delayed_message_index_size_in_bytes: Figure | None = None
    non_contiguous_deleted_messages_ranges_serialized_size: Figure | None = None
    last_mark_delete_advanced_timestamp: Figure | None = None
    dispatch_throttled_msg_events_by_subscription_limit: Figure = 0
    dispatch_throttled_bytes_events_by_subscription_limit: Figure = 0
    dispatch_throttled_msg_events_by_topic_limit: Figure = 0
    dispatch_throttled_bytes_events_by_topic_limit: Figure = 0
    dispatch_throttled_msg_events_by_broker_limit: Figure = 0
    dispatch_throttled_bytes_events_by_broker_limit: Figure = 0
    consumers_after_mark_delete_position: dict[str, msgspec.Raw] | None = None
    total_msg_expired: Figure = 0

    @property
    def times_limited(self) -> int:
        """How often a dispatch rate held something back, since its topic was loaded; told from 4.0 on."""
        return (
            self.dispatch_throttled_msg_events_by_subscription_limit
            + self.dispatch_throttled_bytes_events_by_subscription_limit
            + self.dispatch_throttled_msg_events_by_topic_limit
            + self.dispatch_throttled_bytes_events_by_topic_limit
            + self.dispatch_throttled_msg_events_by_broker_limit
            + self.dispatch_throttled_bytes_events_by_broker_limit
        )


class TopicDetail(msgspec.Struct, frozen=True, rename="camel"):
    """A topic's ``stats``; brokers write -1 for "not known" and "no limit".

    None: brokers of that version do not report the figure. 2.10 reports neither limits nor the age.
    """

    publishers: list[msgspec.Raw]
    subscriptions: dict[str, SubscriptionDetail]
    replication: dict[str, ReplicatorDetail]
    storage_size: Amount
    backlog_size: Amount
    oldest_backlog_message_age_seconds: Figure | None = None
    oldest_backlog_message_subscription_name: str | None = None
    offloaded_storage_size: Figure | None = None
    last_offload_success_time_stamp: Figure | None = None
    last_offload_failure_time_stamp: Figure | None = None
    backlog_quota_limit_size: Long | None = None
    backlog_quota_limit_time: Long | None = None
    publish_rate_limited_times: Figure = 0
    compaction: CompactionDetail = CompactionDetail()


class CursorDetail(msgspec.Struct, frozen=True, rename="camel"):
    """One cursor in a topic's ``internalStats``; only the names of its properties are used."""

    mark_delete_position: str
    cursor_ledger: Long
    cursor_ledger_last_entry: Long
    properties: dict[str, msgspec.Raw] = {}
    cursor_properties: dict[str, msgspec.Raw] = {}


class LedgerDetail(msgspec.Struct, frozen=True, rename="camel"):
    """One ledger in a topic's ``internalStats``; the entries of the current ledger are not counted here."""

    ledger_id: Long
    entries: Amount
    size: Amount


class InternalDetail(msgspec.Struct, frozen=True, rename="camel"):
    """A topic's ``internalStats``; the last ledger is the current one."""

    ledgers: list[LedgerDetail]
    current_ledger_entries: Amount
    current_ledger_size: Amount
    cursors: dict[str, CursorDetail]

    def entries_behind(self, cursor: str) -> int | None:
        """Entries after a cursor's mark-delete position; None: it cannot be read."""
        at = self.position(cursor)
        if at is None:
            return None
        ledger, entry = at
        held = self._held()
        consumed = min(entry + 1, held.get(ledger, (0, 0))[0])
        return sum(entries for each, (entries, _) in held.items() if each >= ledger) - consumed

    def bytes_behind(self, cursor: str) -> int | None:
        """Bytes after a cursor's mark-delete position, as quotas count them; None: it cannot be read.

        In the ledger of this position, brokers count consumed entries with the ledger's mean entry size.
        """
        at = self.position(cursor)
        if at is None:
            return None
        ledger, entry = at
        held = self._held()
        entries, size = held.get(ledger, (0, 0))
        consumed = size // entries * min(max(entry, 0), entries) if entries else 0
        return sum(size for each, (_, size) in held.items() if each >= ledger) - consumed

    def first_unread_ledger(self, cursor: str) -> int | None:
        """Ledger of the first entry that a cursor has not consumed; None: it cannot be read."""
        at = self.position(cursor)
        if at is None:
            return None
        ledger, entry = at
        later = [each.ledger_id for each in self.ledgers if each.ledger_id > ledger]
        whole = any(each.ledger_id == ledger and entry + 1 >= each.entries for each in self.ledgers)
        return later[0] if whole and later else ledger

    def _held(self) -> dict[int, tuple[int, int]]:
        """Entries and bytes of each ledger."""
        held = {each.ledger_id: (each.entries, each.size) for each in self.ledgers}
        if self.ledgers:
            held[self.ledgers[-1].ledger_id] = self.current_ledger_entries, self.current_ledger_size
        return held

    def position(self, cursor: str) -> tuple[int, int] | None:
        """Ledger and entry of a cursor's mark-delete position; None: it cannot be read, or there is no such cursor."""
        if cursor not in self.cursors:
            return None
        ledger, _, entry = self.cursors[cursor].mark_delete_position.partition(":")
        try:
            return int(ledger), int(entry)
        except ValueError:
            return None


def cursors_in(internals: InternalDetail, stored: StoredTopic) -> dict[str, Cursor]:
    """Identities of a topic's cursors by name; cursors without a known time of creation are left out."""
    return {
        name: Cursor(
            created=created,
            position=each.mark_delete_position,
            written=f"{each.cursor_ledger}:{each.cursor_ledger_last_entry}",
        )
        for name, each in internals.cursors.items()
        if each.mark_delete_position and name in stored.cursors and (created := stored.cursors[name].created)
    }


class _State(msgspec.Struct, frozen=True):
    """A coordinator's ``coordinatorStats``."""

    state: str


class OwnerReader(Closing):
    """Reads topics from the broker that owns them; has no method that writes, and a transport that refuses to.

    Every method raises `pulsar_steward.errors.AdminError` if this broker itself does not respond.
    """

    def __init__(self, settings: AdminSettings, broker: str) -> None:
        self._transport = Transport.of(settings, frozenset({"GET"}), broker)

    def close(self) -> None:
        """Closes the connections."""
        self._transport.close()

    def statistics(self, topic: str, *, ages: bool = False) -> TopicDetail:
        """A topic's current ``stats``, without figures for which a broker would take locks or read ledgers.

        Args:
            topic: Full name.
            ages: True to include the publish time of each subscription's oldest unconsumed message. For this, the
                broker reads one entry per subscription. Peeking instead would send that entry, and would recreate a
                subscription that was just deleted (docs/pulsar-behaviour.md).
        """
        query = {"getPreciseBacklog": "false", "subscriptionBacklogSize": "false"}
        if ages:
            query["getEarliestTimeInBacklog"] = "true"
        return self._transport.get_here(f"{paths.topic(topic)}/stats", query).decoded(TopicDetail)

    def coordinator_state(self, number: int) -> str | None:
        """State of a transaction coordinator of this broker, such as ``Ready``; None: no client uses it yet."""
        try:
            query = {"coordinatorId": str(number)}
            return self._transport.get_here("/admin/v3/transactions/coordinatorStats", query).decoded(_State).state
        except NotFound:
            return None

    def internals(self, topic: str) -> InternalDetail:
        """A topic's ``internalStats``: its ledgers and cursors."""
        return self._transport.get_here(f"{paths.topic(topic)}/internalStats").decoded(InternalDetail)

    def stored(self, topic: str) -> StoredTopic:
        """A topic's ``internal-info``, which contains the time of creation of its cursors."""
        return self._transport.get_here(f"{paths.topic(topic)}/internal-info").decoded(StoredTopic)

    def own_quotas(self, topic: str) -> dict[str, Any]:
        """Backlog quotas set on the topic itself, by type; for a partitioned topic, its own name, not a partition's.

        The request has to go to the owner of its first partition, as seen on 4.0.7.
        """
        return self._set_on(topic, "backlogQuotaMap", dict[str, Any]) or {}

    def own_retention(self, topic: str) -> dict[str, Any]:
        """Retention set on the topic itself; empty if there is none."""
        return self._set_on(topic, "retention", dict[str, Any]) or {}

    def own_rates(self, topic: str, names: Iterable[str]) -> dict[str, Any]:
        """Rates set on the topic itself, by their names in the admin API, without those that are not set.

        Args:
            topic: Full name; for a partitioned topic, its own name.
            names: Of ``publishRate``, ``dispatchRate`` and ``subscriptionDispatchRate``; one request for each.
        """
        told = {name: self._set_on(topic, name, dict[str, Any]) for name in names}
        return {name: rate for name, rate in told.items() if rate}

    def own_setting(self, topic: str, name: SettingName) -> Setting | None:
        """A setting of the topic itself; None: not set there. For a partitioned topic, its own name."""
        match name:
            case SettingName.SIZE_QUOTA | SettingName.AGE_QUOTA:
                return quotas_in(self._set_on(topic, "backlogQuotaMap", dict[str, QuotaDocument]) or {}).get(name)
            case SettingName.RETENTION:
                retention = self._set_on(topic, "retention", RetentionDocument)
                return retention.value if retention else None
            case SettingName.TTL:
                seconds = self._set_on(topic, "messageTTL", int)
                return None if seconds is None else TimeToLive(seconds=seconds)
            case SettingName.DELAYED_DELIVERY:
                delayed = self._set_on(topic, "delayedDelivery", DelayedDeliveryDocument)
                return delayed.value if delayed else None
            case SettingName.PERSISTENCE:
                persistence = self._set_on(topic, "persistence", PersistenceDocument)
                return persistence.value if persistence else None

    def own_compaction_bytes(self, topic: str) -> int | None:
        """Compaction threshold set on the topic itself; None: not set there."""
        return self._set_on(topic, "compactionThreshold", int)

    def _set_on(self, topic: str, policy: str, kind: type[T]) -> T | None:
        """A policy set on the topic itself; None if it is not set, as the body is empty then."""
        answer = self._transport.get_here(f"{paths.topic(topic)}/{policy}", {"applied": "false"})
        return answer.decoded(kind) if answer.body else None
