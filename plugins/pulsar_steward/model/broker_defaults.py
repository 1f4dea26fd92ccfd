"""Defaults of brokers: of Pulsar itself, by version (`DEFAULTS`), and those that a cluster's configuration sets.

The checks read the same keys in SQL (`pulsar_steward.checks.backlog.policies`), by the constants here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.model.pulsar_versions import numbers_of
from pulsar_steward.model.units import GIB

if TYPE_CHECKING:
    from collections.abc import Mapping

QUOTA_GIGABYTES = "backlogQuotaDefaultLimitGB"
"""The size quota in GiB; above 0 it goes before `QUOTA_BYTES`."""
QUOTA_BYTES = "backlogQuotaDefaultLimitBytes"
QUOTA_SECONDS = "backlogQuotaDefaultLimitSecond"
QUOTA_POLICY = "backlogQuotaDefaultRetentionPolicy"
RETENTION_MINUTES = "defaultRetentionTimeInMinutes"
RETENTION_MEGABYTES = "defaultRetentionSizeInMB"
TTL_SECONDS = "ttlDurationDefaultInSeconds"
DELAYS_MESSAGES = "delayedDeliveryEnabled"
DELAY_TICK = "delayedDeliveryTickTimeMillis"
LONGEST_DELAY = "delayedDeliveryMaxDelayInMillis"
COMPACTION_BYTES = "brokerServiceCompactionThresholdInBytes"
DEDUPLICATED = "brokerDeduplicationEnabled"
OFFLOAD_DRIVER = "managedLedgerOffloadDriver"
ENSEMBLE = "managedLedgerDefaultEnsembleSize"
WRITE_QUORUM = "managedLedgerDefaultWriteQuorum"
ACK_QUORUM = "managedLedgerDefaultAckQuorum"
CURSOR_WRITES = "managedLedgerDefaultMarkDeleteRateLimit"

KEYS = (
    QUOTA_GIGABYTES,
    QUOTA_BYTES,
    QUOTA_SECONDS,
    QUOTA_POLICY,
    RETENTION_MINUTES,
    RETENTION_MEGABYTES,
    TTL_SECONDS,
    DELAYS_MESSAGES,
    DELAY_TICK,
    LONGEST_DELAY,
    COMPACTION_BYTES,
    ENSEMBLE,
    WRITE_QUORUM,
    ACK_QUORUM,
    CURSOR_WRITES,
)

_TRUTHS = {"true": True, "false": False}
_MOST = 1 << 62
"""Largest number that is accepted: Pulsar stores a long, and could not use a larger one."""


class BrokerDefaults(msgspec.Struct, frozen=True, kw_only=True):
    """Defaults of a broker if nothing is set; None: not reported, or not a number.

    Attributes:
        limit_bytes: Size quota; under 0: none.
        limit_seconds: Age quota; 0 or under: none.
        policy: Effect of exceeding a quota, as the broker writes it.
        retention_minutes: Retention in time; -1: unlimited.
        retention_megabytes: Retention in size; -1: unlimited. Both 0: nothing is retained.
        ttl_seconds: Time to live; 0: none.
        delays_messages: True if a delayed message waits until it is due.
        delay_tick_milliseconds: Precision of the delivery time.
        longest_delay_milliseconds: Maximum delay that is accepted; 0: any.
        compaction_bytes: Backlog of a topic from which it is compacted; 0: never.
        ensemble: Bookies that a new ledger is spread over.
        write_quorum: Copies of each entry.
        ack_quorum: Copies that have to be written before an entry counts as stored.
        cursor_writes_per_second: Most writes of a cursor; 0 or under: each acknowledgement.
    """

    limit_bytes: int | None = None
    limit_seconds: int | None = None
    policy: str | None = None
    retention_minutes: int | None = None
    retention_megabytes: int | None = None
    ttl_seconds: int | None = None
    delays_messages: bool | None = None
    delay_tick_milliseconds: int | None = None
    longest_delay_milliseconds: int | None = None
    compaction_bytes: int | None = None
    ensemble: int | None = None
    write_quorum: int | None = None
    ack_quorum: int | None = None
    cursor_writes_per_second: float | None = None


def broker_defaults(configuration: Mapping[str, str]) -> BrokerDefaults:
    """The defaults of a broker with this configuration."""
    gigabytes = _number(configuration, QUOTA_GIGABYTES) or 0
    return BrokerDefaults(
        limit_bytes=_whole(gigabytes * GIB if gigabytes > 0 else _number(configuration, QUOTA_BYTES)),
        limit_seconds=_whole(_number(configuration, QUOTA_SECONDS)),
        policy=configuration.get(QUOTA_POLICY),
        retention_minutes=_whole(_number(configuration, RETENTION_MINUTES)),
        retention_megabytes=_whole(_number(configuration, RETENTION_MEGABYTES)),
        ttl_seconds=_whole(_number(configuration, TTL_SECONDS)),
        delays_messages=_TRUTHS.get(configuration.get(DELAYS_MESSAGES, "")),
        delay_tick_milliseconds=_whole(_number(configuration, DELAY_TICK)),
        longest_delay_milliseconds=_whole(_number(configuration, LONGEST_DELAY)),
        compaction_bytes=_whole(_number(configuration, COMPACTION_BYTES)),
        ensemble=_whole(_number(configuration, ENSEMBLE)),
        write_quorum=_whole(_number(configuration, WRITE_QUORUM)),
        ack_quorum=_whole(_number(configuration, ACK_QUORUM)),
        cursor_writes_per_second=_usable(_number(configuration, CURSOR_WRITES)),
    )


def _number(configuration: Mapping[str, str], key: str) -> float | None:
    try:
        return float(configuration[key])
    except (KeyError, ValueError):
        return None


def _usable(number: float | None) -> float | None:
    return number if number is not None and abs(number) <= _MOST else None


def _whole(number: float | None) -> int | None:
    usable = _usable(number)
    return None if usable is None else int(usable)


IMPL = "org.apache.pulsar.broker.loadbalance.impl"
_TRANSACTIONS = "org.apache.pulsar.broker.transaction"
_SSL_FACTORY = "org.apache.pulsar.common.util.DefaultPulsarSslFactory"

LINES = ("2.10", "3.0", "3.3", "4.0", "4.2", "5.0")
"""Lines of releases whose defaults are known: of 2.10.4, 3.0.7, 3.3.2, 4.0.7, 4.2.4 and 5.0.1."""

DEFAULTS: Mapping[str, Mapping[str, str | None]] = {
    "acknowledgmentAtBatchIndexLevelEnabled": {"2.10": "false", "4.2": "true"},
    "authenticateOriginalAuthData": {"2.10": "false", "5.0": "true"},
    "backlogQuotaCheckIntervalInSeconds": {"2.10": "60"},
    "bookkeeperClientReorderReadSequenceEnabled": {"2.10": "false", "3.3": "true"},
    "bookkeeperClientSeparatedIoThreadsEnabled": {"3.0": "false", "5.0": "true"},
    "brokerClientSslFactoryPlugin": {"4.0": _SSL_FACTORY, "5.0": None},
    "cacheEvictionByExpectedReadCount": {"4.2": "true"},
    "defaultNumberOfNamespaceBundles": {"2.10": "4", "5.0": "32"},
    "delayedDeliveryMaxIndexesPerBucketSnapshotSegment": {"3.0": "5000"},
    "delayedDeliveryMaxTimeStepPerBucketSnapshotSegmentSeconds": {"3.0": "300"},
    "delayedDeliveryMinIndexCountPerBucket": {"3.0": "50000"},
    "dispatcherDispatchMessagesInSubscriptionThread": {"3.0": "true", "5.0": "false"},
    "dispatcherMaxReadBatchSize": {"2.10": "100", "5.0": "500"},
    "enableShadowTopics": {"5.0": "false"},
    "internalListenerName": {"2.10": "", "5.0": "internal"},
    "keySharedLookAheadMsgInReplayThresholdPerConsumer": {"4.0": "2000", "5.0": "4000"},
    "keySharedLookAheadMsgInReplayThresholdPerSubscription": {"4.0": "20000", "5.0": "40000"},
    "loadBalancerAvgShedderHighThreshold": {"3.0": "40"},
    "loadBalancerAvgShedderHitCountHighThreshold": {"3.0": "2"},
    "loadBalancerAvgShedderHitCountLowThreshold": {"3.0": "8"},
    "loadBalancerAvgShedderLowThreshold": {"3.0": "15"},
    "loadBalancerBandwidthInResourceWeight": {"4.0": "1.0"},
    "loadBalancerBandwidthOutResourceWeight": {"4.0": "1.0"},
    "loadBalancerBrokerLoadTargetStd": {"3.0": "0.25"},
    "loadBalancerBrokerOverloadedThresholdPercentage": {"2.10": "85"},
    "loadBalancerBrokerThresholdShedderPercentage": {"2.10": "10"},
    "loadBalancerBundleUnloadMinThroughputThreshold": {"2.10": "10.0"},
    "loadBalancerCPUResourceWeight": {"2.10": "1.0"},
    "loadBalancerDirectMemoryResourceWeight": {"2.10": "1.0", "3.3": "0.0"},
    "loadBalancerDistributeBundlesEvenlyEnabled": {"3.0": "true", "5.0": "false"},
    "loadBalancerLoadPlacementStrategy": {"3.0": f"{IMPL}.LeastLongTermMessageRate", "5.0": f"{IMPL}.AvgShedder"},
    "loadBalancerLoadSheddingStrategy": {"2.10": f"{IMPL}.ThresholdShedder", "5.0": f"{IMPL}.AvgShedder"},
    "loadBalancerMemoryResourceWeight": {"2.10": "1.0", "4.0": "0.0"},
    "loadBalancerMsgRateDifferenceShedderThreshold": {"2.10": "50.0"},
    "loadBalancerMsgThroughputMultiplierDifferenceShedderThreshold": {"2.10": "4.0"},
    "loadBalancerSheddingIntervalMinutes": {"2.10": "1"},
    "lowerBoundarySheddingEnabled": {"3.0": "false"},
    "managedCursorInfoCompressionType": {"2.10": "NONE", "5.0": "LZ4"},
    "managedLedgerAddEntryHandoverMaxBatchItems": {"5.0": "1024"},
    "managedLedgerBatchReadEnabled": {"5.0": "true"},
    "managedLedgerCacheEvictionExtendTTLOfRecentlyAccessed": {"4.2": "true", "5.0": "false"},
    "managedLedgerInfoCompressionType": {"2.10": "NONE", "5.0": "LZ4"},
    "managedLedgerMaxBatchDeletedIndexToPersist": {"4.0": "10000", "5.0": "200000"},
    "managedLedgerMaxReadsInFlightSizeInMB": {"3.0": "0", "5.0": ""},
    "managedLedgerMaxUnackedRangesToPersist": {"2.10": "10000", "5.0": "200000"},
    "managedLedgerMaxUnackedRangesToPersistInMetadataStore": {"3.0": "1000", "5.0": "200000"},
    "managedLedgerPersistIndividualAckAsLongArray": {"4.0": "false", "4.2": "true"},
    "managedLedgerReadEntriesCallbackInline": {"5.0": "true"},
    "managedLedgerUnackedRangesOpenCacheSetEnabled": {"2.10": "true", "5.0": None},
    "maxMessageSize": {"2.10": "5242880"},
    "maxUnloadBundleNumPerShedding": {"3.0": "-1"},
    "maxUnloadPercentage": {"3.0": "0.2", "5.0": "0.5"},
    "minUnloadMessage": {"3.0": "1000"},
    "minUnloadMessageThroughput": {"3.0": "1048576"},
    "packagesManagementJsonSerializationEnabled": {"5.0": "true"},
    "preciseTopicPublishRateLimiterEnable": {"2.10": "false", "4.0": None},
    "replicatedSubscriptionsSnapshotMaxCachedPerSubscription": {"2.10": "10", "4.2": "30"},
    "replicationMaxReadProcessingStepsPerTurn": {"5.0": "64"},
    "scalableTopicsEnabled": {"5.0": "true"},
    "schemaJsonAllowLegacyJacksonFormat": {"4.2": "false"},
    "sslFactoryPlugin": {"4.0": _SSL_FACTORY, "5.0": None},
    "streamingDispatch": {"2.10": "false", "3.3": None},
    "subscriptionKeySharedUseClassicPersistentImplementation": {"4.0": "false", "5.0": None},
    "subscriptionSharedUseClassicPersistentImplementation": {"4.0": "false", "5.0": None},
    "tlsHostnameVerificationEnabled": {"2.10": "false", "5.0": "true"},
    "topicCompactionRetainNullKey": {"3.0": "true", "3.3": "false"},
    "topicPoliciesCacheInitTimeoutSeconds": {"4.2": "60"},
    "transactionBufferProviderClassName": {
        "2.10": f"{_TRANSACTIONS}.buffer.impl.TopicTransactionBufferProvider",
        "5.0": f"{_TRANSACTIONS}.buffer.impl.DispatchingTransactionBufferProvider",
    },
    "transactionCoordinatorScalableTopicsEnabled": {"5.0": "true"},
    "transactionPendingAckStoreProviderClassName": {
        "2.10": f"{_TRANSACTIONS}.pendingack.impl.MLPendingAckStoreProvider",
        "5.0": f"{_TRANSACTIONS}.pendingack.impl.DispatchingTransactionPendingAckStoreProvider",
    },
    "webServiceTlsProvider": {"2.10": "Conscrypt", "5.0": ""},
}
"""Default of a setting by the line of releases that began with it; None: the line has no such setting any more.

