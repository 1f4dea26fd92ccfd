"""Makes a snapshot as a large cluster gives it, without a cluster: every figure follows from a row's number.

As when it is collected, what one broker answered is in one shard, and a shard is a file of each table. Figures are
scattered like real ones, so that files are not smaller than theirs. One topic in a hundred thousand is in trouble of
each kind, so that checks have something to list.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.large_metrics import metrics
from pulsar_steward.collect.reading import TaskDivision
from pulsar_steward.model.tables import BUNDLES, DRILLED, KAFKA_TABLES, SHARDED, SMALL
from pulsar_steward.snapshots.database import schema_of
from pulsar_steward.snapshots.folder import LocalFiles, SnapshotFolder

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pulsar_steward.model.tables import Table

TENANTS = 20
TOPICS_A_BUNDLE = 31
BUNDLES_A_NAMESPACE = 16
DRILLED_TOPICS = 200
RARE = 100_000
SHARDS = TaskDivision(tasks=4, at_once=1)
"""As collecting makes them on two cores, and more of many brokers."""
TOPICS_A_BROKER = 10_000

_QUOTAS = (
    '"backlog_quota_map":{"destination_storage":{"limit":-1,"limitSize":10737418240,"limitTime":0,'
    '"policy":"producer_request_hold"}},'
    '"retention_policies":{"retentionTimeInMinutes":1440,"retentionSizeInMB":20480},'
)
_REST = (
    '"replication_clusters":["large"],"deduplicationEnabled":false,"schema_compatibility_strategy":"FULL",'
    '"auth_policies":{"namespaceAuth":{"app":["produce","consume"]},"destinationAuth":{},"subscriptionAuth":{}},'
    '"subscription_auth_mode":"None","encryption_required":false,"max_producers_per_topic":0}'
)
# All that is collected, as 4.0.7 has them by default.
_SETTINGS = {
    "backlogQuotaCheckEnabled": "true",
    "backlogQuotaDefaultLimitGB": "-1.0",
    "backlogQuotaDefaultLimitBytes": "-1",
    "backlogQuotaDefaultLimitSecond": "-1",
    "backlogQuotaDefaultRetentionPolicy": "producer_request_hold",
    "defaultRetentionTimeInMinutes": "0",
    "defaultRetentionSizeInMB": "0",
    "ttlDurationDefaultInSeconds": "0",
    "managedLedgerMaxUnackedRangesToPersist": "10000",
    "managedLedgerPersistIndividualAckAsLongArray": "false",
    "maxMessageSize": "5242880",
    "delayedDeliveryMaxDelayInMillis": "0",
    "delayedDeliveryTrackerFactoryClassName": (
        "org.apache.pulsar.broker.delayed.InMemoryDelayedDeliveryTrackerFactory"
    ),
    "acknowledgmentAtBatchIndexLevelEnabled": "false",
    "backlogQuotaCheckIntervalInSeconds": "60",
    "delayedDeliveryMaxNumBuckets": "-1",
    "loadBalancerBrokerMaxTopics": "50000",
    "loadBalancerLoadSheddingStrategy": "org.apache.pulsar.broker.loadbalance.impl.ThresholdShedder",
    "loadBalancerSheddingEnabled": "true",
    "managedLedgerMaxBatchDeletedIndexToPersist": "10000",
    "managedLedgerMaxLedgerRolloverTimeMinutes": "240",
    "managedLedgerStatsPeriodSeconds": "60",
    "maxConcurrentTopicLoadRequest": "5000",
    "maxUnackedMessagesPerConsumer": "50000",
    "maxUnackedMessagesPerSubscription": "200000",
    "metadataStoreSessionTimeoutMillis": "30000",
    "numIOThreads": "16",
    "preciseTimeBasedBacklogQuotaCheck": "false",
    "topicLoadTimeoutSeconds": "60",
    "loadBalancerNamespaceBundleMaxSessions": "1000",
    "loadBalancerNamespaceBundleMaxMsgRate": "30000",
    "loadBalancerNamespaceBundleMaxBandwidthMbytes": "100",
}


@dataclass(frozen=True)
class Cluster:
    """Size of the cluster.

    Attributes:
        topics: Partitions; every second has two subscriptions, the others have one.
    """

    topics: int

    @property
    def brokers(self) -> int:
        """Brokers."""
        return max(100, self.topics // TOPICS_A_BROKER)

    @property
    def shards(self) -> int:
        """Shards of the snapshot."""
        return SHARDS.tasks_for(self.brokers)

    @property
    def bundles_a_broker(self) -> int:
        """Bundles that each broker owns."""
        return max(self.topics // TOPICS_A_BUNDLE // self.brokers, 1)

    @property
    def namespaces(self) -> int:
        """Namespaces, of 16 bundles each."""
        return -(-self.bundles_a_broker * self.brokers // BUNDLES_A_NAMESPACE)


def write(folder: Path, cluster: Cluster) -> None:
    """Writes a finished snapshot, not yet diagnosed, in place of what is there."""
    snapshot = SnapshotFolder(LocalFiles(), str(folder))
    snapshot.begin()
    parts: dict[str, list[pa.Table]] = {BUNDLES.name: [], DRILLED.name: []}
    with duckdb.connect() as connection:
        connection.execute(f"create temp table brokers as {_brokers(cluster)}")
        for shard in range(cluster.shards):
            connection.execute(f"create or replace temp table topics as {_topics(cluster, shard)}")
            connection.execute(f"create or replace temp table subscriptions as {_SUBSCRIPTIONS}")
            connection.execute(
                f"create or replace temp view own_brokers as from brokers where i % {cluster.shards} = {shard}"
            )
            large = {"topics": "from topics", "subscriptions": "from subscriptions", "clients": _CLIENTS}
            for table in SHARDED:
                rows = _rows(connection, table, metrics() if table.name == "metrics" else large[table.name])
                place = folder / table.name / f"shard-{shard}.parquet"
                place.parent.mkdir(parents=True, exist_ok=True)
                pq.write_table(rows, place, compression="zstd")
            parts[BUNDLES.name].append(_rows(connection, BUNDLES, _BUNDLES))
            parts[DRILLED.name].append(_rows(connection, DRILLED, _DRILLED))
        small = _small(cluster)
        for table in SMALL:
            if table.name in parts:
                snapshot.write(table, pa.concat_tables(parts[table.name]))
            elif table not in KAFKA_TABLES:
                snapshot.write(table, _rows(connection, table, small[table.name]))
    snapshot.finish()


def scattered(seed: str, below: int) -> str:
    """SQL of a whole number from 0 on, which follows from the row's number and a name."""
    return f"(hash(i, '{seed}') % {below})::bigint"


