"""List of the broker settings that a snapshot stores: only settings that other code reads.

A setting is added with the check that needs it, and removed with it: `tests/architecture/test_collected_is_used.py`
compares the two, and docs/reading.md lists them.

A broker reports all of its settings, including passwords (``brokerClientTlsKeyStorePassword``,
``managedLedgerPassword``, tokens in ``brokerClientAuthenticationParameters``). So this lists the settings to store, not
the settings to omit, and no pattern stands for a whole family.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.model.broker_defaults import KEYS as DEFAULTS_KEYS
from pulsar_steward.model.load_manager import SETTINGS as OF_LOAD_MANAGER
from pulsar_steward.model.shared_settings import SHARED

if TYPE_CHECKING:
    from collections.abc import Mapping

KEPT = frozenset(
    {
        *DEFAULTS_KEYS,
        *OF_LOAD_MANAGER,
        *SHARED,
        "acknowledgmentAtBatchIndexLevelEnabled",
        "backlogQuotaCheckEnabled",
        "backlogQuotaCheckIntervalInSeconds",
        "bookkeeperClientNumWorkerThreads",
        "delayedDeliveryMaxNumBuckets",
        "delayedDeliveryTrackerFactoryClassName",
        "entryFilterNames",
        "exposePreciseBacklogInPrometheus",
        "loadBalancerBrokerMaxTopics",
        "loadBalancerNamespaceBundleMaxBandwidthMbytes",
        "loadBalancerNamespaceBundleMaxMsgRate",
        "loadBalancerNamespaceBundleMaxSessions",
        "managedLedgerCacheEvictionTimeThresholdMillis",
        "managedLedgerCacheSizeMB",
        "managedLedgerDefaultEnsembleSize",
        "managedLedgerDefaultMarkDeleteRateLimit",
        "managedLedgerMaxLedgerRolloverTimeMinutes",
        "managedLedgerMaxBatchDeletedIndexToPersist",
        "managedLedgerMaxReadsInFlightSizeInMB",
        "managedLedgerMaxUnackedRangesToPersist",
        "managedLedgerMaxUnackedRangesToPersistInMetadataStore",
        "managedLedgerPersistIndividualAckAsLongArray",
        "managedLedgerStatsPeriodSeconds",
        "maxConcurrentTopicLoadRequest",
        "maxMessagePublishBufferSizeInMB",
        "maxMessageSize",
        "maxUnackedMessagesPerConsumer",
        "maxUnackedMessagesPerSubscription",
        "metadataStoreSessionTimeoutMillis",
        "numIOThreads",
        "numOrderedExecutorThreads",
        "preciseTimeBasedBacklogQuotaCheck",
        "topicLoadTimeoutSeconds",
    }
)
"""Settings that are stored, by their names in ``broker.conf``."""


def kept(configuration: Mapping[str, str]) -> dict[str, str]:
    """Settings of a broker's runtime configuration that may be stored, by name."""
    return {key: configuration[key] for key in sorted(KEPT & configuration.keys())}