Read from `ServiceConfiguration` in the brokers' own classes of the releases of `LINES`. An empty text is unset.
"""

BEFORE_5 = frozenset(key for key, by_line in DEFAULTS.items() if min(by_line, key=LINES.index) != "5.0")
"""Settings of `DEFAULTS` that brokers before Pulsar 5 have."""

OF_UPGRADES = (
    "authenticationEnabled",
    "brokerClientTlsEnabled",
    "enablePackagesManagement",
    "loadBalancerAutoBundleSplitEnabled",
)
"""Further settings that an upgrade goes by."""


def default_in(key: str, line: str) -> str | None:
    """Default of a setting in a line of releases (``4.0``); None: it has no such setting, or that is not known.

    It is not known in a line between two of `LINES` that differ.
    """
    number = numbers_of(line)
    before = [default for since, default in DEFAULTS[key].items() if numbers_of(since) <= number]
    after = [since for since in DEFAULTS[key] if numbers_of(since) > number]
    known = line in LINES or number > numbers_of(LINES[-1])
    follows = next((each for each in LINES if numbers_of(each) > number), None)
    return before[-1] if before and (known or follows not in after) else None


def default_number(key: str) -> float:
    """The newest default of a setting that is a number."""
    return float(list(DEFAULTS[key].values())[-1] or "nan")


def is_default(key: str, line: str, value: str) -> bool:
    """True if a line of releases has this value by default."""
    return key in DEFAULTS and same_value(value, default_in(key, line) or "")


def same_value(value: str, other: str) -> bool:
    """True if two values of a setting are the same number or text."""
    try:
        return float(value) == float(other)
    except ValueError:
        return value == other


def lasting_default(key: str) -> str | None:
    """Default of a setting in every release that has it; None: releases differ."""
    (first, *others) = DEFAULTS[key].values()
    return None if others else first


EXTENSIBLE = "ExtensibleLoadManagerImpl"
HISTORY = "pulsar_lb_resource_usage"
"""Metric that `ExtensibleLoadManagerImpl` compares: with the label ``feature="max_ema"``, averaged over time."""

CPU = "pulsar_lb_cpu_usage"
"""Metric of a broker's CPU usage, in percent."""

