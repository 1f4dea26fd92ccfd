"""Measures of the table `trends`: names of its column `measure`, with their units and meaning."""

from __future__ import annotations

CLUSTER_BACKLOG = "backlog_bytes"
CLUSTER_TOPICS = "topics"
CLUSTER_SUBSCRIPTIONS = "subscriptions"
CLUSTER_PRODUCERS = "producers"
CLUSTER_CONSUMERS = "consumers"
BROKER_TOPICS = "broker_topics"
BROKER_COORDINATORS = "broker_coordinators"
BROKER_CONNECTIONS = "broker_connections_created"
BROKER_CONNECTION_RATE = "broker_connections_created_per_second"
TOPIC_BACKLOG = "topic_backlog_bytes"

MEASURES = {
    CLUSTER_BACKLOG: "backlog of all topics of the cluster, bytes; only where every broker was read",
    CLUSTER_TOPICS: "loaded topics of the cluster; the same",
    CLUSTER_SUBSCRIPTIONS: "subscriptions of the cluster's loaded topics; the same",
    CLUSTER_PRODUCERS: "connected producers of the cluster; the same",
    CLUSTER_CONSUMERS: "connected consumers of the cluster; the same",
    BROKER_TOPICS: "topics that are loaded on a broker",
    BROKER_COORDINATORS: "transaction coordinators that a broker holds",
    BROKER_CONNECTIONS: "connections (handshakes) that a broker accepted since it started",
    BROKER_CONNECTION_RATE: "connections that a broker accepted per second since the snapshot before",
    TOPIC_BACKLOG: "backlog, bytes, of one of the few topics whose backlog grows fastest",
}
"""Each measure's unit and meaning; subjects are the cluster, brokers (`host:webport`) and topics."""

IN_BYTES = frozenset({CLUSTER_BACKLOG, TOPIC_BACKLOG})
"""Measures in bytes; the others are counts."""


STARTED = "process_start_time_seconds"
"""Series of a process's start time, seconds since the epoch."""

BOOKIE_STATUS = "bookie_SERVER_STATUS"
"""State of a bookie, by its own metrics: 1 takes writes, 0 is read-only, -1 is not registered, so gets no writes."""

BOOKIE_WRITE_CACHE, BOOKIE_READ_CACHE = "dbStorage_writeCacheMaxSizeMb", "dbStorage_readAheadCacheMaxSizeMb"
"""Settings of a bookie: MiB of its caches in direct memory, for all of its directories."""

BOOKIE_WRITES_REFUSED, BOOKIE_READS_REFUSED = "maxPendingAddRequestsPerThread", "maxPendingReadRequestsPerThread"
"""Settings of a bookie: number of requests that wait for a thread from which on further ones are refused; 0: never."""

ZOOKEEPER_VERSION = "zookeeper_version"
"""Version of a ZooKeeper server, in the label `version`: no series of its own, but told by its admin server."""

PRODUCERS = "pulsar_producers_count"
"""Connected producers of a topic; every loaded topic has it."""

LOADED_TOPICS = "pulsar_topics_count"
"""Loaded topics of a namespace on a broker, exported even without metrics of single topics."""

TOPICS_OF_BROKER = "pulsar_broker_topics_count"
"""Loaded topics of a broker: one without topics exports this alone."""

TOPIC_THROUGHPUT = ("pulsar_throughput_in", "pulsar_throughput_out")
"""Bytes per second of a topic, in and out; without metrics of single topics, those of a namespace on the broker."""

SIZE_LIMIT = "pulsar_storage_backlog_quota_limit"
"""Size quota in force, bytes; -1 for none."""

PUBLISHING_LIMITED = "pulsar_publish_rate_limit_times"
"""How often a topic's producers were paused since it was loaded, for a rate or for pending entries; from 3.0 on."""

DISPATCHING_LIMITED = (
    "pulsar_subscription_dispatch_throttled_bytes_events",
    "pulsar_subscription_dispatch_throttled_msg_events",
)
"""How often a dispatch rate held a subscription back since its topic was loaded, by `reason`; in 4.0.7, not in 3.3.2.

Reasons are ``subscription``, ``topic`` and ``broker``: whose rate it was.
"""

AGE_LIMIT = "pulsar_storage_backlog_quota_limit_time"
"""Age quota in force, seconds; -1 for none."""

AGE = "pulsar_storage_backlog_age_seconds"
"""Age of the oldest message of the backlog; -1 if the broker does not know."""

DELAYED_SERIES = "pulsar_subscription_delayed"
"""Messages of a subscription that are not due yet."""

DELAYED_INDEX = "pulsar_delayed_message_index_size_bytes"
"""Bytes of the broker's memory for the index of a topic's or subscription's delayed messages."""

DELAYED_BUCKETS = "pulsar_delayed_message_index_bucket_total"
"""Buckets of a subscription's delayed index, including the one that is being filled."""

DELAYED_BUCKET_OPERATIONS = "pulsar_delayed_message_index_bucket_op_count"
"""Operations on a subscription's buckets since the metric was last read, by ``type`` and ``state``."""

WRITES_UNDER_A_SECOND = "pulsar_storage_write_latency_le_1000"
"""Entries of a topic in the last statistics period that took 200 ms to 1 s to publish."""

WRITES_OVER_A_SECOND = "pulsar_storage_write_latency_overflow"
"""Entries of a topic in the last statistics period that took over 1 s to publish."""