def rare(number: int) -> str:
    """SQL of whether a topic is in trouble of that number."""
    return f"i % {RARE} = {number}"


def _rows(connection: duckdb.DuckDBPyConnection, table: Table, query: str) -> pa.Table:
    """With all columns, in their types; those that the query leaves out are null."""
    rows = connection.sql(query).to_arrow_table()
    columns = [
        rows[field.name].cast(field.type) if field.name in rows.column_names else pa.nulls(rows.num_rows, field.type)
        for field in schema_of(table)
    ]
    return pa.Table.from_arrays(columns, schema=schema_of(table))


def _selected(columns: Mapping[str, str], numbers: str) -> str:
    """A select of columns that may use those before them, for each number `i`."""
    return f"select i, {', '.join(f'{sql} as {name}' for name, sql in columns.items())} from {numbers}"


def _numbered(count: int, columns: Mapping[str, str]) -> str:
    return _selected(columns, f"range({count}) as numbers(i)")


def _small(cluster: Cluster) -> dict[str, str]:
    """Questions for the tables that no shard has a part of."""
    settings = ", ".join(f"('{key}', '{value}')" for key, value in _SETTINGS.items())
    coordinator = {"coordinator": "i", "broker": _broker(f"i % {cluster.brokers}"), "broker_known": "true"}
    return {
        "snapshot": """
            select 'large-20260131T120000Z' as snapshot_id, 'large' as cluster, 'large' as pulsar_cluster,
                timestamptz '2026-01-31 12:00:00+00' as taken_at, '4.0.7' as pulsar_version,
                'org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl' as load_manager,
                []::varchar[] as unread_brokers, []::varchar[] as unread_namespaces, 16 as coordinators""",
        "brokers": "from brokers",
        "transaction_coordinators": _numbered(16, coordinator),
        "namespaces": _namespaces(cluster),
        "client_versions": """
            select broker, 'acme/ns-0' as namespace, 'Pulsar-Java-v4.0.7' as client_version, 20000 as producers,
                20000 as consumers, null as hosts, []::varchar[] as busiest_hosts from brokers""",
        "configuration": f"select broker, key, value from brokers, (values {settings}) as settings(key, value)",
    }


def _broker(number: str) -> str:
    return f"concat('broker-', {number}, '.example:8080')"


def _namespace(number: str) -> str:
    return f"concat('tenant-', ({number}) % {TENANTS}, '/ns-', {number})"


