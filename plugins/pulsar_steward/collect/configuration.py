"""Which of a broker's settings are kept: those that something reads.

A setting comes with the check that asks for it, and goes with it: `tests/architecture/test_collected_is_used.py` holds
the two to each other, and docs/reading.md lists them.

A broker tells all of its settings, passwords among them (``brokerClientTlsKeyStorePassword``,
``managedLedgerPassword``, tokens in ``brokerClientAuthenticationParameters``), so there is a list of what may be kept
and none of what may not. Whole families are never named by a pattern.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

KEPT = frozenset(
    {
        "acknowledgmentAtBatchIndexLevelEnabled",
        "backlogQuotaCheckEnabled",
        "backlogQuotaCheckIntervalInSeconds",
        "backlogQuotaDefaultLimitBytes",
        "backlogQuotaDefaultLimitGB",
        "backlogQuotaDefaultLimitSecond",
        "backlogQuotaDefaultRetentionPolicy",
        "defaultRetentionSizeInMB",
        "defaultRetentionTimeInMinutes",
        "delayedDeliveryMaxDelayInMillis",
        "delayedDeliveryMaxNumBuckets",
        "delayedDeliveryTrackerFactoryClassName",
        "loadBalancerBrokerMaxTopics",
        "loadBalancerLoadSheddingStrategy",
        "loadBalancerNamespaceBundleMaxBandwidthMbytes",
        "loadBalancerNamespaceBundleMaxMsgRate",
        "loadBalancerNamespaceBundleMaxSessions",
        "loadBalancerSheddingEnabled",
        "managedLedgerMaxLedgerRolloverTimeMinutes",
        "managedLedgerMaxBatchDeletedIndexToPersist",
        "managedLedgerMaxUnackedRangesToPersist",
        "managedLedgerPersistIndividualAckAsLongArray",
        "managedLedgerStatsPeriodSeconds",
        "maxConcurrentTopicLoadRequest",
        "maxMessageSize",
        "maxUnackedMessagesPerConsumer",
        "maxUnackedMessagesPerSubscription",
        "metadataStoreSessionTimeoutMillis",
        "numIOThreads",
        "preciseTimeBasedBacklogQuotaCheck",
        "topicLoadTimeoutSeconds",
        "ttlDurationDefaultInSeconds",
    }
)
"""The settings that are kept, by their names in ``broker.conf``."""


def kept(configuration: Mapping[str, str]) -> dict[str, str]:
    """Of a broker's runtime configuration what may be kept, by name."""
    return {key: configuration[key] for key in sorted(KEPT & configuration.keys())}
