"""Makes a snapshot as a large cluster gives it, without a cluster: every figure follows from a row's number.

As when it is collected, what one broker answered is in one place of each table's few files. Figures are scattered
like real ones, so that files are not smaller than theirs. One topic in a hundred thousand is in trouble of each kind,
so that checks have something to list.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.large_metrics import metrics
from pulsar_steward.model.tables import COLLECTED
from steward_spark.place import SnapshotPlace
from steward_spark.schemas import spark_schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from pulsar_steward.model.tables import Table

TENANTS = 20
TOPICS_A_BUNDLE = 31
BUNDLES_A_NAMESPACE = 16
DRILLED_TOPICS = 200
RARE = 100_000
FEW_FILES = 4
"""Of each large table, as `collect` writes them on two cores."""

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
    "loadBalancerNamespaceBundleMaxSessions": "1000",
    "loadBalancerNamespaceBundleMaxMsgRate": "30000",
    "loadBalancerNamespaceBundleMaxBandwidthMbytes": "100",
}


@dataclass(frozen=True)
class Cluster:
    """How large the cluster is.

    Attributes:
        topics: Partitions; every second has two subscriptions, the others have one.
        brokers: Brokers.
    """

    topics: int
    brokers: int = 100

    @property
    def bundles_a_broker(self) -> int:
        """Bundles that each broker owns."""
        return max(self.topics // TOPICS_A_BUNDLE // self.brokers, 1)

    @property
    def namespaces(self) -> int:
        """Namespaces, of 16 bundles each."""
        return -(-self.bundles_a_broker * self.brokers // BUNDLES_A_NAMESPACE)


def write(spark: SparkSession, uri: str, cluster: Cluster) -> None:
    """Writes a finished snapshot, not yet diagnosed, in place of what is there."""
    place = SnapshotPlace(spark, uri)
    place.begin()
    made = _tables(spark, cluster)
    for table in COLLECTED:
        place.write(table, _complete(table, made[table.name]))
    place.finish()


def scattered(seed: str, below: int) -> str:
    """SQL of a whole number from 0 on, which follows from the row's number and a name."""
    return f"pmod(xxhash64(i, '{seed}'), {below})"


def rare(number: int) -> str:
    """SQL of whether a topic is in trouble of that number."""
    return f"i % {RARE} = {number}"


def _complete(table: Table, frame: DataFrame) -> DataFrame:
    """With all columns, in their types; those that the frame leaves out are null."""
    fields = spark_schema(table)
    columns = (
        f"cast({field.name if field.name in frame.columns else 'null'} as {field.dataType.simpleString()})"
        f" as {field.name}"
        for field in fields
    )
    return frame.selectExpr(*columns)


def _numbered(spark: SparkSession, count: int, columns: Mapping[str, str], partitions: int = 1) -> DataFrame:
    """Rows 0 to `count`, number `i`, with columns that may use those before them."""
    frame = spark.range(0, count, 1, partitions).withColumnRenamed("id", "i")
    for name, expression in columns.items():
        frame = frame.selectExpr("*", f"{expression} as {name}")
    return frame


def _tables(spark: SparkSession, cluster: Cluster) -> dict[str, DataFrame]:
    topics = _topics(spark, cluster)
    subscriptions = _subscriptions(topics)
    brokers = _brokers(spark, cluster)
    coordinator = {"coordinator": "i", "broker": _broker(f"i % {cluster.brokers}"), "broker_known": "true"}
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
        "topics": topics.coalesce(FEW_FILES),
        "subscriptions": subscriptions.coalesce(FEW_FILES),
        "transaction_coordinators": _numbered(spark, 16, coordinator),
        "namespaces": _namespaces(spark, cluster),
        "clients": _clients(subscriptions).coalesce(FEW_FILES),
        "configuration": _configuration(brokers),
        "metrics": metrics(topics, subscriptions, brokers).coalesce(FEW_FILES),
        "drilled": _drilled(subscriptions),
    }


def _broker(number: str) -> str:
    return f"concat('broker-', {number}, '.example:8080')"


def _namespace(number: str) -> str:
    return f"concat('tenant-', ({number}) % {TENANTS}, '/ns-', {number})"


def _topics(spark: SparkSession, cluster: Cluster) -> DataFrame:
    owner = f"(i * {cluster.brokers} div {cluster.topics})"
    rate = f"{scattered('rate', 3400)} / 100.0"
    columns = {
        "number": f"{owner} + {cluster.brokers} * (i % {cluster.bundles_a_broker})",
        "slot": f"number % {BUNDLES_A_NAMESPACE}",
        "namespace": _namespace(f"(number div {BUNDLES_A_NAMESPACE})"),
        "topic": "concat('persistent://', namespace, '/events-', i, '-partition-0')",
        "bundle": "format_string('0x%x0000000_0x%x0000000', slot, slot + 1)",
        "broker": _broker(owner),
        "producers": f"if({rare(1)}, 5000, {scattered('producers', 3)})",
        "consumers": f"if({rare(2)}, 5000, 1 + {scattered('consumers', 4)})",
        "subscriptions": "1 + i % 2",
        "message_rate_in": rate,
        "message_rate_out": "message_rate_in * subscriptions",
        "throughput_in_bytes": "message_rate_in * 1000",
        "throughput_out_bytes": "message_rate_out * 1000",
        "pending_add_entries": "0",
        "producers_connected_recently": f"if({scattered('new', 50)} = 0, producers, 0)",
        "storage_bytes": f"if({rare(6)}, 50000000000, 1000000 + {scattered('stored', 100_000_000)})",
        "backlog_bytes": f"case when {rare(3)} then 10700000000 when {rare(6)} then 40000000000"
        f" when i % 2 = 0 then {scattered('backlog', 1_000_000)} else 0 end",
    }
    return _numbered(spark, cluster.topics, columns, cluster.brokers)


