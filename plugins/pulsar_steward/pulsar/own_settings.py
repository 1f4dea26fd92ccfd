"""A namespace's or topic's own settings, decoded from the admin API's documents into the model's values.

Seen on 4.0.7, an unset setting has one of these forms: absent in the namespace document, ``{}`` or ``null`` for a quota
map, an empty body for a single policy. Brokers before 2.8 called a quota's `limitSize` `limit`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.decoding import decode
from pulsar_steward.model.broker_defaults import broker_defaults
from pulsar_steward.model.setting import (
    BacklogQuota,
    DelayedDelivery,
    Persistence,
    QuotaPolicy,
    Retention,
    SettingName,
    TimeToLive,
)
from pulsar_steward.pulsar.figures import Amount, Figure, LimitRate, Long

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pulsar_steward.model.broker_defaults import BrokerDefaults
    from pulsar_steward.model.setting import Setting

QUOTAS = (SettingName.SIZE_QUOTA, SettingName.AGE_QUOTA)


class QuotaDocument(msgspec.Struct, frozen=True, rename="camel"):
    """One backlog quota in a broker's document."""

    policy: QuotaPolicy
    limit_size: Long | None = None
    limit_time: Long | None = None
    limit: Long | None = None

    @property
    def value(self) -> BacklogQuota:
        """The quota as a model value; a limit that is absent means no limit."""
        size = self.limit if self.limit_size is None else self.limit_size
        time = self.limit_time
        return BacklogQuota(
            limit_bytes=-1 if size is None else size, limit_seconds=-1 if time is None else time, policy=self.policy
        )


class RetentionDocument(msgspec.Struct, frozen=True):
    """A retention in a broker's document."""

    minutes: Long = msgspec.field(name="retentionTimeInMinutes")
    megabytes: Long = msgspec.field(name="retentionSizeInMB")

    @property
    def value(self) -> Retention:
        """The retention as a model value."""
        return Retention(minutes=self.minutes, megabytes=self.megabytes)


class DelayedDeliveryDocument(msgspec.Struct, frozen=True):
    """Delayed delivery in a broker's document; before 3.3 without a maximum delay."""

    active: bool
    tick: Long = msgspec.field(name="tickTime")
    longest: Long = msgspec.field(name="maxDeliveryDelayInMillis", default=0)

    @property
    def value(self) -> DelayedDelivery:
        """The policy as a model value."""
        return DelayedDelivery(active=self.active, tick_milliseconds=self.tick, longest_milliseconds=self.longest)


class PersistenceDocument(msgspec.Struct, frozen=True):
    """Persistence in a broker's document, always whole."""

    ensemble: Long = msgspec.field(name="bookkeeperEnsemble")
    write_quorum: Long = msgspec.field(name="bookkeeperWriteQuorum")
    ack_quorum: Long = msgspec.field(name="bookkeeperAckQuorum")
    writes_per_second: LimitRate = msgspec.field(name="managedLedgerMaxMarkDeleteRate")
    storage_class: str | None = msgspec.field(name="managedLedgerStorageClassName", default=None)

    @property
    def value(self) -> Persistence:
        """The policy as a model value."""
        quorums = self.ensemble, self.write_quorum, self.ack_quorum
        return Persistence.of(quorums, self.writes_per_second, self.storage_class)


class NamespaceDocument(msgspec.Struct, frozen=True):
    """Namespace policies, limited to those that Steward may change, and the clusters that share them."""

    backlog_quota_map: dict[str, QuotaDocument] | None = None
    retention_policies: RetentionDocument | None = None
    message_ttl_in_seconds: Long | None = None
    delayed_delivery_policies: DelayedDeliveryDocument | None = None
    persistence: PersistenceDocument | None = None
    replication_clusters: list[str] | None = None
    allowed_clusters: list[str] | None = None
    compaction_threshold: Long | None = None
    max_topics_per_namespace: Long | None = None

    @property
    def clusters(self) -> frozenset[str]:
        """Clusters that serve the namespace, or may."""
        return frozenset([*(self.replication_clusters or ()), *(self.allowed_clusters or ())])

    @property
    def settings(self) -> dict[SettingName, Setting]:
        """Settings of the namespace by name, without unset ones."""
        found = quotas_in(self.backlog_quota_map or {})
        if self.retention_policies is not None:
            found[SettingName.RETENTION] = self.retention_policies.value
        if self.message_ttl_in_seconds is not None:
            found[SettingName.TTL] = TimeToLive(seconds=self.message_ttl_in_seconds)
        if self.delayed_delivery_policies is not None:
            found[SettingName.DELAYED_DELIVERY] = self.delayed_delivery_policies.value
        if self.persistence is not None:
            found[SettingName.PERSISTENCE] = self.persistence.value
        return found


def quotas_in(documents: Mapping[str, QuotaDocument]) -> dict[SettingName, Setting]:
    """Converts quotas, keyed by the admin API's name of their kind, to settings."""
    return {name: documents[name.quota_type].value for name in QUOTAS if name.quota_type in documents}


def own_settings_in(quotas: str, retention: str) -> dict[SettingName, Setting]:
    """Settings of a topic itself, from the documents of its quotas and its retention; ``{}`` means none.

    Raises:
        msgspec.DecodeError: If a document is of another shape.
    """
    found = quotas_in(decode(quotas, dict[str, QuotaDocument]))
    if retention != "{}":
        found[SettingName.RETENTION] = decode(retention, RetentionDocument).value
    return found


