"""More partitions than a broker, the cluster or its metadata store should carry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from pulsar_steward.model.catalog.delayed import PARTITION_CEILING
from pulsar_steward.model.finding import Finding, Severity
from steward_spark.checks.check import MOST_FINDINGS, Check, Judgement
from steward_spark.checks.common.words import size
from steward_spark.checks.delayed._settings import numbers

if TYPE_CHECKING:
    from pulsar_steward.policy.checks.delayed import PartitionCeilingPolicy
    from pulsar_steward.policy.schema import Policy
    from steward_spark.frames import Frames

LIMIT_KEY = "loadBalancerBrokerMaxTopics"
NODES_SERIES = "znode_count"


@dataclass(frozen=True)
class Metadata:
    """What the metadata store holds.

    Attributes:
        topics: Loaded topics.
        subscriptions: Their subscriptions; None where not known.
        counted_nodes: As ZooKeeper counts them; None where it was not asked.
    """

    topics: int
    subscriptions: int | None
    counted_nodes: int | None

    def nodes(self, policy: PartitionCeilingPolicy) -> int:
        """Nodes, counted or else estimated."""
        if self.counted_nodes is not None:
            return self.counted_nodes
        of_subscriptions = (self.subscriptions or 0) * policy.metadata_nodes_per_subscription
        return self.topics * policy.metadata_nodes_per_topic + of_subscriptions

    def in_words(self, policy: PartitionCeilingPolicy) -> str:
        """The nodes, whence the figure is, and what they make of a snapshot."""
        nodes = self.nodes(policy)
        snapshot = f"a snapshot of about {size(nodes * policy.metadata_bytes_per_node)}"
        if self.counted_nodes is not None:
            return f"ZooKeeper counts {nodes:,} nodes, {snapshot}"
        return (
            f"with their {self.subscriptions or 0:,} subscriptions they make about {nodes:,} metadata nodes"
            f" ({policy.metadata_nodes_per_topic} a topic and {policy.metadata_nodes_per_subscription} a subscription),"
            f" {snapshot}"
        )


def _judge(frames: Frames, policy: Policy) -> Judgement:
    limits = policy.partition_ceiling
    rows = frames.brokers.where("read and topics is not null").select("broker", "topics").collect()
    if not rows:
        return Judgement(cannot_tell="No broker told how many topics it has loaded.")
    loaded = {row["broker"]: row["topics"] for row in rows}
    metadata = Metadata(sum(loaded.values()), _subscriptions(frames), _counted_nodes(frames))
    found = [
        *_cluster(frames.about.cluster, metadata, limits),
        *_brokers(loaded, numbers(frames, LIMIT_KEY), limits),
    ]
    found.sort(key=lambda finding: -finding.severity.rank)
    if not found and metadata.topics and metadata.subscriptions is None and metadata.counted_nodes is None:
        return Judgement(cannot_tell="How many subscriptions the topics have was not read, nor did ZooKeeper tell.")
    fullest = min(loaded, key=lambda broker: (-loaded[broker], broker))
    return Judgement(
        findings=tuple(found[:MOST_FINDINGS]),
        more=max(len(found) - MOST_FINDINGS, 0),
        quiet=(
            f"{metadata.topics:,} topics are loaded, at most {loaded[fullest]:,} on one broker ({fullest});"
            f" {metadata.in_words(limits)}."
        ),
    )


def _subscriptions(frames: Frames) -> int | None:
    count: int | None = frames.topics.agg(F.sum("subscriptions").alias("count")).collect()[0]["count"]
    return count


def _counted_nodes(frames: Frames) -> int | None:
    """Of several servers, the one that knows of most."""
    told = frames.metrics.where((F.col("source_kind") == "zookeeper") & (F.col("series") == NODES_SERIES))
    count: int | None = told.agg(F.max("value").cast("bigint").alias("count")).collect()[0]["count"]
    return count


def _brokers(loaded: dict[str, int], configured: dict[str, int], policy: PartitionCeilingPolicy) -> list[Finding]:
    """Brokers over a ceiling, the fullest first."""
    fullest_first = sorted(loaded, key=lambda broker: (-loaded[broker], broker))
    findings = (_broker(each, loaded[each], configured.get(each, 0), policy) for each in fullest_first)
    return [finding for finding in findings if finding is not None]


def _broker(broker: str, topics: int, configured: int, policy: PartitionCeilingPolicy) -> Finding | None:
    ceiling = policy.critical_topics_per_broker
    if configured > 0:
        ceiling = min(configured, ceiling)
    warning = policy.warning_topics_per_broker * ceiling // policy.critical_topics_per_broker
    severity = _severity(topics, warning, ceiling)
    if severity is None:
        return None
    told = f"; {LIMIT_KEY} is {configured:,}" if configured > 0 else ""
    return Finding(
        check_id=PARTITION_CEILING.check_id,
        severity=severity,
        subject=broker,
        evidence=f"{topics:,} topics are loaded on this broker; the ceiling is {ceiling:,}{told}.",
        figures={"ceiling_topics": ceiling, "topics": topics},
    )


def _cluster(name: str, metadata: Metadata, policy: PartitionCeilingPolicy) -> list[Finding]:
    """At most one finding: the worse of the number of topics and what it means for the metadata store."""
    severities = (
        _severity(metadata.topics, policy.warning_topics_per_cluster, policy.critical_topics_per_cluster),
        _severity(metadata.nodes(policy), policy.warning_metadata_nodes, policy.critical_metadata_nodes),
    )
    known = [severity for severity in severities if severity is not None]
    if not known:
        return []
    return [
        Finding(
            check_id=PARTITION_CEILING.check_id,
            severity=max(known, key=lambda severity: severity.rank),
            subject=name,
            evidence=(
                f"{metadata.topics:,} topics are loaded (ceiling {policy.critical_topics_per_cluster:,});"
                f" {metadata.in_words(policy)} (ceiling {policy.critical_metadata_nodes:,} nodes)."
            ),
            figures={
                "metadata_nodes": metadata.nodes(policy),
                "metadata_nodes_counted": int(metadata.counted_nodes is not None),
                "subscriptions": metadata.subscriptions or 0,
                "topics": metadata.topics,
            },
        )
    ]


def _severity(value: int, warning: int, critical: int) -> Severity | None:
    if value >= critical:
        return Severity.CRITICAL
    return Severity.WARNING if value >= warning else None


CHECK = Check(PARTITION_CEILING, _judge)