def _subscriptions(topics: DataFrame) -> DataFrame:
    each = topics.selectExpr("i", "topic", "namespace", "broker", "explode(sequence(1, subscriptions)) as n")
    rate = f"case when {rare(7)} then 0.0 when i % 6 = 0 then 0.0 else {scattered('out', 3400)} / 100.0 end"
    return each.selectExpr(
        "*",
        "concat('subscription-', n) as subscription",
        "'Shared' as type",
        f"1 + {scattered('connected', 2)} as consumers",
        f"case when {rare(3)} then 9000000 when {rare(6)} then 100000 when {rare(7)} then 50000"
        f" when i % 2 = 0 then {scattered('messages', 1000)} else 0 end as backlog_messages",
        f"{scattered('unacked', 5)} as unacked_messages",
        f"{rare(4)} as blocked_on_unacked",
        f"case when {rare(5)} then 20000 when i % 20 = 0 then {scattered('holes', 7)} else 0 end as ack_holes",
        f"if({rare(6)}, 9000000, {scattered('entries', 1000)}) as entries_since_first_gap",
        "0L as consumers_blocked",
        f"if({scattered('permits', 100)} = 0, 1, 0) as consumers_without_permits",
        f"if({scattered('recent', 50)} = 0, 1, 0) as consumers_connected_recently",
        f"{rate} as message_rate_out",
        f"{rate} as ack_rate",
        "0.0 as redeliver_rate",
        f"if({rare(8)}, 2.5, 0.0) as expired_rate",
    )


def _brokers(spark: SparkSession, cluster: Cluster) -> DataFrame:
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
    }
    return _numbered(spark, cluster.brokers, columns)


def _bundles(topics: DataFrame) -> DataFrame:
    rates = ("message_rate_in", "message_rate_out", "throughput_in_bytes", "throughput_out_bytes")
    sums = dict.fromkeys((*rates, "producers", "consumers", "backlog_bytes"), "sum")
    summed = topics.groupBy("namespace", "bundle").agg({"broker": "max", "topic": "count", **sums})
    columns = (f"`sum({name})` as {name}" for name in sums)
    whole = ("namespace", "bundle", "`max(broker)` as owner", "true as owner_known", "`count(topic)` as topics")
    return summed.selectExpr(*whole, *columns).coalesce(1)


def _namespaces(spark: SparkSession, cluster: Cluster) -> DataFrame:
    """Every fourth sets no quota; one in a hundred has a time to live."""
    ttl = "if(i % 100 = 12, '\"message_ttl_in_seconds\":604800,', '')"
    columns = {
        "namespace": _namespace("i"),
        "bundles": f"{BUNDLES_A_NAMESPACE}",
        "policies_json": f"concat('{{', if(i % 4 = 0, '', '{_QUOTAS}'), {ttl}, '{_REST}')",
    }
    return _numbered(spark, cluster.namespaces, columns)


def _clients(subscriptions: DataFrame) -> DataFrame:
    return subscriptions.where("i % 4 = 0").selectExpr(
        "topic", "namespace", "subscription", "concat('consumer-', i) as consumer",
        f"concat('192.0.2.', {scattered('address', 254)}, ':', 1024 + {scattered('port', 60_000)}) as address",
        "'2026-01-31T11:00:00Z' as connected_since", "unacked_messages", "10 as available_permits",
        "false as blocked", "'Pulsar-Java-v4.0.7' as client_version",
    )  # fmt: skip


def _configuration(brokers: DataFrame) -> DataFrame:
    settings = ", ".join(f"'{key}', '{value}'" for key, value in _SETTINGS.items())
    return brokers.selectExpr("broker", f"explode(map({settings})) as (key, value)")


def _drilled(subscriptions: DataFrame) -> DataFrame:
    """The topics in trouble, and others."""
    return subscriptions.where(f"i < {DRILLED_TOPICS}").selectExpr(
        "topic", "namespace", "subscription", "0 as delayed_messages", "i % 3600 as oldest_backlog_age_seconds",
        "1000 as ack_state_bytes", "i % 7 as ack_hole_ranges", "10737418240 as quota_limit_bytes",
        "'{}' as topic_quota_json", "'{}' as topic_retention_json", "3 as ledgers", "'[]' as cursor_properties_json",
    ).coalesce(1)  # fmt: skip
