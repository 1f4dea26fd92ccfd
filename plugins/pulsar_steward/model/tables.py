"""Every table of a snapshot: its columns, their types, units and meaning, defined once for Arrow and Spark.

A snapshot is a folder of these tables, each a folder of Parquet files::

    snapshots/cluster=<name>/taken_at=<UTC>/<table>/*.parquet      and, last of all, _SUCCESS

Arrow schemas (`collect`) and Spark schemas (`steward_spark`) are made from this; nothing else names a column's type.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Kind(StrEnum):
    """Types of columns, in the notation that Arrow and Spark's SQL share."""

    STRING = "string"
    INT = "int"
    LONG = "bigint"
    DOUBLE = "double"
    BOOLEAN = "boolean"
    TIMESTAMP = "timestamp"
    LONGS = "array<bigint>"
    STRINGS = "array<string>"


class Column(msgspec.Struct, frozen=True):
    """One column: its name, type and meaning; units are in the name or the meaning."""

    name: str
    kind: Kind
    meaning: str


class Table(msgspec.Struct, frozen=True):
    """One table, its rows' meaning and its columns in order."""

    name: str
    rows: str
    columns: tuple[Column, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names, in order."""
        return tuple(column.name for column in self.columns)


SNAPSHOT = Table(
    "snapshot",
    "one row: what this snapshot is, and whether it is whole",
    (
        Column("snapshot_id", Kind.STRING, "`<cluster>-<taken_at>`"),
        Column("cluster", Kind.STRING, "the cluster's name in Steward's connections"),
        Column("pulsar_cluster", Kind.STRING, "the cluster's own name (`clusterName`)"),
        Column("metadata_id", Kind.STRING, "of its metadata store's addresses; null where brokers do not tell them"),
        Column("metadata_store", Kind.STRING, "its kind (`zk`, `oxia`); null as above, and in older snapshots"),
        Column("taken_at", Kind.TIMESTAMP, "when collecting began, UTC"),
        Column("pulsar_version", Kind.STRING, "as the first broker that answered says it"),
        Column("load_manager", Kind.STRING, "class name of the brokers' load manager"),
        Column("unread_brokers", Kind.STRINGS, "brokers that are listed but did not answer: the snapshot is partial"),
        Column(
            "unread_namespaces",
            Kind.STRINGS,
            "namespaces, and what of the whole cluster, could not be read: partial as well",
        ),
        Column("coordinators", Kind.INT, "transaction coordinators; 0 where transactions are off"),
        Column("bookies", Kind.INT, "bookies that belong to the cluster, up or down; null where brokers do not tell"),
        Column(
            "isolation_json",
            Kind.STRING,
            "namespace isolation policies by name, JSON; null where they could not be read, and in older snapshots",
        ),
        Column("read_from", Kind.TIMESTAMP, "when the reading of brokers began, UTC; null in older snapshots"),
        Column("read_until", Kind.TIMESTAMP, "when it ended, UTC; null as above"),
        Column(
            "served_elsewhere",
            Kind.STRINGS,
            "namespaces that are listed, but that only other clusters of the configuration store serve; null as above",
        ),
        Column("configuration_store_id", Kind.STRING, "of its configuration store's addresses, as `metadata_id`"),
        Column("system", Kind.STRING, "`kafka`, where only the tables `kafka_...` tell more; null or `pulsar`: Pulsar"),
        Column("servers", Kind.STRING, "of Kafka: the addresses `host:port,...` that it was asked by; null: of Pulsar"),
    ),
)

BROKERS = Table(
    "brokers",
    "one row a broker that the cluster lists, read or not",
    (
        Column("broker", Kind.STRING, "`host:webport`"),
        Column("read", Kind.BOOLEAN, "false: it is listed but did not answer, and nothing of it is in this snapshot"),
        Column("failure", Kind.STRING, "why it could not be read; null where it was"),
        Column("leader", Kind.BOOLEAN, "whether it leads the load manager"),
        Column("pulsar_version", Kind.STRING, "as it says itself; null where not read, or it says none"),
        Column("bundles", Kind.INT, "bundles that it owns; null where not read"),
        Column("topics", Kind.LONG, "topics that are loaded on it; null where not read"),
        Column("producers", Kind.LONG, "connected producers; null where not read"),
        Column("consumers", Kind.LONG, "connected consumers; null where not read"),
        Column("cpu_percent", Kind.DOUBLE, "use of its limit; null where not reported"),
        Column("processors", Kind.DOUBLE, "that limit, by its load report: of its container or machine; null: unknown"),
        Column("memory_percent", Kind.DOUBLE, "heap in use of its limit; null where not reported"),
        Column("direct_memory_percent", Kind.DOUBLE, "direct memory in use of its limit; null where not reported"),
        Column("message_rate_in", Kind.DOUBLE, "messages per second from producers"),
        Column("message_rate_out", Kind.DOUBLE, "messages per second to consumers"),
        Column("throughput_in_bytes", Kind.DOUBLE, "bytes per second from producers"),
        Column("throughput_out_bytes", Kind.DOUBLE, "bytes per second to consumers"),
        Column(
            "metrics_read", Kind.BOOLEAN, "its Prometheus text: true whole, false cut off for its size, null unread"
        ),
        Column("clock_skew_milliseconds", Kind.LONG, "its clock ahead of the asking machine's, to 1 s; null: unknown"),
        Column("read_milliseconds", Kind.INT, "how long reading it took"),
    ),
)

BUNDLES = Table(
    "bundles",
    "one row a bundle of any namespace, owned or not",
    (
        Column("namespace", Kind.STRING, "`tenant/namespace`"),
        Column("bundle", Kind.STRING, "the range, `0x00000000_0x10000000`"),
        Column("owner", Kind.STRING, "`host:webport`; null where nobody owns it or its owner could not be read"),
        Column("owner_known", Kind.BOOLEAN, "false: an unread broker may own it"),
        Column("topics", Kind.LONG, "topics loaded in it, as the owner's statistics show (up to a minute old)"),
        Column("producers", Kind.LONG, "connected producers"),
        Column("consumers", Kind.LONG, "connected consumers"),
        Column("message_rate_in", Kind.DOUBLE, "messages per second from producers"),
        Column("message_rate_out", Kind.DOUBLE, "messages per second to consumers"),
        Column("throughput_in_bytes", Kind.DOUBLE, "bytes per second from producers"),
        Column("throughput_out_bytes", Kind.DOUBLE, "bytes per second to consumers"),
        Column("backlog_bytes", Kind.LONG, "backlog of all topics in it"),
        Column(
            "positions",
            Kind.LONGS,
            "hash positions of its topics, sorted; of `pulsar/system` and large bundles, or null",
        ),
    ),
)

TOPICS = Table(
    "topics",
    "one row a loaded topic (a partition is a topic)",
    (
        Column("topic", Kind.STRING, "full name, `persistent://tenant/ns/name-partition-0`"),
        Column("namespace", Kind.STRING, "`tenant/namespace`"),
        Column("bundle", Kind.STRING, "the range that holds it"),
        Column("broker", Kind.STRING, "the owner, `host:webport`"),
        Column("producers", Kind.LONG, "connected producers"),
        Column("consumers", Kind.LONG, "connected consumers of all subscriptions"),
        Column("subscriptions", Kind.INT, "subscriptions"),
        Column("message_rate_in", Kind.DOUBLE, "messages per second from producers"),
        Column("message_rate_out", Kind.DOUBLE, "messages per second to consumers"),
        Column("throughput_in_bytes", Kind.DOUBLE, "bytes per second from producers"),
        Column("throughput_out_bytes", Kind.DOUBLE, "bytes per second to consumers"),
        Column("pending_add_entries", Kind.LONG, "entries that wait to be written to bookies"),
        Column("producers_connected_recently", Kind.LONG, "of them, within the policy's `collect.recent_minutes`"),
        Column("storage_bytes", Kind.LONG, "bytes stored"),
        Column("backlog_bytes", Kind.LONG, "bytes not consumed by the slowest subscription"),
        Column(
            "replication_json",
            Kind.STRING,
            "an array with an object a remote cluster: `cluster`, `connected`, `backlog_entries`, `message_rate_out`,"
            " `expired_rate`, `delay_seconds` of what is on its way, `inbound` (that cluster is connected in turn) and"
            " its `message_rate_in`; null: replicated to none",
        ),
    ),
)

SUBSCRIPTIONS = Table(
    "subscriptions",
    "one row a subscription of a loaded topic",
    (
        Column("topic", Kind.STRING, "full name of the topic"),
        Column("namespace", Kind.STRING, "`tenant/namespace`"),
        Column("subscription", Kind.STRING, "its name"),
        Column("type", Kind.STRING, "Exclusive, Shared, Failover, Key_Shared or None"),
        Column("consumers", Kind.LONG, "connected consumers"),
        Column("backlog_entries", Kind.LONG, "entries not acknowledged (`msgBacklog`); a batch is one entry"),
        Column("messages_per_entry", Kind.LONG, "of what its consumers got lately, the most; null where not known"),
        Column("unacked_messages", Kind.LONG, "sent to consumers and not yet acknowledged"),
        Column("blocked_on_unacked", Kind.BOOLEAN, "whether it is blocked for too many of them"),
        Column("ack_holes", Kind.LONG, "ranges of individual acknowledgements beyond the first gap"),
        Column("entries_since_first_gap", Kind.LONG, "entries from the first not acknowledged to what is read next"),
        Column("consumers_blocked", Kind.LONG, "consumers that get nothing for too many unacknowledged messages"),
        Column("consumers_without_permits", Kind.LONG, "consumers that have not asked for more (no permits left)"),
        Column("consumers_stuck", Kind.LONG, "without permits, and got and acknowledged nothing in the last minute"),
        Column("consumers_connected_recently", Kind.LONG, "within the policy's `collect.recent_minutes`"),
        Column("message_rate_out", Kind.DOUBLE, "messages per second to consumers"),
        Column("ack_rate", Kind.DOUBLE, "acknowledgements per second"),
        Column("redeliver_rate", Kind.DOUBLE, "messages per second that are delivered again"),
        Column("expired_rate", Kind.DOUBLE, "entries per second that expire (TTL)"),
    ),
)

TRANSACTION_COORDINATORS = Table(
    "transaction_coordinators",
    "one row a transaction coordinator",
    (
        Column("coordinator", Kind.INT, "its id, from 0"),
        Column("position", Kind.LONG, "hash position of its assignment partition"),
        Column("bundle", Kind.STRING, "the range of `pulsar/system` that places it"),
        Column("broker", Kind.STRING, "who holds it; null where nobody does or it cannot be known"),
        Column("broker_known", Kind.BOOLEAN, "false: an unread broker may hold it"),
    ),
)

NAMESPACES = Table(
    "namespaces",
    "one row a namespace",
    (
        Column("namespace", Kind.STRING, "`tenant/namespace`"),
        Column("bundles", Kind.INT, "bundles that it is divided into"),
        Column("boundaries", Kind.STRINGS, "their boundaries, rising, hexadecimal"),
        Column("policies_json", Kind.STRING, "its policies as the brokers gave them, JSON"),
        Column("allowed_brokers", Kind.STRINGS, "brokers that isolation policies leave to it; null: every broker"),
    ),
)

CLIENTS = Table(
    "clients",
    "one row a consumer worth naming: the worst few of a subscription that has a backlog or unacknowledged messages",
    (
        Column("topic", Kind.STRING, "full name of the topic"),
        Column("namespace", Kind.STRING, "`tenant/namespace`"),
        Column("subscription", Kind.STRING, "the subscription"),
        Column("consumer", Kind.STRING, "its name, as the client gave it"),
        Column("address", Kind.STRING, "`host:port` of the client"),
        Column("connected_since", Kind.STRING, "as the broker writes it, RFC 3339"),
        Column("unacked_messages", Kind.LONG, "sent and not yet acknowledged; null where not counted (Exclusive)"),
        Column("available_permits", Kind.LONG, "messages that it has asked for and not been sent"),
        Column("blocked", Kind.BOOLEAN, "whether it gets nothing for too many unacknowledged messages"),
        Column("message_rate_out", Kind.DOUBLE, "messages per second to it"),
        Column("ack_rate", Kind.DOUBLE, "its acknowledgements per second"),
    ),
)

CLIENT_VERSIONS = Table(
    "client_versions",
    "one row a version of clients in a namespace, of a broker's loaded topics without a namespace's own (`__...`)",
    (
        Column("broker", Kind.STRING, "the owner of the topics, `host:webport`"),
        Column("namespace", Kind.STRING, "`tenant/namespace`"),
        Column("client_version", Kind.STRING, "as clients say it; empty where the broker knows none"),
        Column("producers", Kind.LONG, "connected producers of that version"),
        Column("consumers", Kind.LONG, "connected consumers of that version"),
        Column("hosts", Kind.LONG, "their hosts, up to 1000; null where nothing is known against the version"),
        Column("busiest_hosts", Kind.STRINGS, "those with most of them, the most first"),
        Column("example_topic", Kind.STRING, "the first topic by name with such a client"),
        Column("example_client", Kind.STRING, "the name of that producer or consumer"),
    ),
)

CONFIGURATION = Table(
    "configuration",
    "one row a setting of a broker that a check looks at; settings that could hold a secret are never read",
    (
        Column("broker", Kind.STRING, "`host:webport`"),
        Column("key", Kind.STRING, "the setting's name in `broker.conf`"),
        Column("value", Kind.STRING, "its value as the broker runs with it, always text"),
    ),
)

METRICS = Table(
    "metrics",
    "one row a Prometheus sample that a check looks at; of what rests at 0, or at -1 for no limit, only what does not "
    "rest and the first of each source and series",
    (
        Column("source", Kind.STRING, "`host:port` of who was asked"),
        Column("source_kind", Kind.STRING, "broker, bookie or zookeeper"),
        Column("series", Kind.STRING, "the sample's name, suffixes such as `_sum` included"),
        Column("topic", Kind.STRING, "the label `topic`; null where there is none"),
        Column("subscription", Kind.STRING, "the label `subscription`; null where there is none"),
        Column("labels_json", Kind.STRING, "all labels, a JSON object, keys sorted"),
        Column("value", Kind.DOUBLE, "the sample's value"),
    ),
)

DRILLED = Table(
    "drilled",
    "one row a subscription of a suspect: a loaded topic whose own statistics were asked for, within a budget",
    (
        Column("topic", Kind.STRING, "full name of the topic"),
        Column("namespace", Kind.STRING, "`tenant/namespace`"),
        Column("subscription", Kind.STRING, "its name; null for the topic itself where it has none"),
        Column("delayed_messages", Kind.LONG, "messages that wait for their time (`msgDelayed`)"),
        Column("delayed_index_bytes", Kind.LONG, "`delayedMessageIndexSizeInBytes`"),
        Column("delayed_buckets", Kind.INT, "buckets of a bucket tracker; null where not told"),
        Column("ack_state_bytes", Kind.LONG, "`nonContiguousDeletedMessagesRangesSerializedSize`"),
        Column("oldest_backlog_age_seconds", Kind.LONG, "of the topic; -1: its broker does not know; null: not told"),
        Column("quota_limit_bytes", Kind.LONG, "`backlogQuotaLimitSize` in force; -1: none; null: not told (2.10)"),
        Column("quota_limit_seconds", Kind.LONG, "`backlogQuotaLimitTime` in force; 0 or less: none; null: as above"),
        Column("slowest_subscription", Kind.STRING, "`oldestBacklogMessageSubscriptionName`; null where not told"),
        Column("last_consumed_milliseconds", Kind.LONG, "`lastConsumedTimestamp`, since the epoch; 0: never"),
        Column("last_acked_milliseconds", Kind.LONG, "`lastAckedTimestamp`, since the epoch; 0: never"),
        Column(
            "holders_json",
            Kind.STRING,
            "an array with an object a consumer that holds messages, the worst few: `consumer`, `address`,"
            " `connected_since`, `unacked_messages`, `messages_per_entry` (0: not known), `acked_milliseconds`,"
            " `consumed_milliseconds`, `draining_hashes`, `draining_messages`; null: not told",
        ),
        Column(
            "consumers_waiting", Kind.LONG, "Key_Shared consumers that joined later and get nothing yet (before 4.0)"
        ),
        Column("topic_quota_json", Kind.STRING, "set on the topic itself (`backlogQuotaMap`), {}: none; null: unread"),
        Column("topic_retention_json", Kind.STRING, "retention set on the topic itself, {}: none; null: unread"),
        Column(
            "topic_rates_json",
            Kind.STRING,
            "rates set on the topic itself (`publishRate`, `dispatchRate`, `subscriptionDispatchRate`), {}: none of"
            " those that were asked for, as one held something back; null: unread",
        ),
        Column("ledgers", Kind.INT, "ledgers that the topic still has (`internalStats`); null where not asked"),
        Column("offloaded_bytes", Kind.LONG, "`offloadedStorageSize` of the topic; null: not told"),
        Column("offloaded_milliseconds", Kind.LONG, "`lastOffloadSuccessTimeStamp`, since the epoch; 0: never"),
        Column("offload_failed_milliseconds", Kind.LONG, "`lastOffloadFailureTimeStamp`, since the epoch; 0: never"),
        Column("publishing_limited", Kind.LONG, "`publishRateLimitedTimes` of the topic since it was loaded"),
        Column("dispatching_limited", Kind.LONG, "how often a dispatch rate held the subscription back, since then"),
        Column("compacted_milliseconds", Kind.LONG, "`lastCompactionSucceedTimestamp`, since the epoch; 0: never"),
        Column("compaction_failed_milliseconds", Kind.LONG, "`lastCompactionFailedTimestamp`, as above"),
        Column("oldest_ledger_milliseconds", Kind.LONG, "when its oldest ledger was closed; null: not asked, or open"),
        Column(
            "unread_closed_milliseconds",
            Kind.LONG,
            "when the ledger of the first entry that the subscription has not consumed was closed; null: as above",
        ),
        Column("entries_behind", Kind.LONG, "after the subscription's position, acknowledged ones too; null: as above"),
        Column("deduplication_entries", Kind.LONG, "not passed by the cursor `pulsar.dedup`; null: not asked, or none"),
        Column("cursor_properties_json", Kind.STRING, "names of the cursor's properties, an array; null: not asked"),
        Column("expired_messages", Kind.LONG, "`totalMsgExpired` of the subscription since its topic was loaded"),
        Column("cursor_json", Kind.STRING, "the cursor's identity (`Cursor` in JSON); null: not asked, or not told"),
        Column("replicated", Kind.BOOLEAN, "whether its position is replicated to other clusters (`isReplicated`)"),
    ),
)

KAFKA_BROKERS = Table(
    "kafka_brokers",
    "one row a broker of a Kafka cluster that it lists, or that holds replicas",
    (
        Column("id", Kind.INT, "its number (`node.id`)"),
        Column("broker", Kind.STRING, "`broker <id>`, as in `brokers`"),
        Column("address", Kind.STRING, "`host:port` that it tells clients; null where it is not listed"),
        Column("rack", Kind.STRING, "its rack; null where it has none, or is not listed"),
        Column("listed", Kind.BOOLEAN, "false: it holds replicas, yet the cluster does not list it: it is down"),
    ),
)

KAFKA_PARTITIONS = Table(
    "kafka_partitions",
    "one row a partition of a Kafka topic",
    (
        Column("topic", Kind.STRING, "name of the topic"),
        Column("partition", Kind.INT, "its number, from 0"),
        Column("leader", Kind.INT, "id of the broker that leads it; null: none does, so nobody can use it"),
        Column("replicas", Kind.LONGS, "ids of the brokers that hold it, the preferred leader first"),
        Column("in_sync", Kind.LONGS, "those of them that are in sync"),
    ),
)

KAFKA_TOPICS = Table(
    "kafka_topics",
    "one row a Kafka topic with a replica that is missing or out of sync: its settings",
    (
        Column("topic", Kind.STRING, "name of the topic"),
        Column("min_in_sync", Kind.LONG, "`min.insync.replicas` in force: its own, or that of the brokers"),
    ),
)

KAFKA_GROUPS = Table(
    "kafka_groups",
    "one row a consumer group of a Kafka cluster",
    (
        Column("group_id", Kind.STRING, "its name"),
        Column("state", Kind.STRING, "stable, empty, preparing_rebalancing and the like, as Kafka says it"),
        Column("partitions", Kind.LONG, "partitions that it has committed offsets of; null where they were not read"),
        Column("untold", Kind.LONG, "those of them whose end was not told, as without a leader; null as above"),
        Column("lag_messages", Kind.LONG, "of the others, offsets behind the end; null as above"),
        Column("topics", Kind.STRINGS, "topics that it has committed offsets of; null as above"),
    ),
)

KAFKA_LAGS = Table(
    "kafka_lags",
    "one row a consumer group and partition that it is behind on, or whose end it is beyond",
    (
        Column("group_id", Kind.STRING, "the group"),
        Column("topic", Kind.STRING, "the topic"),
        Column("partition", Kind.INT, "the partition"),
        Column("committed", Kind.LONG, "offset that the group committed: the next message; above the end: beyond it"),
        Column("start_offset", Kind.LONG, "offset of the oldest message that is kept; null where it was not told"),
        Column("end_offset", Kind.LONG, "offset behind the newest message"),
        Column("behind_seconds", Kind.LONG, "the age of what it can read next is this or more; null: not told"),
        Column("timed", Kind.BOOLEAN, "whether the age was asked for: of the most lagging partitions of each group"),
    ),
)

KAFKA_TABLES = (KAFKA_BROKERS, KAFKA_PARTITIONS, KAFKA_TOPICS, KAFKA_GROUPS, KAFKA_LAGS)
"""Tables that a snapshot of a Kafka cluster has besides `COLLECTED`, of which only three have rows then."""

FINDINGS = Table(
    "findings",
    "one row a finding of `diagnose`",
    (
        Column("check_id", Kind.STRING, "the check that found it"),
        Column("severity", Kind.STRING, "info, warning or critical"),
        Column("subject", Kind.STRING, "what it is about"),
        Column("evidence", Kind.STRING, "the trouble in a sentence, with its numbers"),
        Column("figures_json", Kind.STRING, "the same numbers by name, a JSON object of integers"),
        Column("first_seen", Kind.TIMESTAMP, "`taken_at` of the first of the snapshots in a row that show it"),
        Column("snapshots_in_a_row", Kind.INT, "how many these are, this one included"),
    ),
)

VERDICTS = Table(
    "verdicts",
    "one row a check: what it can say of this snapshot",
    (
        Column("check_id", Kind.STRING, "the check"),
        Column("outlook", Kind.STRING, "found, clear or unknown; a partial snapshot is never clear"),
        Column("reason", Kind.STRING, "why, in a sentence"),
        Column("more", Kind.LONG, "findings beyond those in `findings`; none has a worse severity than those"),
        Column("more_json", Kind.STRING, "of `more`, those of known severity, by it and by namespace (empty: other)"),
    ),
)

TRENDS = Table(
    "trends",
    "one row a figure and time, of this snapshot and earlier ones; what could not be read has none",
    (
        Column("measure", Kind.STRING, "what is measured, a name of `model.measures`"),
        Column("subject", Kind.STRING, "the cluster's name in Steward's connections, a broker or a topic"),
        Column("taken_at", Kind.TIMESTAMP, "`taken_at` of the snapshot that shows it, UTC"),
        Column("value", Kind.DOUBLE, "the figure"),
    ),
)

FAILOVERS = Table(
    "failovers",
    "one row a broker that told its load: how long its topics would be gone, as the check `failover-time` estimates it",
    (
        Column("broker", Kind.STRING, "`host:webport`"),
        Column("others", Kind.INT, "brokers that would take over; 0: only itself, once it is back"),
        Column("bundles", Kind.LONG, "bundles that would get a new owner"),
        Column("topics", Kind.LONG, "topics that would be loaded again"),
        Column("delayed_messages", Kind.LONG, "delayed messages that would be read again, at least"),
        Column("session_seconds", Kind.DOUBLE, "until its metadata session ends, where it does not end orderly"),
        Column("assigning_seconds", Kind.DOUBLE, "until all bundles have a new owner"),
        Column("loading_seconds", Kind.DOUBLE, "until all topics are loaded"),
        Column("reading_seconds", Kind.DOUBLE, "until the delayed messages are read"),
        Column("ended_seconds", Kind.LONG, "all of it, clients' part included, where it ends orderly"),
        Column("lost_seconds", Kind.LONG, "the same where it is lost, which is what the check judges"),
    ),
)

COLLECTED = (
    SNAPSHOT,
    BROKERS,
    BUNDLES,
    TOPICS,
    SUBSCRIPTIONS,
    TRANSACTION_COORDINATORS,
    NAMESPACES,
    CLIENTS,
    CLIENT_VERSIONS,
    CONFIGURATION,
    METRICS,
    DRILLED,
)
"""Tables that `collect` writes; a snapshot without one of them does not count."""

SHARDED = (TOPICS, SUBSCRIPTIONS, CLIENTS, METRICS)
"""Tables written in parts (shards), one for each collecting task: all rows of some brokers."""

SMALL = (*(table for table in COLLECTED if table not in SHARDED), *KAFKA_TABLES)
"""Tables that grow with brokers, bundles and namespaces, and those of Kafka; each shard gets all of them."""

DIAGNOSED = (FINDINGS, VERDICTS, TRENDS, FAILOVERS)
"""Tables that `diagnose` adds."""

SMALL_BEFORE = (*SMALL, FINDINGS)
"""Small tables of an earlier snapshot that checks may query; the present snapshot has no diagnosed tables yet."""
