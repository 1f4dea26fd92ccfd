"""Checks of delayed messages and the capacity of a cluster."""

from __future__ import annotations

from pulsar_steward.model.catalog.info import CheckInfo, Scope

DELAYED_PAST_TTL = CheckInfo(
    check_id="delayed-past-ttl",
    title="A time to live may delete delayed messages before they are due",
    advice=(
        "Ask who produces to the namespace for the longest delay that they use.",
        "Raise the time to live above that delay: pulsar-admin namespaces set-message-ttl; or remove-message-ttl.",
        "Bound the delay below it: maxDeliveryDelayInMillis in the namespace's delayedDelivery policy refuses longer.",
        "Keep topics with delays in a namespace of their own, without a time to live.",
        "What was expired is acknowledged: where retention still keeps it, reset the cursor to read it again.",
    ),
    source="docs/checks/delayed-past-ttl.md; apache/pulsar#21898, apache/pulsar#25010",
    scope=Scope.NAMESPACE,
)

DELAYED_HOLDS_LEDGERS = CheckInfo(
    check_id="delayed-holds-ledgers",
    title="Few delayed messages keep much consumed data from deletion",
    advice=(
        "Confirm it: pulsar-admin topics stats-internal shows the cursor's markDeletePosition in an old ledger.",
        "Send messages with long delays to a topic of their own, apart from those that are consumed at once.",
        "Bound the delay: maxDeliveryDelayInMillis in the namespace's delayedDelivery policy.",
        "Do not limit such a topic's backlog by age or evict it: that loses what is meant to wait.",
        "Offload to tiered storage where the delays must stay.",
    ),
    source="docs/checks/delayed-holds-ledgers.md; apache/pulsar-site#764, apache/pulsar-site#771",
    scope=Scope.NAMESPACE,
)

DELAYED_INDEX_MEMORY = CheckInfo(
    check_id="delayed-index-memory",
    title="The index of delayed messages takes much of a broker's memory",
    advice=(
        "Use the bucket tracker (delayedDeliveryTrackerFactoryClassName, Pulsar 3.0 on); restart brokers one by one.",
        "Until then do not unload bundles of topics with a large delayed backlog: it is read again each time.",
        "Spread the topics with most delayed messages over several brokers.",
        "Give the broker more direct memory (up to Pulsar 4.0) or heap (later), where the index lives.",
    ),
    source="docs/checks/delayed-index-memory.md; docs/knowledge.md D",
)

DELAYED_INDEX_MULTIPLIED = CheckInfo(
    check_id="delayed-index-multiplied",
    title="Several subscriptions of a topic index the same delayed messages",
    advice=(
        "Delete subscriptions that nobody uses: pulsar-admin topics unsubscribe.",
        "Let one subscription take what is delayed and, when due, publish it to a topic that the others read.",
        "Use the bucket tracker, which holds only the next part of each index in memory.",
    ),
    source="docs/checks/delayed-index-multiplied.md; docs/knowledge.md D",
    scope=Scope.NAMESPACE,
)

DELAYED_BUCKET_COUNT = CheckInfo(
    check_id="delayed-bucket-count",
    title="A subscription has nearly as many buckets of delayed messages as it may, or far too many",
    advice=(
        "Raise delayedDeliveryMinIndexCountPerBucket, so that fewer and larger buckets are sealed.",
        "Raise delayedDeliveryMaxNumBuckets where it is reached, or set it (50 is usual) where nothing limits them.",
        "Leave it at 4 or more: values of 1 to 3 make merging fail in releases before apache/pulsar#26242.",
        "Spread the messages over more partitions: each has buckets of its own.",
    ),
    source="docs/checks/delayed-bucket-count.md; docs/knowledge.md D; apache/pulsar#26242",
    scope=Scope.NAMESPACE,
)

PARTITION_CEILING = CheckInfo(
    check_id="partition-ceiling",
    title="More partitions than a broker, the cluster or its metadata store should carry",
    advice=(
        "Find namespaces with many idle topics, and let them be deleted (brokerDeleteInactiveTopicsEnabled).",
        "Add brokers where single ones are full; move or split bundles so that they take their part.",
        "Place new tenants on a second cluster, and present both under one view, before this one is full.",
        "Watch how long the metadata store takes to load its snapshot after a restart: it grows with the nodes.",
    ),
    source="docs/checks/partition-ceiling.md; docs/knowledge.md E",
)

FAILOVER_TIME = CheckInfo(
    check_id="failover-time",
    title="Losing a broker would stop its topics for long",
    advice=(
        "Look at the largest part of the estimate: topics, bundles, or the delayed backlog.",
        "Topics: spread them over more brokers, so that each holds fewer and more take over.",
        "Delayed backlog: use the bucket tracker, which does not read it again.",
        "Measure the rates on your cluster (restart one broker at a quiet time) and set them in the policy.",
    ),
    source="docs/checks/failover-time.md; docs/knowledge.md D and E",
)

CLUSTER_PLACEMENT = CheckInfo(
    check_id="cluster-placement",
    title="The cluster, or a group of its brokers, could not carry the loss of one, or holds what it should not",
    advice=(
        "Add brokers to the cluster or to the isolation group that would not fit.",
        "Give each isolation group two brokers at least, or a secondary group to fail over to.",
        "Unload bundles that are outside their group, one by one: setting the policy anew unloads them all at once.",
        "Split the bundles of namespaces that have fewer bundles than brokers, where they carry much.",
    ),
    source="docs/checks/cluster-placement.md; docs/knowledge.md E",
)

CHECKS = (
    DELAYED_PAST_TTL,
    DELAYED_HOLDS_LEDGERS,
    DELAYED_INDEX_MEMORY,
    DELAYED_INDEX_MULTIPLIED,
    DELAYED_BUCKET_COUNT,
    PARTITION_CEILING,
    FAILOVER_TIME,
    CLUSTER_PLACEMENT,
)
"""In the order in which reports list them."""