def _topics(cluster: Cluster, shard: int) -> str:
    """The topics of every fourth broker."""
    owner = f"i * {cluster.brokers} // {cluster.topics}"
    columns = {
        "owner": owner,
        "number": f"owner + {cluster.brokers} * (i % {cluster.bundles_a_broker})",
        "slot": f"number % {BUNDLES_A_NAMESPACE}",
        "namespace": _namespace(f"(number // {BUNDLES_A_NAMESPACE})"),
        "topic": "concat('persistent://', namespace, '/events-', i, '-partition-0')",
        "bundle": "format('0x{:x}0000000_', slot)"
        f" || if(slot = {BUNDLES_A_NAMESPACE - 1}, '0xffffffff', format('0x{{:x}}0000000', slot + 1))",
        "broker": _broker("owner"),
        "producers": f"if({rare(1)}, 5000, {scattered('producers', 3)})",
        "consumers": f"if({rare(2)}, 5000, 1 + {scattered('consumers', 4)})",
        "subscriptions": "1 + i % 2",
        "message_rate_in": f"{scattered('rate', 3400)} / 100.0",
        "message_rate_out": "message_rate_in * subscriptions",
        "throughput_in_bytes": "message_rate_in * 1000",
        "throughput_out_bytes": "message_rate_out * 1000",
        "pending_add_entries": "0",
        "producers_connected_recently": f"if({scattered('new', 50)} = 0, producers, 0)",
        "storage_bytes": f"if({rare(6)}, 50000000000, 1000000 + {scattered('stored', 100_000_000)})",
        "backlog_bytes": f"case when {rare(3)} then 10700000000 when {rare(6)} then 40000000000"
        f" when i % 2 = 0 then {scattered('backlog', 1_000_000)} else 0 end",
    }
    return _selected(columns, f"range({cluster.topics}) as numbers(i) where ({owner}) % {cluster.shards} = {shard}")


_RATE = f"case when {rare(7)} then 0.0 when i % 6 = 0 then 0.0 else {scattered('out', 3400)} / 100.0 end"
_SUBSCRIPTIONS = f"""
    select i, topic, namespace, broker, concat('subscription-', n) as subscription, 'Shared' as type,
        1 + {scattered("connected", 2)} as consumers,
        case when {rare(3)} then 9000000 when {rare(6)} then 100000 when {rare(7)} then 50000
            when i % 2 = 0 then {scattered("messages", 1000)} else 0 end as backlog_entries,
        {scattered("unacked", 5)} as unacked_messages,
        {rare(4)} as blocked_on_unacked,
        case when {rare(5)} then 20000 when i % 20 = 0 then {scattered("holes", 7)} else 0 end as ack_holes,
        if({rare(6)}, 9000000, {scattered("entries", 1000)}) as entries_since_first_gap,
        null::bigint as messages_per_entry,
        0 as consumers_blocked,
        if({scattered("permits", 100)} = 0, 1, 0) as consumers_without_permits,
        0 as consumers_stuck,
        if({scattered("recent", 50)} = 0, 1, 0) as consumers_connected_recently,
        {_RATE} as message_rate_out,
        {_RATE} as ack_rate,
        0.0 as redeliver_rate,
        if({rare(8)}, 2.5, 0.0) as expired_rate
    from (select i, topic, namespace, broker, unnest(range(1, subscriptions + 1)) as n from topics)
"""

_SUMS = ("message_rate_in", "message_rate_out", "throughput_in_bytes", "throughput_out_bytes")
_BUNDLES = f"""
    select namespace, bundle, max(broker) as owner, true as owner_known, count(*) as topics,
        {", ".join(f"sum({name}) as {name}" for name in (*_SUMS, "producers", "consumers", "backlog_bytes"))}
    from topics group by namespace, bundle order by namespace, bundle
"""

_CLIENTS = f"""
    select topic, namespace, subscription, concat('consumer-', i) as consumer,
        concat('192.0.2.', {scattered("address", 254)}, ':', 1024 + {scattered("port", 60_000)}) as address,
        '2026-01-31T11:00:00Z' as connected_since, unacked_messages, 10 as available_permits, false as blocked
    from subscriptions where i % 4 = 0
"""

_DRILLED = f"""
    select topic, namespace, subscription, 0 as delayed_messages, i % 3600 as oldest_backlog_age_seconds,
        1000 as ack_state_bytes, 10737418240 as quota_limit_bytes,
        '{{}}' as topic_quota_json, '{{}}' as topic_retention_json, 3 as ledgers, '[]' as cursor_properties_json
    from subscriptions where i < {DRILLED_TOPICS} order by topic, subscription
"""
"""The topics in trouble, and others."""


def _brokers(cluster: Cluster) -> str:
    mean = cluster.topics // cluster.brokers
    columns = {
        "broker": _broker("i"),
        "read": "true",
        "leader": "i = 0",
        "bundles": f"{cluster.bundles_a_broker}",
        "topics": f"{mean}",
        "producers": f"{mean}",
        "consumers": f"{2 * mean}",
        "cpu_percent": "30.0 + i % 20",
        "direct_memory_percent": "40.0",
        "metrics_read": "true",
        "clock_skew_milliseconds": "i % 3 * 100",
        "read_milliseconds": "20 + i % 30",
    }
    return _numbered(cluster.brokers, columns)


def _namespaces(cluster: Cluster) -> str:
    """Every fourth sets no quota; one in a hundred has a time to live."""
    ttl = "if(i % 100 = 12, '\"message_ttl_in_seconds\":604800,', '')"
    columns = {
        "namespace": _namespace("i"),
        "bundles": f"{BUNDLES_A_NAMESPACE}",
        "policies_json": f"concat('{{', if(i % 4 = 0, '', '{_QUOTAS}'), {ttl}, '{_REST}')",
    }
    return _numbered(cluster.namespaces, columns)
