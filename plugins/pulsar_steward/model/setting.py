"""Settings of a namespace or topic that Steward may change, as values; None instead of a value means that none is set.

Pulsar writes -1 for unlimited; the figure is stored as Pulsar writes it, so that it is restored unchanged.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec

from pulsar_steward.model.units import MIB, MINUTE, bytes_in_words, milliseconds_in_words, seconds_in_words


class SettingName(StrEnum):
    """Name of a setting; the two kinds of backlog quota are set and removed separately."""

    SIZE_QUOTA = "size quota"
    AGE_QUOTA = "age quota"
    RETENTION = "retention"
    TTL = "time to live"
    DELAYED_DELIVERY = "delayed delivery"
    PERSISTENCE = "persistence"

    @property
    def quota_type(self) -> str:
        """The admin API's name for the kind of a quota.

        Raises:
            ValueError: If the setting is not a quota.
        """
        kinds = {SettingName.SIZE_QUOTA: "destination_storage", SettingName.AGE_QUOTA: "message_age"}
        if self not in kinds:
            raise ValueError(f"{self} is no backlog quota")
        return kinds[self]


class QuotaPolicy(StrEnum):
    """Action of a broker once a quota is exceeded."""

    HOLD = "producer_request_hold"
    REFUSE = "producer_exception"
    EVICT = "consumer_backlog_eviction"

    @property
    def in_words(self) -> str:
        """The action as a clause: ``when exceeded, hold producers``."""
        done = {QuotaPolicy.HOLD: "hold producers", QuotaPolicy.REFUSE: "refuse producers"}
        return f"when exceeded, {done.get(self, 'evict oldest unread')}"


class BacklogQuota(msgspec.Struct, frozen=True, kw_only=True, tag="backlog_quota", tag_field="is"):
    """A backlog quota; a size quota uses only the bytes, an age quota only the seconds.

    Attributes:
        limit_bytes: `limitSize`; under 0: none.
        limit_seconds: `limitTime`; 0 or under: none.
        policy: Action of the broker beyond the limit.
    """

    limit_bytes: int = -1
    limit_seconds: int = -1
    policy: QuotaPolicy


class Retention(msgspec.Struct, frozen=True, kw_only=True, tag="retention", tag_field="is"):
    """Amount of consumed messages to keep; -1 is unlimited, both 0 keeps nothing."""

    minutes: int
    megabytes: int


class TimeToLive(msgspec.Struct, frozen=True, kw_only=True, tag="ttl", tag_field="is"):
    """Seconds after which a message counts as consumed; 0: never."""

    seconds: int


class DelayedDelivery(msgspec.Struct, frozen=True, kw_only=True, tag="delayed_delivery", tag_field="is"):
    """Delayed delivery, one policy in Pulsar: a maximum delay cannot be set without the other fields.

    Attributes:
        active: False: messages are delivered at once, whatever their delay.
        tick_milliseconds: Precision of the delivery time.
        longest_milliseconds: `maxDeliveryDelayInMillis`; a message with a longer delay is refused at publishing. 0: any
            delay is accepted.
    """

    active: bool
    tick_milliseconds: int
    longest_milliseconds: int = 0


class Persistence(msgspec.Struct, frozen=True, kw_only=True, tag="persistence", tag_field="is"):
    """Placement of new ledgers and the rate of writing cursors, one policy in Pulsar: none is set without the others.

    Loaded topics take the rate at once. A ledger keeps its bookies: the other three are those of the next ledger, once
    the present one is full or too old, or its topic is loaded anew (apache/pulsar, `ManagedLedgerConfig`).

    Attributes:
        ensemble: E, bookies that a ledger is spread over.
        write_quorum: Qw, copies of each entry.
        ack_quorum: Qa, copies that have to be written before an entry counts as stored.
        rate: `managedLedgerMaxMarkDeleteRate`, most writes of a cursor per second, as text, since plans hold no floats
            and any rate has to be restored unchanged; 0: each change of it; under 0: the same, or on 4.2.4 the brokers'
            default (`BrokerService`).
        storage_class: `managedLedgerStorageClassName` (PIP-384), never changed, but sent along; None: not set.
    """

    ensemble: int
    write_quorum: int
    ack_quorum: int
    rate: Annotated[str, msgspec.Meta(pattern=r"^-?\d+(\.\d+)?(e[+-]\d+)?\Z")]
    storage_class: str | None = None

    @classmethod
    def of(cls, quorums: tuple[int, int, int], per_second: float, storage_class: str | None = None) -> Persistence:
        """The policy with these E, Qw and Qa, and at most so many writes of a cursor per second."""
        ensemble, write, ack = quorums
        rate = repr(float(per_second))
        return cls(ensemble=ensemble, write_quorum=write, ack_quorum=ack, rate=rate, storage_class=storage_class)

    @property
    def writes_per_second(self) -> float:
        """The rate as a number."""
        return float(self.rate)

    @property
    def quorums(self) -> tuple[int, int, int]:
        """E, Qw and Qa."""
        return self.ensemble, self.write_quorum, self.ack_quorum

    @property
    def quorums_in_words(self) -> str:
        """The same as text."""
        return f"E {self.ensemble}, Qw {self.write_quorum}, Qa {self.ack_quorum}"


Setting = BacklogQuota | Retention | TimeToLive | DelayedDelivery | Persistence


def in_words(name: SettingName, value: Setting | None) -> str:
    """A setting as text for an operator: ``10 GiB; when exceeded, hold producers``."""
    match value:
        case None:
            return "not set"
        case BacklogQuota():
            by_age = name is SettingName.AGE_QUOTA
            limit = seconds_in_words(value.limit_seconds) if by_age else bytes_in_words(value.limit_bytes)
            return f"{limit}; {value.policy.in_words}"
        case Retention():
            time = "for ever" if value.minutes < 0 else seconds_in_words(value.minutes * MINUTE)
            size = "of any size" if value.megabytes < 0 else bytes_in_words(value.megabytes * MIB)
            return f"{time} and {size}"
        case TimeToLive():
            return seconds_in_words(value.seconds) if value.seconds else "never"
        case DelayedDelivery():
            return _delays_in_words(value)
        case Persistence():
            return f"{value.quorums_in_words}, and cursors written {writes_in_words(value.writes_per_second)}"


def when_in_force(before: object, after: object) -> str:
    """When a new persistence has an effect, as a clause to be added; empty for other settings."""
    if not isinstance(after, Persistence):
        return ""
    was = before if isinstance(before, Persistence) else None
    rate = "" if was and was.rate == after.rate else "; loaded topics write their cursors so at once"
    if was and was.quorums == after.quorums:
        return rate
    return (
        f"{rate}; E, Qw and Qa hold for new ledgers: a topic's present one keeps its own until it is full or too old,"
        " or the topic is loaded anew, and what is stored already stays where it is"
    )


def writes_in_words(per_second: float) -> str:
    """The rate of writing a cursor as text: ``once in 10 s``; 0 is no limit, and below 0 versions differ."""
    if per_second < 0:
        return "at each acknowledgement, or from 4.2 on as brokers do by default"
    if per_second == 0:
        return "at each acknowledgement"
    if per_second <= 1:
        return f"once in {seconds_in_words(1 / per_second, rounded=True)}"
    return f"{per_second:,g} times a second"


def _delays_in_words(value: DelayedDelivery) -> str:
    if not value.active:
        return "off: messages are delivered at once"
    longest = value.longest_milliseconds
    delays = f"up to {milliseconds_in_words(longest)}" if longest else "of any length"
    return f"on, with delays {delays}, in ticks of {milliseconds_in_words(value.tick_milliseconds)}"


# None is specific to a broker (addresses, ports, names, paths, files), and no name is that of a secret.


TOGETHER = (
    "loadManagerClassName",
    "systemTopicEnabled",
    "topicBundleAssignmentStrategy",
    "topicLevelPoliciesEnabled",
    "transactionCoordinatorEnabled",
)
"""Settings by which brokers decide together: the bundle of a topic, its owner, the place of policies."""

OF_TOPICS = (
    "acknowledgmentAtBatchIndexLevelEnabled",
    "allowAutoSubscriptionCreation",
    "allowAutoTopicCreation",
    "allowAutoTopicCreationType",
    "backlogQuotaCheckEnabled",
    "backlogQuotaCheckIntervalInSeconds",
    "backlogQuotaDefaultLimitBytes",
    "backlogQuotaDefaultLimitGB",
    "backlogQuotaDefaultLimitSecond",
    "backlogQuotaDefaultRetentionPolicy",
    "brokerDeduplicationEnabled",
    "brokerDeleteInactiveTopicsEnabled",
    "brokerDeleteInactiveTopicsMode",
    "defaultNumPartitions",
    "defaultRetentionSizeInMB",
    "defaultRetentionTimeInMinutes",
    "delayedDeliveryEnabled",
    "delayedDeliveryMaxDelayInMillis",
    "delayedDeliveryMaxNumBuckets",
    "delayedDeliveryTickTimeMillis",
    "delayedDeliveryTrackerFactoryClassName",
    "encryptionRequireOnProducer",
    "entryFilterNames",
    "isAllowAutoUpdateSchemaEnabled",
    "isSchemaValidationEnforced",
    "managedLedgerDefaultAckQuorum",
    "managedLedgerDefaultEnsembleSize",
    "managedLedgerDefaultMarkDeleteRateLimit",
    "managedLedgerDefaultWriteQuorum",
    "managedLedgerMaxBatchDeletedIndexToPersist",
    "managedLedgerMaxLedgerRolloverTimeMinutes",
    "managedLedgerMaxUnackedRangesToPersist",
    "managedLedgerPersistIndividualAckAsLongArray",
    "maxMessageSize",
    "maxUnackedMessagesPerConsumer",
    "maxUnackedMessagesPerSubscription",
    "preciseTimeBasedBacklogQuotaCheck",
    "schemaCompatibilityStrategy",
    "subscriptionExpirationTimeMinutes",
    "ttlDurationDefaultInSeconds",
)
"""Settings that a topic gets from its owner: they change when the topic moves."""

OF_BALANCING = (
    "defaultNamespaceBundleSplitAlgorithm",
    "loadBalancerBandwidthInResourceWeight",
    "loadBalancerBandwidthOutResourceWeight",
    "loadBalancerBrokerLoadTargetStd",
    "loadBalancerBrokerMaxTopics",
    "loadBalancerBrokerOverloadedThresholdPercentage",
    "loadBalancerBrokerThresholdShedderPercentage",
    "loadBalancerBundleUnloadMinThroughputThreshold",
    "loadBalancerCPUResourceWeight",
    "loadBalancerDirectMemoryResourceWeight",
    "loadBalancerEnabled",
    "loadBalancerLoadSheddingStrategy",
    "loadBalancerMemoryResourceWeight",
    "loadBalancerNamespaceBundleMaxBandwidthMbytes",
    "loadBalancerNamespaceBundleMaxMsgRate",
    "loadBalancerNamespaceBundleMaxSessions",
    "loadBalancerSheddingEnabled",
    "loadBalancerSheddingExcludedNamespaces",
    "loadBalancerTransferEnabled",
)
"""Settings that the leading broker uses for load balancing: they change with the leader."""

OF_MACHINES = (
    "managedLedgerStatsPeriodSeconds",
    "maxConcurrentTopicLoadRequest",
    "metadataStoreSessionTimeoutMillis",
    "numIOThreads",
    "topicLoadTimeoutSeconds",
)
"""Settings that may well differ, as machines do."""

SHARED = (*TOGETHER, *OF_TOPICS, *OF_BALANCING, *OF_MACHINES)
