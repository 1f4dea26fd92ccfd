"""More partitions than a broker, the cluster or its metadata store should carry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pulsar_steward.checks.check import Check, Judgement, Query
from pulsar_steward.checks.delayed.waiting import NOTHING_LOADED
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.section import Section, number
from pulsar_steward.model.trouble import Harm
from pulsar_steward.model.units import bytes_in_words, counted

if TYPE_CHECKING:
    from pulsar_steward.checks.check import CheckContext, Queried, Row


class PartitionCeilingPolicy(Section):
    """Thresholds for the number of partitions of a broker, of the cluster and of its metadata store."""

    warning_topics_per_broker: int = number(40_000, "four fifths of the next")
    critical_topics_per_broker: int = number(
        50_000, "default of `loadBalancerBrokerMaxTopics`, which counts where it is lower"
    )
    warning_topics_per_cluster: int = number(
        1_500_000, "beyond the million that others run in one cluster, with effort"
    )
    critical_topics_per_cluster: int = number(3_000_000, "twice that: time for a second cluster")
    metadata_nodes_per_topic: int = number(
        2, "the managed ledger and its open ledger, at least: each closed ledger is one more"
    )
    metadata_nodes_per_subscription: int = number(2, "the cursor and its ledger", ge=0)
    metadata_bytes_per_node: int = number(150, "of a snapshot: 300 MB for two million nodes, as published")
    warning_metadata_nodes: int = number(6_000_000, "three times what was published; a snapshot of 0.9 GB")
    critical_metadata_nodes: int = number(12_000_000, "twice that; minutes to load after a restart")


MAX_TOPICS = "loadBalancerBrokerMaxTopics"

LOADED = f"""
with configured as (
    select broker, max(try_cast(trim(value) as bigint)) as configured from setting('{MAX_TOPICS}') group by broker)
select broker, topics, coalesce(configured, 0) as configured
from brokers left join configured using (broker) where read and topics is not null
"""

# The server with the highest count.
COUNTED = """
select max(try_cast(trunc(value) as bigint)) as nodes from metrics
where source_kind = 'zookeeper' and series = 'znode_count'
"""


# Non-persistent topics and their subscriptions store nothing in the metadata store.
SUBSCRIBED = """
select sum(case when starts_with(topic, 'non-persistent://') then subscriptions * 0 else subscriptions end)::bigint
        as subscriptions,
    count(*) filter (starts_with(topic, 'non-persistent://')) as not_persistent
