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
