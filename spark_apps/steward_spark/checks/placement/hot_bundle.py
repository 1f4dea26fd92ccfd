"""Bundles that are far hotter than others, or over what their broker would split; and whether a split can help."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from pulsar_steward.model.catalog.placement import HOT_BUNDLE
from pulsar_steward.model.finding import Finding, Severity
from steward_spark.checks.check import Check
from steward_spark.checks.common.worst import worst_first

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

    from pulsar_steward.policy.checks.placement import HotBundlePolicy
    from pulsar_steward.policy.schema import Policy
    from steward_spark.checks.check import Judgement
    from steward_spark.frames import Frames

MEGABYTE = 1_000_000
HEARTBEAT = r"^pulsar/([^/]+/)?[^/]+:\d+$"
LIMITS = {
    "loadBalancerNamespaceBundleMaxSessions": "most_clients",
    "loadBalancerNamespaceBundleMaxMsgRate": "most_messages",
    "loadBalancerNamespaceBundleMaxBandwidthMbytes": "most_mebibytes",
}
"""The settings that say what a broker splits, by their columns in `loads`; for topics there is bundle-topic-skew."""


def loads(frames: Frames) -> DataFrame:
    """What each owned bundle carries, the means of those that carry anything, and its owner's limits and CPU.

    Returns:
        `namespace`, `bundle`, `owner`, `topics`, `bytes`, `messages`, `clients`, `mean_bytes`, `mean_clients`,
        `cpu_percent`, and the limits, null where the snapshot does not have them.
    """
    owned = frames.bundles.where(F.col("owner").isNotNull() & ~F.col("namespace").rlike(HEARTBEAT)).select(
        "namespace",
        "bundle",
        "owner",
        "topics",
        F.expr("throughput_in_bytes + throughput_out_bytes").alias("bytes"),
        F.expr("message_rate_in + message_rate_out").alias("messages"),
        F.expr("producers + consumers").alias("clients"),
    )
    means = owned.agg(
        F.avg(F.expr("if(bytes > 0, bytes, null)")).alias("mean_bytes"),
        F.avg(F.expr("if(clients > 0, clients, null)")).alias("mean_clients"),
    )
    cpu = frames.brokers.select(F.col("broker").alias("owner"), "cpu_percent")
    return owned.crossJoin(means).join(cpu, "owner", "left").join(_limits(frames.configuration), "owner", "left")


def _limits(configuration: DataFrame) -> DataFrame:
    columns = [
        F.max(F.when(F.col("key") == key, F.col("value").cast("double"))).alias(column)
        for key, column in LIMITS.items()
    ]
    return configuration.where(F.col("key").isin(*LIMITS)).groupBy(F.col("broker").alias("owner")).agg(*columns)


def hot(bundles: DataFrame, policy: HotBundlePolicy) -> DataFrame:
    """Bundles with a reason to be named: `hot_bytes`, `hot_clients` (by the mean), and `over_limits`."""
    times, least_bytes = policy.warning_times_mean, policy.minimum_throughput_megabytes * MEGABYTE
    hot_bytes = (F.col("bytes") >= least_bytes) & (F.col("bytes") >= times * F.col("mean_bytes"))
    hot_clients = (F.col("clients") >= policy.minimum_clients) & (F.col("clients") >= times * F.col("mean_clients"))
    over = F.expr(
        "(most_clients > 0 and clients > most_clients) or (most_messages > 0 and messages > most_messages)"
        " or (most_mebibytes > 0 and bytes > most_mebibytes * 1024 * 1024)"
    )
    no = F.lit(False)
    reasons = {"hot_bytes": hot_bytes, "hot_clients": hot_clients, "over_limits": over}
    marked = bundles.withColumns({name: F.coalesce(reason, no) for name, reason in reasons.items()})
    return marked.where("hot_bytes or hot_clients or over_limits")


def with_hottest_topic(suspects: DataFrame, topics: DataFrame) -> DataFrame:
    """Adds the topic with most of what made the bundle hot: `topic` and its `topic_percent`; null where not known."""
    by_clients = F.expr("hot_clients or (not hot_bytes and most_clients > 0 and clients > most_clients)")
    measured = suspects.withColumn("by_clients", F.coalesce(by_clients & ~F.col("hot_bytes"), F.lit(False)))
    each = topics.select(
        "namespace",
        "bundle",
        "topic",
        F.expr("throughput_in_bytes + throughput_out_bytes").alias("topic_bytes"),
        F.expr("producers + consumers").alias("topic_clients"),
    )
    share = F.expr("if(by_clients, topic_clients * 100 / nullif(clients, 0), topic_bytes * 100 / nullif(bytes, 0))")
    keys = ["namespace", "bundle"]
    hottest = F.max(F.struct(share.alias("topic_percent"), "topic")).alias("hottest")
    found = measured.join(each, keys).groupBy(*keys).agg(hottest).select(*keys, "hottest.*")
    return measured.join(found, keys, "left")


def _judge(frames: Frames, policy: Policy) -> Judgement:
    limits = policy.hot_bundle
    bundles = loads(frames)
    by_mean = F.col("hot_bytes") | F.col("hot_clients")
    busy = F.coalesce(F.col("cpu_percent") >= limits.critical_cpu_percent, F.lit(False))
    rank = (by_mean.cast("int") + busy.cast("int")).alias("rank")
    few = frames.few(hot(bundles, limits))
    suspects = with_hottest_topic(few, frames.topics).select("*", rank)
    order = (F.desc("rank"), F.desc("bytes"), F.desc("clients"), F.asc("namespace"), F.asc("bundle"))
    return worst_first(
        suspects,
        order,
        lambda row: _finding(row, limits.dominating_topic_percent),
        lambda: _quiet(bundles),
        lambda: _missing(bundles),
    )


def _missing(bundles: DataFrame) -> str | None:
    unknown = bundles.where("most_clients is null or most_messages is null or most_mebibytes is null")
    if unknown.take(1):
        return "No bundle is far hotter than the others; but what their brokers would split is not in the snapshot."
    return None


def _quiet(bundles: DataFrame) -> str:
    row = bundles.agg(
        F.count("*").alias("owned"), F.max("bytes").alias("bytes"), F.max("clients").alias("clients")
    ).first()
    if row is None or not row["owned"]:
        return "No bundle has an owner."
    megabytes, clients = (row["bytes"] or 0) / MEGABYTE, row["clients"] or 0
    return f"Of {row['owned']:,} owned bundles, none carries more than {megabytes:,.1f} MB/s or {clients:,} clients."


def _finding(row: Row, dominating_percent: int) -> Finding:
    figures = {"bytes_per_second": int(row["bytes"] or 0), "clients": row["clients"] or 0, "topics": row["topics"] or 0}
    if row["topic"] is not None and row["topic_percent"] is not None:
        figures["hottest_topic_percent"] = int(row["topic_percent"])
    return Finding(
        check_id=HOT_BUNDLE.check_id,
        severity=(Severity.INFO, Severity.WARNING, Severity.CRITICAL)[row["rank"]],
        subject=f"{row['namespace']}/{row['bundle']}",
        evidence=f"{_load_words(row)}{_reason_words(row)}. {_split_words(row, dominating_percent)}",
        figures=figures,
    )


def _load_words(row: Row) -> str:
    megabytes, messages = (row["bytes"] or 0) / MEGABYTE, row["messages"] or 0
    return (
        f"Bundle {row['bundle']} of {row['namespace']} on {row['owner']} carries {megabytes:,.1f} MB/s,"
        f" {messages:,.0f} messages/s and {row['clients'] or 0:,} clients in {row['topics'] or 0:,} topics"
    )


def _reason_words(row: Row) -> str:
    reasons = []
    if row["hot_bytes"]:
        reasons.append(f"{row['bytes'] / row['mean_bytes']:,.0f} times the mean throughput of busy bundles")
    if row["hot_clients"]:
        reasons.append(f"{row['clients'] / row['mean_clients']:,.0f} times their mean of clients")
    if row["over_limits"]:
        reasons.append("over what its broker would split")
    return f": {', '.join(reasons)}"


def _split_words(row: Row, dominating_percent: int) -> str:
    if row["topic_percent"] is None:
        return "Which of its topics is the hottest is not known."
    share = f"{row['topic']} has {row['topic_percent']:.0f} % of its {'clients' if row['by_clients'] else 'throughput'}"
    if row["topics"] == 1 or row["topic_percent"] >= dominating_percent:
        return f"{share}: a split cannot help, more partitions can."
    return f"Its hottest topic {share}: a split can help."


CHECK = Check(HOT_BUNDLE, _judge)
