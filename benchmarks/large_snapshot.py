"""Makes a snapshot as a large cluster gives it, without a cluster: every figure follows from a row's number.

One topic in a hundred thousand is in trouble of each kind, so that checks have something to list.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pulsar_steward.model.tables import COLLECTED
from steward_spark.place import SnapshotPlace
from steward_spark.schemas import spark_schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from pulsar_steward.model.tables import Table

TENANTS = 20
BUNDLES_A_NAMESPACE = 16
DRILLED_TOPICS = 200
RARE = 100_000

_TOPIC = "concat('persistent://', namespace, '/events-', i, '-partition-0')"
_BROKER = "concat('broker-', {number}, '.example:8080')"
_RARE = f"i % {RARE} = "
_QUOTAS = (
    '{"backlog_quota_map":{"destination_storage":{"limitSize":10737418240,"policy":"producer_request_hold"}},'
    '"retention_policies":{"retentionTimeInMinutes":1440,"retentionSizeInMB":20480}}'
)
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
    "delayedDeliveryTrackerFactoryClassName": (
        "org.apache.pulsar.broker.delayed.InMemoryDelayedDeliveryTrackerFactory"
    ),
    "loadBalancerNamespaceBundleMaxSessions": "1000",
    "loadBalancerNamespaceBundleMaxMsgRate": "30000",
    "loadBalancerNamespaceBundleMaxBandwidthMbytes": "100",
}


@dataclass(frozen=True)
class Cluster:
    """How large the cluster is.

    Attributes:
        topics: Partitions; every second has two subscriptions, the others have one.
        namespaces: Namespaces, of 16 bundles each.
        brokers: Brokers.
    """

    topics: int
    namespaces: int
    brokers: int


def write(spark: SparkSession, uri: str, cluster: Cluster) -> None:
    """Writes a finished snapshot, not yet diagnosed, in place of what is there."""
    place = SnapshotPlace(spark, uri)
    place.begin()
    made = _tables(spark, cluster)
    for table in COLLECTED:
        place.write(table, _complete(table, made[table.name]))
    place.finish()


def _complete(table: Table, frame: DataFrame) -> DataFrame:
    """With all columns, in their types; those that the frame leaves out are null."""
    fields = spark_schema(table)
    columns = (
        f"cast({field.name if field.name in frame.columns else 'null'} as {field.dataType.simpleString()})"
        f" as {field.name}"
        for field in fields
    )
    return frame.selectExpr(*columns)


def _numbered(spark: SparkSession, count: int, columns: Mapping[str, str]) -> DataFrame:
    """Rows 0 to `count`, number `i`, with columns that may use those before them."""
    frame = spark.range(count).withColumnRenamed("id", "i")
    for name, expression in columns.items():
        frame = frame.selectExpr("*", f"{expression} as {name}")
    return frame


def _tables(spark: SparkSession, cluster: Cluster) -> dict[str, DataFrame]:
    topics = _topics(spark, cluster)
    subscriptions = _subscriptions(topics)
    brokers = _brokers(spark, cluster)
    return {
        "snapshot": spark.range(1).selectExpr(
            "'large' as cluster",
            "timestamp'2026-01-31 12:00:00' as taken_at",
            "'4.0.7' as pulsar_version",
            "array() as unread_brokers",
            "array() as unread_namespaces",
            "16 as coordinators",
            "true as tcs_by_bundle",
        ),
        "brokers": brokers,
        "bundles": _bundles(topics),
        "topics": topics,
        "subscriptions": subscriptions,
        "transaction_coordinators": _numbered(
            spark, 16, {"coordinator": "i", "broker": _broker(f"i % {cluster.brokers}"), "broker_known": "true"}
        ),
        "namespaces": _namespaces(spark, cluster),
        "clients": _clients(subscriptions),
        "configuration": _configuration(brokers),
        "metrics": _metrics(topics, subscriptions, brokers),
        "drilled": _drilled(subscriptions),
    }


def _broker(number: str) -> str:
    return _BROKER.format(number=number)


def _namespace(number: str) -> str:
    return f"concat('tenant-', ({number}) % {TENANTS}, '/ns-', {number})"


def _topics(spark: SparkSession, cluster: Cluster) -> DataFrame:
    number = f"(i % {cluster.namespaces})"
    slot = f"((i div {cluster.namespaces}) % {BUNDLES_A_NAMESPACE})"
    return _numbered(
        spark,
        cluster.topics,
        {
            "namespace": _namespace(number),
            "topic": _TOPIC,
            "bundle": f"format_string('0x%x0000000_0x%x0000000', {slot}, {slot} + 1)",
            "broker": _broker(f"({number} * {BUNDLES_A_NAMESPACE} + {slot}) % {cluster.brokers}"),
            "producers": f"if({_RARE} 1, 5000, i % 3)",
            "consumers": f"if({_RARE} 2, 5000, 1 + i % 4)",
            "subscriptions": "1 + i % 2",
            "message_rate_in": "i % 17 + 0.0",
            "message_rate_out": "i % 17 + 0.0",
            "throughput_in_bytes": "i % 17 * 1000.0",
            "throughput_out_bytes": "i % 17 * 1000.0",
            "pending_add_entries": "0",
            "producers_connected_recently": "0",
            "storage_bytes": "1000000 + i",
            "backlog_bytes": f"case when {_RARE} 3 then 10700000000 when i % 2 = 0 then i % 1000000 else 0 end",
        },
    )


def _subscriptions(topics: DataFrame) -> DataFrame:
    each = topics.selectExpr("i", "topic", "namespace", "explode(sequence(1, subscriptions)) as n")
    return each.selectExpr(
        "*",
        "concat('subscription-', n) as subscription",
        "'Shared' as type",
        "1 + i % 2 as consumers",
        f"case when {_RARE} 3 then 9000000 when i % 2 = 0 then i % 1000 else 0 end as backlog_messages",
        "i % 5 as unacked_messages",
        f"{_RARE} 4 as blocked_on_unacked",
        f"if({_RARE} 5, 20000, if(i % 20 = 0, i % 7, 0)) as ack_holes",
        "i % 100 as entries_since_first_gap",
        "0L as consumers_blocked",
        "0L as consumers_without_permits",
        "0L as consumers_connected_recently",
        "if(i % 6 = 0, 0.0, 5.0) as message_rate_out",
        "if(i % 6 = 0, 0.0, 5.0) as ack_rate",
        "0.0 as redeliver_rate",
        "0.0 as expired_rate",
    )


def _brokers(spark: SparkSession, cluster: Cluster) -> DataFrame:
    mean = cluster.topics // cluster.brokers
    return _numbered(
        spark,
        cluster.brokers,
        {
            "broker": _broker("i"),
            "read": "true",
            "leader": "i = 0",
            "bundles": f"{cluster.namespaces * BUNDLES_A_NAMESPACE // cluster.brokers}",
            "topics": f"{mean} + i",
            "producers": f"{mean}",
            "consumers": f"{2 * mean}",
            "cpu_percent": "30.0 + i % 20",
            "direct_memory_percent": "40.0",
            "metrics_read": "true",
            "clock_skew_milliseconds": "i % 3 * 100",
        },
    )


def _bundles(topics: DataFrame) -> DataFrame:
    return topics.groupBy("namespace", "bundle").agg(
        {"broker": "max", "topic": "count", "producers": "sum", "consumers": "sum", "backlog_bytes": "sum"}
    ).selectExpr(
        "namespace",
        "bundle",
        "`max(broker)` as owner",
        "true as owner_known",
        "`count(topic)` as topics",
        "`sum(producers)` as producers",
        "`sum(consumers)` as consumers",
        "`count(topic)` * 8.0 as message_rate_in",
        "`count(topic)` * 8.0 as message_rate_out",
        "`count(topic)` * 8000.0 as throughput_in_bytes",
        "`count(topic)` * 8000.0 as throughput_out_bytes",
        "`sum(backlog_bytes)` as backlog_bytes",
    )  # fmt: skip


def _namespaces(spark: SparkSession, cluster: Cluster) -> DataFrame:
    columns = {
        "namespace": _namespace("i"),
        "bundles": f"{BUNDLES_A_NAMESPACE}",
        "policies_json": f"if(i % 2 = 1, '{_QUOTAS}', '{{}}')",
    }
    return _numbered(spark, cluster.namespaces, columns)


def _clients(subscriptions: DataFrame) -> DataFrame:
    return subscriptions.where("i % 20 = 3").selectExpr(
        "topic", "namespace", "subscription", "concat('consumer-', i) as consumer", "'192.0.2.1:4711' as address",
        "'2026-01-31T11:00:00Z' as connected_since", "i as unacked_messages", "10 as available_permits",
        "false as blocked",
    )  # fmt: skip


def _configuration(brokers: DataFrame) -> DataFrame:
    settings = ", ".join(f"'{key}', '{value}'" for key, value in _SETTINGS.items())
    return brokers.selectExpr("broker", f"explode(map({settings})) as (key, value)")


def _metrics(topics: DataFrame, subscriptions: DataFrame, brokers: DataFrame) -> DataFrame:
    """The age of each topic's backlog, delayed messages of every third topic's subscriptions, and the brokers' own."""
    ages = topics.selectExpr(
        "broker as source", "'pulsar_storage_backlog_age_seconds' as series", "topic", "null as subscription",
        "concat('{\"topic\":\"', topic, '\"}') as labels_json", "i % 3600 + 0.0 as value",
    )  # fmt: skip
    owners = topics.where("i % 3 = 0").select("topic", "broker")
    delayed = subscriptions.join(owners, "topic").selectExpr(
        "broker as source", "explode(array('pulsar_subscription_delayed', 'pulsar_delayed_message_index_size_bytes'))"
        " as series", "topic", "subscription", "concat('{\"subscription\":\"', subscription, '\"}') as labels_json",
        f"if({_RARE} 6, 5000000.0, 1.0 + i % 50) as value",
    )  # fmt: skip
    own = brokers.selectExpr(
        "broker as source",
        "explode(map('process_start_time_seconds', 1769774400.0, 'jvm_gc_collection_seconds_sum', 60.0,"
        " 'jvm_gc_collection_seconds_count', 600.0, 'pulsar_active_connections', 1000.0,"
        " 'pulsar_connection_create_success_count', 2000.0, 'jvm_threads_deadlocked', 0.0)) as (series, value)",
    ).selectExpr("source", "series", "null as topic", "null as subscription", "'{}' as labels_json", "value")
    both = ages.unionByName(delayed).unionByName(own)
    return both.selectExpr("*", "'broker' as source_kind")


def _drilled(subscriptions: DataFrame) -> DataFrame:
    return subscriptions.where(f"i < {DRILLED_TOPICS}").selectExpr(
        "topic", "namespace", "subscription", "0 as delayed_messages", "i % 3600 as oldest_backlog_age_seconds",
        "1000 as ack_state_bytes", "i % 7 as ack_hole_ranges", "'{}' as topic_quota_json", "'{}' as"
        " topic_retention_json", "3 as ledgers", "'[]' as cursor_properties_json",
    )  # fmt: skip
