"""Bundles far hotter than others or over their broker's split threshold, and topics that crowd in few bundles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.checks.check import MAX_FINDINGS, Query, RowCheck, Scope, ranked
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.section import Section, number, percent
from pulsar_steward.model.trouble import Harm
from pulsar_steward.model.units import MEGABYTE, MIB, counted, throughput_in_words

if TYPE_CHECKING:
    from pulsar_steward.checks.check import CheckContext, Queried, Row
    from pulsar_steward.model.finding import Finding


SPLIT_ALGORITHM = "defaultNamespaceBundleSplitAlgorithm"
"""Setting of brokers for splits that name no algorithm, their own ones included."""


class HotBundlePolicy(Section):
    """Thresholds for bundles with far more load than others; a broker has to take a bundle as a whole."""

    warning_times_mean: int = number(
        10,
        "throughput or clients of a bundle, as a multiple of the mean of bundles that have any, the busiest tenth"
        " left out",
        ge=2,
    )
    minimum_broker_share_percent: int = percent(
        25,
        "throughput or clients of a bundle, of what a broker carries on average; with less it is balanced"
        " like any other",
        ge=0,
    )
    minimum_throughput_megabytes: int = number(20, "10^6 bytes a second; less is not hot")
    minimum_clients: int = number(1000, "producers and consumers; fewer are not hot")
    dominating_topic_percent: int = percent(50, "share of one topic in its bundle from which a split cannot help")
    critical_cpu_percent: int = percent(85, "CPU of the owner; as `loadBalancerBrokerOverloadedThresholdPercentage`")


# A bundle is named by comparison with the mean of the others, or by its broker's threshold. Its topics are measured by
# the figure that made it hot. A bundle with too many topics belongs to bundle-topic-skew.
SUSPECTS = f"""
with marked as (
    select *,
        coalesce(bytes >= $minimum_throughput_megabytes * {MEGABYTE} and bytes >= $warning_times_mean * mean_bytes
            and bytes * 100 >= $minimum_broker_share_percent * broker_bytes, false) as hot_bytes,
        coalesce(clients >= $minimum_clients and clients >= $warning_times_mean * mean_clients
            and clients * 100.0 >= $minimum_broker_share_percent * broker_clients, false) as hot_clients,
        coalesce(most_clients > 0 and clients > most_clients, false) as over_clients,
        coalesce(most_messages > 0 and messages > most_messages, false) as over_messages,
        coalesce(most_mebibytes > 0 and bytes > most_mebibytes * {MIB}, false) as over_bytes
    from bundle_loads)
select namespace, bundle, owner, topics, bytes, messages, clients, mean_bytes, mean_clients, hot_bytes, hot_clients,
    over_clients or over_messages or over_bytes as over_limits,
    coalesce(cpu_percent < $critical_cpu_percent, false) as room,
    coalesce((over_messages or over_bytes) and topics > 1 and brokers > 1 and bytes > broker_bytes
        and bytes >= $minimum_throughput_megabytes * {MEGABYTE}, false) as over_share,
    not hot_bytes and (hot_clients or over_clients) as by_clients,
    (hot_bytes or hot_clients or over_share)::int
        + coalesce(cpu_percent >= $critical_cpu_percent, false)::int as rank
from marked cross join (select count(*) as brokers from brokers where read)
where hot_bytes or hot_clients or over_clients or over_messages or over_bytes
"""
WORST_FIRST = "rank desc, bytes desc, clients desc, namespace, bundle"

_HOTTEST_OF = """
select namespace, bundle, first(topic order by topic_percent desc nulls last, topic desc) as topic,
    first(topic_percent order by topic_percent desc nulls last, topic desc) as topic_percent
"""

HOTTEST = f"""
with suspects as ({SUSPECTS}),
listed as (select * from suspects order by {WORST_FIRST} limit {MAX_FINDINGS}),
shares as (
    select namespace, bundle, topic, if(by_clients, (t.producers + t.consumers) * 100 / nullif(listed.clients, 0),
        (t.throughput_in_bytes + t.throughput_out_bytes) * 100 / nullif(listed.bytes, 0)) as topic_percent
    from topics t join listed using (namespace, bundle))
{_HOTTEST_OF} from shares group by namespace, bundle
"""
"""Topic of each listed bundle with the largest share of the figure that made it hot.

While a bundle moves, two brokers may report its topics.
"""

# A split cannot share out one topic: where its broker has room, nothing has to be done now.
HOT = f"""
with suspects as ({SUSPECTS}), topmost as ({_HOTTEST_OF} from hottest group by namespace, bundle),
shown as (
    select suspects.*, topic, topic_percent,
        coalesce(topic_percent >= if(topics = 1, 0, $dominating_topic_percent), false) as dominated
    from suspects left join topmost using (namespace, bundle))
