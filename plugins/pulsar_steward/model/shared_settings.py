"""Settings that should be equal on all brokers of a cluster, grouped by the harm of a difference.

None is specific to a broker (addresses, ports, names, paths, files), and no name is that of a secret.
"""

from __future__ import annotations

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