def defaults_in(configuration: Mapping[str, str]) -> dict[SettingName, Setting]:
    """A broker's defaults from its configuration, by setting; a default that means "nothing" is absent."""
    return dict(_defaults(broker_defaults(configuration)))


def _defaults(told: BrokerDefaults) -> Iterator[tuple[SettingName, Setting]]:
    size, age, ttl = told.limit_bytes or 0, told.limit_seconds or 0, told.ttl_seconds or 0
    if told.policy in set(QuotaPolicy) and size > 0:
        yield SettingName.SIZE_QUOTA, BacklogQuota(limit_bytes=size, policy=QuotaPolicy(told.policy))
    if told.policy in set(QuotaPolicy) and age > 0:
        yield SettingName.AGE_QUOTA, BacklogQuota(limit_seconds=age, policy=QuotaPolicy(told.policy))
    minutes, megabytes = (max(each or 0, -1) for each in (told.retention_minutes, told.retention_megabytes))
    if minutes or megabytes:
        yield SettingName.RETENTION, Retention(minutes=minutes, megabytes=megabytes)
    if ttl > 0:
        yield SettingName.TTL, TimeToLive(seconds=ttl)
    if told.delays_messages is not None and told.delay_tick_milliseconds:
        yield (
            SettingName.DELAYED_DELIVERY,
            DelayedDelivery(
                active=told.delays_messages,
                tick_milliseconds=told.delay_tick_milliseconds,
                longest_milliseconds=max(told.longest_delay_milliseconds or 0, 0),
            ),
        )
    quorums = told.ensemble or 0, told.write_quorum or 0, told.ack_quorum or 0
    if all(quorums) and told.cursor_writes_per_second is not None:
        yield SettingName.PERSISTENCE, Persistence.of(quorums, told.cursor_writes_per_second)


# Any broker can read them from the metadata store, without loading the topic. The store has neither the size nor
# the entries of the last ledger, so a cursor's backlog is not known (docs/pulsar-behaviour.md, Topics that are not
# loaded).
class _Position(msgspec.Struct, frozen=True, rename="camel"):
    ledger_id: Long


class StoredLedger(msgspec.Struct, frozen=True, rename="camel"):
    """One ledger; without a size if it is the last one, or if a broker did not close it."""

    ledger_id: Long
    size: Amount | None = None
    timestamp: Figure = 0


class StoredCursor(msgspec.Struct, frozen=True, rename="camel"):
    """One cursor; its position is here after its topic was closed, and before that in the cursor's own ledger."""

    creation_date: str = ""
    cursors_ledger_id: Long = -1
    mark_delete: _Position | None = None

    @property
    def created(self) -> datetime | None:
        """Time at which the metadata store got it, UTC; None: not reported."""
        return _moment(self.creation_date)


def _moment(told: str) -> datetime | None:
    """A time of the metadata store, UTC; None: it tells none. With etcd, all that is stored has the epoch."""
    try:
        at = datetime.fromisoformat(told)
    except ValueError:
        return None
    return at.astimezone(UTC) if at.tzinfo is not None and at.timestamp() > 0 else None


class StoredTopic(msgspec.Struct, frozen=True, rename="camel"):
    """A topic's ``internal-info``."""

    ledgers: list[StoredLedger]
    cursors: dict[str, StoredCursor]
    creation_date: str = ""

    def __post_init__(self) -> None:
        """Refuses a ledger without a size before the last one: the loss from its deletion would be unknown."""
        if lacking := [each.ledger_id for each in self.ledgers[:-1] if each.size is None]:
            raise ValueError(f"ledger {lacking[0]} has no size, and is not the last one")

    @property
    def created(self) -> datetime | None:
        """Time at which the metadata store got it, UTC; None: not reported. One of its name may be older or newer."""
        return _moment(self.creation_date)

    @property
    def closed(self) -> list[StoredLedger]:
        """Its ledgers with a size, oldest first: all except the last one."""
        return [each for each in self.ledgers if each.size is not None]

    @property
    def consumed(self) -> list[StoredLedger]:
        """Closed ledgers that all cursors with a known position have passed, or may have passed."""
        known = [each.mark_delete for each in self.cursors.values() if each.cursors_ledger_id < 0]
        slowest = min((each.ledger_id for each in known if each is not None), default=None)
        return [each for each in self.closed if slowest is None or each.ledger_id <= slowest]

    def closed_since(self, ledger_id: int) -> int | None:
        """Earliest time at which a ledger or a later one was closed, in milliseconds since the epoch; None: never."""
        return min((each.timestamp for each in self.closed if each.ledger_id >= ledger_id), default=None)

    def published_since(self, ledger_id: int) -> int | None:
        """Earliest publish time in a ledger, in milliseconds since the epoch; None: not known.

        It is the time at which the ledger before it was closed.
        """
        before = [each.timestamp for each in self.ledgers if each.ledger_id < ledger_id]
        if before:
            return before[-1]
        try:
            return int(datetime.fromisoformat(self.creation_date).timestamp() * 1000)
        except ValueError:
            return None