select * replace (if(dominated and room, 0, rank) as rank) from shown
"""

SEEN = """
select count(*) as owned, max(bytes) as bytes, max(clients) as clients,
    count_if(most_clients is null or most_messages is null or most_mebibytes is null)::bigint as without_most
from bundle_loads
"""


def _quiet(queried: Queried, _context: CheckContext[HotBundlePolicy]) -> str:
    seen = queried["seen"].one
    if not seen["owned"]:
        return "No bundle has an owner."
    throughput, clients = throughput_in_words(seen["bytes"] or 0), seen["clients"] or 0
    return (
        f"Of {counted(seen['owned'], 'owned bundle')}, none carries more than {throughput} or"
        f" {counted(clients, 'client')}."
    )


def _hot_words(row: Row) -> str:
    reasons = []
    if row["hot_bytes"]:
        times = counted(row["bytes"] / row["mean_bytes"], "time")
        reasons.append(f"{times} the mean throughput of the others that are busy")
    if row["hot_clients"]:
        reasons.append(f"{counted(row['clients'] / row['mean_clients'], 'time')} their mean of clients")
    if row["over_share"]:
        reasons.append("over what its broker would split, and more than a broker's share: no move evens that out")
    elif row["over_limits"]:
        reasons.append("over what its broker would split")
    throughput, messages = throughput_in_words(row["bytes"] or 0), row["messages"] or 0
    return (
        f"Bundle {row['bundle']} of {row['namespace']} on {row['owner']} carries {throughput}, {messages:,.0f}"
        f" messages/s and {counted(row['clients'] or 0, 'client')} in {counted(row['topics'] or 0, 'topic')}:"
        f" {', '.join(reasons)}."
    )


NO_SPLIT = "a split cannot help"


def _split_words(row: Row) -> str:
    if row["topic_percent"] is None:
        return "Which of its topics is the hottest is not known."
    share = f"{row['topic']} has {row['topic_percent']:.0f} % of its {'clients' if row['by_clients'] else 'throughput'}"
    if row["dominated"]:
        room = " Its broker has room for it." if row["room"] else ""
        return f"{share}: {NO_SPLIT}, more partitions can.{room}"
    return f"Its hottest topic {share}: a split can help."


def _of_crowd(cause: Finding, finding: Finding) -> bool:
    """True if the clients of a crowded topic make the bundle hot, by the bundle's own evidence."""
    return f" {cause.subject} has " in finding.evidence and f" of its clients: {NO_SPLIT}" in finding.evidence


HOT_BUNDLE = RowCheck(
    check_id="hot-bundle",
    harm=Harm.SLOW,
    explained_by=("consumer-fanout", "producer-fanout"),
    tied=_of_crowd,
    order=40,
    title="One bundle is far hotter than the others, or over what its broker would split",
    advice=(
        "Where no topic dominates: split it by flow_or_qps_equally_divide, or by topic_count_equally_divide.",
        "Where one topic dominates, no split helps: give that topic more partitions, or fewer clients.",
        "Then let the parts go to different brokers, and pace it: their clients reconnect.",
    ),
    source="docs/knowledge.md C: partitions uneven over brokers",
    remedied_by="bundle_split",
    policy=HotBundlePolicy,
    shards={"hottest": Query(HOTTEST)},
    cluster={"found": Query(HOT, worst_first=WORST_FIRST), "seen": Query(SEEN)},
    severity=ranked,
    subject=lambda row: f"{row['namespace']}/{row['bundle']}",
    evidence=lambda row: f"{_hot_words(row)} {_split_words(row)}",
    figures=lambda row: {
        "bytes_per_second": row["bytes"] or 0,
        "clients": row["clients"] or 0,
        "topics": row["topics"] or 0,
        "hottest_topic_percent": None if row["topic"] is None else row["topic_percent"],
    },
    missing=lambda queried, _context: (
        "No bundle is far hotter than the others; but what their brokers would split is not in the snapshot."
        if queried["seen"].one["without_most"]
        else None
    ),
    quiet=_quiet,
)


class BundleTopicSkewPolicy(Section):
    """Thresholds for namespaces with most topics in a few bundles."""

    minimum_topics: int = number(100, "namespaces with fewer topics are left alone")
    warning_times_mean: int = number(
        3,
        "topics in the fullest bundle, as a multiple of the mean; where a namespace has four bundles or"
        " fewer, of the mean of the others: none can have more than four times the mean of all",
        ge=2,
    )
    minimum_bundle_topics: int = number(
        50, "topics in the fullest bundle; fewer are no crowd, whatever the others have by chance"
    )
    warning_topics_per_bundle: int = number(1000, "topics in one bundle that are too many anywhere")


FEW_BUNDLES = 4
"""Number of bundles that namespaces have by default before Pulsar 5."""

