"""Thresholds of the checks of delayed messages and the capacity of a cluster."""

from __future__ import annotations

from pydantic import Field

from pulsar_steward.policy.section import Section


class DelayedPastTtlPolicy(Section):
    """When a time to live endangers delayed messages."""

    critical_delayed_percent_of_backlog: int = Field(
        90, ge=1, le=100, description="share of delayed messages in a backlog that expires: what goes are these, then"
    )
    warning_age_percent_of_ttl: int = Field(
        80, ge=1, le=100, description="age of a topic's oldest message: leaves a fifth of the time to act"
    )


class DelayedHoldsLedgersPolicy(Section):
    """When few delayed messages keep too much stored."""

    warning_entries_per_backlog_message: int = Field(
        10, ge=2, description="entries behind the first unacknowledged one, for each that is waited for: nine are done"
    )
    warning_held_mebibytes: int = Field(
        10 * 1024, ge=1, description="consumed bytes that a topic keeps; below 10 GiB a disk does not notice"
    )
    critical_held_mebibytes: int = Field(
        100 * 1024, ge=1, description="the same, where few such topics fill a bookie's disk"
    )


class DelayedIndexMemoryPolicy(Section):
    """When the index of delayed messages takes too much of a broker's memory."""

    index_bytes_per_message: int = Field(
        24, ge=1, description="three longs an entry (time, ledger, entry), where the broker tells no bytes"
    )
    warning_percent_of_memory: int = Field(
        10, ge=1, le=100, description="of the smaller of heap and direct memory; caches and buffers need the most of it"
    )
    critical_percent_of_memory: int = Field(
        30, ge=1, le=100, description="the same, where growing doubles a queue's memory for a moment"
    )
    warning_messages_in_memory: int = Field(
        10_000_000, ge=1, description="delayed messages of a broker that every load reads again, minutes long"
    )


class DelayedIndexMultipliedPolicy(Section):
    """When several subscriptions of one topic index the same delayed messages."""

    minimum_subscriptions: int = Field(
        2, ge=2, description="subscriptions with delayed messages; one multiplies nothing"
    )
    warning_extra_index_entries: int = Field(
        1_000_000, ge=1, description="entries beyond those of the fullest subscription: 24 MB of index for nothing"
    )
    critical_extra_index_entries: int = Field(
        20_000_000, ge=1, description="the same: half a gigabyte, and as many entries to read at each load"
    )


class DelayedBucketCountPolicy(Section):
    """When a subscription has too many buckets of delayed messages."""

    warning_percent_of_limit: int = Field(
        90, ge=1, le=1000, description="of `delayedDeliveryMaxNumBuckets`: beyond it buckets are merged"
    )
    critical_percent_of_limit: int = Field(
        150, ge=1, le=1000, description="the same: merging does not keep up with sealing"
    )
    warning_buckets_unlimited: int = Field(
        1_000, ge=1, description="where nothing limits them (the default): 50 million messages at 50,000 a bucket"
    )
    critical_buckets_unlimited: int = Field(
        5_000, ge=1, description="the same: at some 70 bytes a property, a third of a metadata node's 1 MiB"
    )


class PartitionCeilingPolicy(Section):
    """How many partitions a broker, a cluster and its metadata store should carry."""

    warning_topics_per_broker: int = Field(40_000, ge=1, description="four fifths of the next")
    critical_topics_per_broker: int = Field(
        50_000, ge=1, description="default of `loadBalancerBrokerMaxTopics`, which counts where it is lower"
    )
    warning_topics_per_cluster: int = Field(
        1_500_000, ge=1, description="beyond the million that others run in one cluster, with effort"
    )
    critical_topics_per_cluster: int = Field(3_000_000, ge=1, description="twice that: time for a second cluster")
    metadata_nodes_per_topic: int = Field(
        2, ge=1, description="the managed ledger and its open ledger, at least: each closed ledger is one more"
    )
    metadata_nodes_per_subscription: int = Field(2, ge=0, description="the cursor and its ledger")
    metadata_bytes_per_node: int = Field(
        150, ge=1, description="of a snapshot: 300 MB for two million nodes, as published"
    )
    warning_metadata_nodes: int = Field(
        6_000_000, ge=1, description="three times what was published; a snapshot of 0.9 GB"
    )
    critical_metadata_nodes: int = Field(12_000_000, ge=1, description="twice that; minutes to load after a restart")


class FailoverTimePolicy(Section):
    """How long the loss of a broker may be felt, and the rates that the estimate assumes."""

    warning_seconds: int = Field(120, ge=1, description="four times the 30 s that the metadata session takes by itself")
    critical_seconds: int = Field(600, ge=1, description="beyond what clients retry over and people sit out")
    session_timeout_seconds: int = Field(
        30, ge=1, description="where `metadataStoreSessionTimeoutMillis` was not read; its default, measured"
    )
    bundles_assigned_per_second: int = Field(
        25, ge=1, description="by the leader, one by one: 40 ms each, the slowest unload measured"
    )
    topics_loaded_per_second_per_broker: int = Field(
        100, ge=1, description="with clients that connect: 2,000 in 7 s on three brokers of two cores in all"
    )
    delayed_messages_read_per_second: int = Field(
        50_000, ge=1, description="of a delayed backlog, by one broker or reader; assumed: measure it on yours"
    )


class ClusterPlacementPolicy(Section):
    """When the brokers that are left could not carry what one that is lost leaves to them."""

    warning_cpu_percent_after_loss: int = Field(
        85, ge=1, description="mean of the rest; `loadBalancerBrokerOverloadedThresholdPercentage` by default"
    )
    critical_cpu_percent_after_loss: int = Field(120, ge=1, description="a fifth more than there is")
    minimum_topics_per_namespace: int = Field(
        1_000, ge=1, description="namespaces with fewer topics need no more bundles than they have"
    )


class DelayedChecks(Section):
    """A section for each check of the group."""

    delayed_past_ttl: DelayedPastTtlPolicy = DelayedPastTtlPolicy()
    delayed_holds_ledgers: DelayedHoldsLedgersPolicy = DelayedHoldsLedgersPolicy()
    delayed_index_memory: DelayedIndexMemoryPolicy = DelayedIndexMemoryPolicy()
    delayed_index_multiplied: DelayedIndexMultipliedPolicy = DelayedIndexMultipliedPolicy()
    delayed_bucket_count: DelayedBucketCountPolicy = DelayedBucketCountPolicy()
    partition_ceiling: PartitionCeilingPolicy = PartitionCeilingPolicy()
    failover_time: FailoverTimePolicy = FailoverTimePolicy()
    cluster_placement: ClusterPlacementPolicy = ClusterPlacementPolicy()
