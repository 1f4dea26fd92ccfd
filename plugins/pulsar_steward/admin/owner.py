"""Reads that only a topic's owner may get: elsewhere these calls would load a bundle that nobody owns.

So the caller has to know that the broker owns the topic's bundle, and from the broker itself, an instant before
(`Reader.owned_bundles`). A redirect is never followed: it means that the bundle was moved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from pulsar_steward.admin import paths
from pulsar_steward.admin.closing import Closing
from pulsar_steward.admin.figures import Figure, Long
from pulsar_steward.admin.own_settings import DelayedDeliveryDocument, QuotaDocument, RetentionDocument, quotas_in
from pulsar_steward.admin.transport import Transport
from pulsar_steward.errors import NotFound
from pulsar_steward.model.setting import SettingName, TimeToLive

if TYPE_CHECKING:
    from pulsar_steward.admin.settings import AdminSettings
    from pulsar_steward.model.setting import Setting

T = TypeVar("T")


class SubscriptionDetail(msgspec.Struct, frozen=True, rename="camel"):
    """One subscription in a topic's ``stats``; None where the broker does not report a figure."""

    msg_backlog: Figure = 0
    earliest_msg_publish_time_in_backlog: Figure = 0
    msg_delayed: Figure | None = None
    msg_backlog_no_delayed: Figure | None = None
    delayed_message_index_size_in_bytes: Figure | None = None
    non_contiguous_deleted_messages_ranges: Figure | None = None
    non_contiguous_deleted_messages_ranges_serialized_size: Figure | None = None
    last_consumed_timestamp: Figure | None = None
    last_acked_timestamp: Figure | None = None
    last_mark_delete_advanced_timestamp: Figure | None = None
    is_replicated: bool = False
    consumers: list[msgspec.Raw] = []


class TopicDetail(msgspec.Struct, frozen=True, rename="camel"):
    """A topic's ``stats``; -1 is the broker's value for "not known" and "no limit"."""

    publishers: list[msgspec.Raw] = []
    subscriptions: dict[str, SubscriptionDetail] = {}
    backlog_size: Figure = 0
    oldest_backlog_message_age_seconds: Figure = -1
    oldest_backlog_message_subscription_name: str | None = None
    backlog_quota_limit_size: Long = -1
    backlog_quota_limit_time: Long = -1


class CursorDetail(msgspec.Struct, frozen=True, rename="camel"):
    """One cursor in a topic's ``internalStats``; of its properties only the names are used."""

    mark_delete_position: str = ""
    properties: dict[str, msgspec.Raw] = {}
    cursor_properties: dict[str, msgspec.Raw] = {}


class InternalDetail(msgspec.Struct, frozen=True, rename="camel"):
    """A topic's ``internalStats``."""

    ledgers: list[msgspec.Raw] = []
    cursors: dict[str, CursorDetail] = {}


class _State(msgspec.Struct, frozen=True):
    """A coordinator's ``coordinatorStats``."""

    state: str


class OwnerReader(Closing):
    """Reads topics of the broker that owns them; has no method that writes and a transport that refuses to.

    Every method raises `pulsar_steward.errors.AdminError` when there is no answer from this very broker.
    """

    def __init__(self, settings: AdminSettings, broker: str) -> None:
        self._transport = Transport.of(settings, frozenset({"GET"}), broker)

    def close(self) -> None:
        """Closes the connections."""
        self._transport.close()

    def statistics(self, topic: str) -> TopicDetail:
        """A topic's ``stats``, without the figures for which a broker would have to lock or read ledgers."""
        query = {"getPreciseBacklog": "false", "subscriptionBacklogSize": "false"}
        return self._transport.get_here(f"{paths.topic(topic)}/stats", query).decoded(TopicDetail)

    def oldest_published_milliseconds(self, topic: str) -> int | None:
        """Publish time of the oldest message that some subscription of the topic has not consumed, since the epoch.

        0: every subscription has consumed everything; None: the broker does not report a time for one that has not. The
        broker reads one entry per subscription for it. Peeking would have that entry sent, and would create a
        subscription again that was deleted an instant before (docs/pulsar-behaviour.md).
        """
        query = {"getPreciseBacklog": "false", "subscriptionBacklogSize": "false", "getEarliestTimeInBacklog": "true"}
        told = self._transport.get_here(f"{paths.topic(topic)}/stats", query).decoded(TopicDetail)
        waiting = [each for each in told.subscriptions.values() if each.msg_backlog > 0]
        times = [each.earliest_msg_publish_time_in_backlog for each in waiting]
        return None if any(time <= 0 for time in times) else min(times, default=0)

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

    def own_quotas(self, topic: str) -> dict[str, Any]:
        """Backlog quotas set on the topic itself, by type; takes a partitioned topic's own name, not a partition's.

        The owner of its first partition has to be asked, as seen on 4.0.7.
        """
        return self._set_on(topic, "backlogQuotaMap", dict[str, Any]) or {}

    def own_retention(self, topic: str) -> dict[str, Any]:
        """Retention set on the topic itself; empty if there is none."""
        return self._set_on(topic, "retention", dict[str, Any]) or {}

    def own_setting(self, topic: str, name: SettingName) -> Setting | None:
        """A setting of the topic itself; None: not set there. Takes a partitioned topic's own name, as above."""
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

    def _set_on(self, topic: str, policy: str, kind: type[T]) -> T | None:
        """A policy set on the topic itself; None if it is not set, as the body is empty then."""
        answer = self._transport.get_here(f"{paths.topic(topic)}/{policy}", {"applied": "false"})
        return answer.decoded(kind) if answer.body else None