from topics
"""

BUCKETS = "select sum(buckets)::bigint as buckets from delayed_buckets"


@dataclass(frozen=True)
class Metadata:
    """Contents of the metadata store.

    Attributes:
        topics: Number of loaded topics.
        subscriptions: Number of subscriptions that have nodes in it; None if not known.
        nodes: Number of nodes, counted or else estimated.
        counted: True if ZooKeeper's count is plausible: one far below the estimate is that of another ensemble.
        words: The nodes, the source of the figure, and the size of ZooKeeper's snapshot, as text.
    """

    topics: int
    subscriptions: int | None
    nodes: int
    counted: bool
    words: str


def metadata_of(queried: Queried, policy: PartitionCeilingPolicy) -> Metadata:
    """Contents of the metadata store: as many nodes as ZooKeeper counts, or the minimum for these contents."""
    topics, subscribed = sum(row["topics"] for row in queried["loaded"].rows), queried["subscribed"].rows
    known = [row["subscriptions"] for row in subscribed if row["subscriptions"] is not None]
    told = max((row["nodes"] for row in queried["counted"].rows if row["nodes"] is not None), default=None)
    buckets = sum(row["buckets"] or 0 for row in queried["buckets"].rows)  # each a ledger
    stored = max(topics - sum(row["not_persistent"] for row in subscribed), 0)
    estimated = stored * policy.metadata_nodes_per_topic + sum(known) * policy.metadata_nodes_per_subscription + buckets
    plausible = told is not None and told * 2 >= estimated
    nodes = told if told is not None and plausible else estimated
    snapshot = f"a snapshot of about {bytes_in_words(nodes * policy.metadata_bytes_per_node, rounded=True)}"
    if plausible:
        words = f"ZooKeeper counts {counted(nodes, 'node')}, {snapshot}"
    else:
        in_buckets = f" and {counted(buckets, 'bucket')} of delayed messages" if buckets else ""
        words = (
            f"with their {counted(sum(known), 'subscription')}{in_buckets} they make about {nodes:,} metadata nodes"
            f" ({policy.metadata_nodes_per_topic} a topic and {policy.metadata_nodes_per_subscription} a"
            f" subscription), {snapshot}"
        )
        if told is not None:
            words += f" (a ZooKeeper that counts {counted(told, 'node')} cannot be the one that holds these)"
    return Metadata(topics, sum(known) if known else None, nodes, plausible, words)


def judge(queried: Queried, context: CheckContext[PartitionCeilingPolicy]) -> Judgement:
    """Judges each broker by itself, and the cluster by the contents of its metadata store."""
    limits = context.limits
    loaded = sorted(queried["loaded"].rows, key=lambda row: (-row["topics"], row["broker"]))
    if not loaded:
        return Judgement(cannot_tell="No broker told how many topics it has loaded.")
    metadata = metadata_of(queried, limits)
    found = [_of_cluster(context.about.cluster, metadata, limits), *(_of_broker(row, limits) for row in loaded)]
    findings = tuple(filter(None, found))
    if not findings and not metadata.topics:
        return Judgement(cannot_tell=NOTHING_LOADED)
    if not findings and metadata.subscriptions is None and not metadata.counted:
        return Judgement(cannot_tell="How many subscriptions the topics have was not read, nor did ZooKeeper tell.")
    return Judgement(
        findings=findings,
        quiet=(
            f"{counted(metadata.topics, 'topic is', 'topics are')} loaded, at most {loaded[0]['topics']:,} on one"
            f" broker ({loaded[0]['broker']}); {metadata.words}."
        ),
    )


def _of_broker(row: Row, policy: PartitionCeilingPolicy) -> Finding | None:
    topics, configured, ceiling = row["topics"], row["configured"], policy.critical_topics_per_broker
    if configured > 0:
        ceiling = min(configured, ceiling)
    warning = policy.warning_topics_per_broker * ceiling // policy.critical_topics_per_broker
    severity = Severity.beyond(topics, warning=warning, critical=ceiling)
    told = f"; {MAX_TOPICS} is {configured:,}" if configured > 0 else ""
    loaded = f"{counted(topics, 'topic is', 'topics are')} loaded on this broker"
    evidence, figures = f"{loaded}; the ceiling is {ceiling:,}{told}.", {"ceiling_topics": ceiling, "topics": topics}
    if severity is None:
        return None
    return CHECK.finding(severity=severity, subject=row["broker"], evidence=evidence, figures=figures)


def _of_cluster(name: str, metadata: Metadata, policy: PartitionCeilingPolicy) -> Finding | None:
    """Finding by the worse of the number of topics and its effect on the metadata store."""
    severities = (
        Severity.beyond(
            metadata.topics, warning=policy.warning_topics_per_cluster, critical=policy.critical_topics_per_cluster
        ),
        Severity.beyond(metadata.nodes, warning=policy.warning_metadata_nodes, critical=policy.critical_metadata_nodes),
    )
    worst = max(filter(None, severities), key=lambda severity: severity.rank, default=None)
    if worst is None:
        return None
    return CHECK.finding(
        severity=worst,
        subject=name,
        evidence=(
            f"{counted(metadata.topics, 'topic is', 'topics are')} loaded (ceiling"
            f" {policy.critical_topics_per_cluster:,}); {metadata.words} (ceiling"
            f" {counted(policy.critical_metadata_nodes, 'node')})."
        ),
        figures={
            "metadata_nodes": metadata.nodes,
            "metadata_nodes_counted": int(metadata.counted),
            "subscriptions": metadata.subscriptions or 0,
            "topics": metadata.topics,
        },
    )


CHECK = Check(
    check_id="partition-ceiling",
    harm=Harm.SOON,
    order=60,
    title="More partitions than a broker, the cluster or its metadata store should carry",
    advice=(
        "Find namespaces with many idle topics, and let them be deleted (brokerDeleteInactiveTopicsEnabled).",
        "Add brokers where single ones are full; move or split bundles so that they take their part.",
        "Place new tenants on a second cluster, and present both under one view, before this one is full.",
        "Watch how long the metadata store takes to load its snapshot after a restart: it grows with the nodes.",
    ),
    source="docs/checks/partition-ceiling.md; docs/knowledge.md E",
    policy=PartitionCeilingPolicy,
    shards={"subscribed": Query(SUBSCRIBED), "buckets": Query(BUCKETS), "counted": Query(COUNTED)},
    cluster={"loaded": Query(LOADED)},
    judge=judge,
)