# Bundles that an unread broker may own are left out. The mean is used only if all bundles are known, or it would be too
# low; a bundle that is too full by itself is reported in any case. With few bundles, it is the mean of the others. At a
# tie the lowest bundle is named: ranges have leading zeros, so text sorts correctly. A namespace that could not be read
# still has bundles, and the cluster's thresholds.
CROWDED = f"""
with crowds as (
    select namespace, count(*) as bundles, sum(topics)::bigint as topics, bool_and(owner_known) as whole,
        first(bundle order by topics desc, bundle) as bundle, max(topics) as most
    from bundles group by namespace)
select namespace, bundle, bundles, topics, most
from crowds left join limits using (namespace)
where topics >= coalesce(minimum_topics, $minimum_topics)
    and (most >= coalesce(warning_topics_per_bundle, $warning_topics_per_bundle)
        or (whole and bundles > 1 and most >= coalesce(minimum_bundle_topics, $minimum_bundle_topics)
            and if(bundles <= {FEW_BUNDLES}, most * (bundles - 1), most * bundles)
                >= coalesce(warning_times_mean, $warning_times_mean)
                    * if(bundles <= {FEW_BUNDLES}, topics - most, topics)))
"""


def _mean_words(row: Row) -> str:
    """Text about the mean that the bundle is compared with; empty for a single bundle."""
    bundles, topics = row["bundles"], row["topics"]
    if bundles == 1:
        return ""
    if bundles <= FEW_BUNDLES:
        return f"s; the mean of the others is {(topics - row['most']) / (bundles - 1):,.1f}"
    return f"s; the mean is {topics / bundles:,.1f}"


# The namespaces with the fullest bundles are listed, in order of their names.
BUNDLE_TOPIC_SKEW = RowCheck(
    check_id="bundle-topic-skew",
    harm=Harm.SLOW,
    order=20,
    title="The topics of a namespace crowd in few of its bundles",
    advice=(
        "Split the crowded bundles by topic_count_equally_divide.",
        "Give the namespace more bundles from the start when thousands of topics are to be expected.",
    ),
    source="docs/knowledge.md C",
    scope=Scope.NAMESPACE,
    remedied_by="bundle_split",
    policy=BundleTopicSkewPolicy,
    cluster={
        "fullest": Query(CROWDED, worst_first="most desc, namespace"),
        "found": Query("from fullest", worst_first="namespace"),
    },
    severity=Severity.WARNING,
    subject="namespace",
    evidence=lambda row: (
        f"Bundle {row['bundle']} holds {row['most']:,} of {counted(row['topics'], 'topic')}"
        f" in {row['bundles']:,} bundle{_mean_words(row)}."
    ),
    figures=lambda row: {"bundles": row["bundles"], "most_topics": row["most"], "topics": row["topics"]},
    also_cut=("fullest",),
    quiet="In no namespace do the topics crowd in few bundles.",
)


class SplitAlgorithmPolicy(Section):
    """Thresholds for brokers' own splits of bundles."""

    minimum_topics: int = number(1000, "in the cluster; with fewer no bundle is crowded for long")


BY_RANGE = "range_equally_divide"
"""Default of Pulsar, also of 5.0: it halves a bundle's range, however few topics are in one half."""

OWN_SPLITS = f"""
select value as algorithm, count(distinct broker) as brokers, (select sum(topics)::bigint from bundles) as topics
from setting('{SPLIT_ALGORITHM}')
where lower(trim(value)) = '{BY_RANGE}' and (select sum(topics) from bundles) >= $minimum_topics
group by value
"""

# The default of every cluster: information.
SPLIT_ALGORITHM_CHECK = RowCheck(
    check_id="split-algorithm",
    order=30,
    title="Brokers split bundles in the middle of their range, not of their topics",
    advice=(
        f"Set {SPLIT_ALGORITHM}=topic_count_equally_divide on every broker: each half gets half of the topics.",
        "By load: flow_or_qps_equally_divide, where few topics carry most of it.",
    ),
    source="docs/checks/split-algorithm.md; docs/knowledge.md C",
    policy=SplitAlgorithmPolicy,
    cluster={"found": Query(OWN_SPLITS, worst_first="brokers desc, algorithm")},
    severity=Severity.INFO,
    subject=lambda _row: "the brokers' own splits",
    evidence=lambda row: (
        f"Splits of {counted(row['brokers'], 'broker')} are by {row['algorithm']}"
        f" ({SPLIT_ALGORITHM}), in a cluster of {counted(row['topics'], 'loaded topic')}: a split may leave one half"
        " empty, and the other as crowded as it was."
    ),
    figures=("brokers", "topics"),
    quiet="Brokers do not split bundles in the middle of their range, or have few topics.",
)
