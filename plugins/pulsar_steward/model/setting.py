"""Settings of a namespace or topic that Steward may change, as values; None instead of a value means that none is set.

Pulsar writes -1 for unlimited; the figure is stored as Pulsar writes it, so that it is restored unchanged.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from pulsar_steward.model.units import MIB, MINUTE, bytes_in_words, milliseconds_in_words, seconds_in_words


class SettingName(StrEnum):
    """Name of a setting; the two kinds of backlog quota are set and removed separately."""

    SIZE_QUOTA = "size quota"
    AGE_QUOTA = "age quota"
    RETENTION = "retention"
    TTL = "time to live"
    DELAYED_DELIVERY = "delayed delivery"

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


Setting = BacklogQuota | Retention | TimeToLive | DelayedDelivery


def in_words(name: SettingName, value: Setting | None) -> str:
    """A setting as text for an operator: ``10 GiB, then producer_request_hold``."""
    match value:
        case None:
            return "not set"
        case BacklogQuota() if name is SettingName.AGE_QUOTA:
            return f"{seconds_in_words(value.limit_seconds)}, then {value.policy}"
        case BacklogQuota():
            return f"{bytes_in_words(value.limit_bytes)}, then {value.policy}"
        case Retention():
            time = "for ever" if value.minutes < 0 else seconds_in_words(value.minutes * MINUTE)
            size = "of any size" if value.megabytes < 0 else bytes_in_words(value.megabytes * MIB)
            return f"{time} and {size}"
        case TimeToLive():
            return seconds_in_words(value.seconds) if value.seconds else "never"
        case DelayedDelivery():
            return _delays_in_words(value)


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