DIRECT_MEMORY = "pulsar_lb_directMemory_usage"
"""Metric of a broker's usage of direct memory, in percent."""

RESOURCES = {
    CPU: "loadBalancerCPUResourceWeight",
    "pulsar_lb_memory_usage": "loadBalancerMemoryResourceWeight",
    DIRECT_MEMORY: "loadBalancerDirectMemoryResourceWeight",
    "pulsar_lb_bandwidth_in_usage": "loadBalancerBandwidthInResourceWeight",
    "pulsar_lb_bandwidth_out_usage": "loadBalancerBandwidthOutResourceWeight",
}
"""Metrics of a broker's resources, in percent, and the settings of their weights."""

THROUGHPUT = ("pulsar_broker_throughput_in", "pulsar_broker_throughput_out")
RATES = ("pulsar_broker_rate_in", "pulsar_broker_rate_out")

SERIES = (*RESOURCES, HISTORY, *THROUGHPUT, *RATES)
"""Metrics from which a broker's usage is read."""

WEIGHTS = {key: default_number(key) for key in RESOURCES.values()}
BANDWIDTH_BEFORE_4 = {
    "loadBalancerBandwidthInResourceWeight": "loadBalancerBandwithInResourceWeight",
    "loadBalancerBandwidthOutResourceWeight": "loadBalancerBandwithOutResourceWeight",
}
"""Names of settings before 4.0, which later brokers still heed, by today's names."""

