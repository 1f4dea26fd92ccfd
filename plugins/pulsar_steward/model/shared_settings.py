"""Settings that the brokers of a cluster are to have in common, by what goes wrong where they differ.

None is by nature a broker's own (its addresses, ports, names, paths, files), and none is named as what holds a secret.
"""

from __future__ import annotations

TOGETHER = (
    "loadManagerClassName",
    "systemTopicEnabled",
    "topicBundleAssignmentStrategy",
    "topicLevelPoliciesEnabled",
    "transactionCoordinatorEnabled",
)
"""Settings by which brokers decide together: which bundle a topic is in, who owns it, where policies are."""

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
"""Settings that a topic gets from the broker that serves it: it changes as the topic moves."""

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
"""Settings that the leading broker goes by as it balances load: it changes as another one leads."""

OF_MACHINES = (
    "managedLedgerStatsPeriodSeconds",
    "maxConcurrentTopicLoadRequest",
    "metadataStoreSessionTimeoutMillis",
    "numIOThreads",
    "topicLoadTimeoutSeconds",
)
"""Settings that may well differ, as machines do."""

SHARED = (*TOGETHER, *OF_TOPICS, *OF_BALANCING, *OF_MACHINES)
