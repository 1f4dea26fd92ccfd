"""Bundles that are far hotter than others, or over their broker's split threshold, and whether a split can help."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from pulsar_steward.checks.check import MAX_FINDINGS, Query, RowCheck, ranked
from pulsar_steward.model.section import Section
from pulsar_steward.model.units import MEGABYTE, MIB, counted, throughput_in_words

if TYPE_CHECKING:
    from pulsar_steward.checks.check import CheckContext, Queried, Row


class HotBundlePolicy(Section):
    """Thresholds for bundles with far more load than others; a broker has to take a bundle as a whole."""

    warning_times_mean: int = Field(
        10,
        ge=2,
        description="throughput or clients of a bundle, as a multiple of the mean of bundles that have any, without the"
        " busiest tenth of these",
    )
    minimum_broker_share_percent: int = Field(
        25,
        ge=0,
        le=100,
        description="throughput or clients of a bundle, of what a broker carries on average; with less it is balanced"
        " like any other",
    )
    minimum_throughput_megabytes: int = Field(20, ge=1, description="10^6 bytes a second; less is not hot")
    minimum_clients: int = Field(1000, ge=1, description="producers and consumers; fewer are not hot")
    dominating_topic_percent: int = Field(
        50, ge=1, le=100, description="share of one topic in its bundle from which a split cannot help"
    )
    critical_cpu_percent: int = Field(
        85, ge=1, le=100, description="CPU of the owner; as `loadBalancerBrokerOverloadedThresholdPercentage`"
    )


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
    not hot_bytes and (hot_clients or over_clients) as by_clients,
    (hot_bytes or hot_clients)::int + coalesce(cpu_percent >= $critical_cpu_percent, false)::int as rank
from marked where hot_bytes or hot_clients or over_clients or over_messages or over_bytes
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

FOUND = f"""
with suspects as ({SUSPECTS}), topmost as ({_HOTTEST_OF} from hottest group by namespace, bundle)
select suspects.*, topic, topic_percent, $dominating_topic_percent as dominating_percent
from suspects left join topmost using (namespace, bundle)
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


def _missing(queried: Queried, _context: CheckContext[HotBundlePolicy]) -> str | None:
    if queried["seen"].one["without_most"]:
        return "No bundle is far hotter than the others; but what their brokers would split is not in the snapshot."
    return None


def _load_words(row: Row) -> str:
    throughput, messages = throughput_in_words(row["bytes"] or 0), row["messages"] or 0
    return (
        f"Bundle {row['bundle']} of {row['namespace']} on {row['owner']} carries {throughput}, {messages:,.0f}"
        f" messages/s and {counted(row['clients'] or 0, 'client')} in {counted(row['topics'] or 0, 'topic')}"
    )


def _reason_words(row: Row) -> str:
    reasons = []
    if row["hot_bytes"]:
        reasons.append(
            f"{counted(row['bytes'] / row['mean_bytes'], 'time')} the mean throughput of the others that are busy"
        )
    if row["hot_clients"]:
        reasons.append(f"{counted(row['clients'] / row['mean_clients'], 'time')} their mean of clients")
    if row["over_limits"]:
        reasons.append("over what its broker would split")
    return f": {', '.join(reasons)}"


def _split_words(row: Row) -> str:
    if row["topic_percent"] is None:
        return "Which of its topics is the hottest is not known."
    share = f"{row['topic']} has {row['topic_percent']:.0f} % of its {'clients' if row['by_clients'] else 'throughput'}"
    if row["topics"] == 1 or row["topic_percent"] >= row["dominating_percent"]:
        return f"{share}: a split cannot help, more partitions can."
    return f"Its hottest topic {share}: a split can help."


CHECK = RowCheck(
    check_id="hot-bundle",
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
    cluster={"found": Query(FOUND, worst_first=WORST_FIRST), "seen": Query(SEEN)},
    severity=ranked,
    subject=lambda row: f"{row['namespace']}/{row['bundle']}",
    evidence=lambda row: f"{_load_words(row)}{_reason_words(row)}. {_split_words(row)}",
    figures=lambda row: {
        "bytes_per_second": row["bytes"] or 0,
        "clients": row["clients"] or 0,
        "topics": row["topics"] or 0,
        "hottest_topic_percent": None if row["topic"] is None else row["topic_percent"],
    },
    missing=_missing,
    quiet=_quiet,
)