SHEDDER = "loadBalancerLoadSheddingStrategy"
APART = "loadBalancerAvgShedderLowThreshold"
LEAST_MESSAGES, LEAST_BYTES = "minUnloadMessage", "minUnloadMessageThroughput"
UNLOADED_SHARE = "maxUnloadPercentage"
LOWER_BOUNDARY = "lowerBoundarySheddingEnabled"
LIMITS: dict[str, tuple[str, ...]] = {
    "ThresholdShedder": (
        "loadBalancerBrokerThresholdShedderPercentage",
        "loadBalancerBundleUnloadMinThroughputThreshold",
        LOWER_BOUNDARY,
    ),
    "OverloadShedder": ("loadBalancerBrokerOverloadedThresholdPercentage",),
    "TransferShedder": ("loadBalancerBrokerOverloadedThresholdPercentage", "loadBalancerBrokerLoadTargetStd"),
    "AvgShedder": (
        APART,
        "loadBalancerAvgShedderHighThreshold",
        "loadBalancerAvgShedderHitCountLowThreshold",
        "loadBalancerAvgShedderHitCountHighThreshold",
        "loadBalancerSheddingIntervalMinutes",
        LEAST_MESSAGES,
        LEAST_BYTES,
        UNLOADED_SHARE,
    ),
    "UniformLoadShedder": (
        "loadBalancerMsgRateDifferenceShedderThreshold",
        "loadBalancerMsgThroughputMultiplierDifferenceShedderThreshold",
        "maxUnloadBundleNumPerShedding",
        LEAST_MESSAGES,
        LEAST_BYTES,
        UNLOADED_SHARE,
    ),
}
"""Settings that a shedding strategy goes by, by its class."""

SETTINGS = tuple(
    dict.fromkeys(
        (
            "loadManagerClassName",
            "loadBalancerEnabled",
            "loadBalancerSheddingEnabled",
            SHEDDER,
            "loadBalancerSheddingExcludedNamespaces",
            "loadBalancerTransferEnabled",
            *WEIGHTS,
            *BANDWIDTH_BEFORE_4.values(),
            *(key for keys in LIMITS.values() for key in keys),
        )
    )
)
"""Settings of brokers from which the load manager is read."""


def is_extensible(settings: Mapping[str, str]) -> bool:
    """True if a broker with these settings runs `ExtensibleLoadManagerImpl`."""
    return settings.get("loadManagerClassName", "").endswith(f".{EXTENSIBLE}")
