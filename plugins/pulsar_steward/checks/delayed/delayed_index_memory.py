"""Brokers whose index of delayed messages takes much of their memory, and is rebuilt at each load of a topic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import Field

from pulsar_steward.checks.check import Check, Judgement, Query
from pulsar_steward.checks.delayed.waiting import BUCKET_TRACKER, BY_BROKER, GAP_CLUSTER, GAP_SHARDS, TRACKER, gap
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.measures import DELAYED_INDEX
from pulsar_steward.model.section import Section
from pulsar_steward.model.units import bytes_in_words, counted, named

if TYPE_CHECKING:
    from pulsar_steward.checks.check import CheckContext, Queried


class DelayedIndexMemoryPolicy(Section):
    """Thresholds for the memory that the index of delayed messages takes from a broker."""

    index_bytes_per_message: int = Field(
        24, ge=1, description="three longs an entry (time, ledger, entry), where the broker tells no bytes"
    )
    warning_percent_of_memory: int = Field(
        10, ge=1, le=100, description="of the smaller of heap and direct memory; caches and buffers need the most of it"
    )
    critical_percent_of_memory: int = Field(
        30, ge=1, le=100, description="the same, where growing doubles a queue's memory for a moment"
    )
    warning_messages_in_memory: int = Field(
        10_000_000, ge=1, description="delayed messages of a broker that every load reads again, minutes long"
    )


TOLD = f"""
select source as broker, sum(try_cast(trunc(value) as bigint))::bigint as bytes from metrics
where series = '{DELAYED_INDEX}' and subscription is null and value > 0 and of_users(topic)
group by source
"""

# Up to Pulsar 4.0 the in-memory index is in direct memory, later on the heap: the smaller of the two is judged.
MEMORY = """
select source as broker, min(try_cast(trunc(value) as bigint)) as bytes from metrics
where series in ('jvm_memory_bytes_max', 'jvm_memory_max_bytes', 'jvm_memory_direct_bytes_max')
    and source_kind = 'broker' and value >= 1
    and (series = 'jvm_memory_direct_bytes_max' or labels_json->>'area' = 'heap')
group by source
"""

INDEXES = f"""
with messages_of as (select broker, sum(messages)::bigint as messages from delayed group by broker),
bytes_of as (select broker, sum(bytes)::bigint as told_bytes from told group by broker having sum(bytes) > 0),
limit_of as (select broker, min(bytes) as limit_bytes from memory group by broker),
tracker_of as (select broker, max(value) as tracker from setting('{TRACKER}') group by broker)
select broker, coalesce(messages, 0) as messages, coalesce(told_bytes, 0) as told_bytes, limit_bytes, tracker
from messages_of full join bytes_of using (broker) left join limit_of using (broker) left join tracker_of using (broker)
"""


@dataclass(frozen=True)
class Index:
    """Index of delayed messages of one broker.

    Attributes:
        broker: ``host:webport``.
        messages: Number of delayed messages.
        told_bytes: Size as the broker reports it; 0 if not reported.
        limit_bytes: The smaller of heap and direct memory; None if neither was reported.
        tracker: The factory of its tracker; None if it was not read.
    """

    broker: str
    messages: int
    told_bytes: int
    limit_bytes: int | None
    tracker: str | None

    def bytes_at(self, per_message: int) -> int:
        """Minimum size of the index."""
        return max(self.told_bytes, self.messages * per_message if self.in_memory else 0)

    @property
    def in_memory(self) -> bool:
        """True if all entries are in memory: the default, and assumed if the tracker is not known."""
        return self.tracker != BUCKET_TRACKER


def judge(queried: Queried, context: CheckContext[DelayedIndexMemoryPolicy]) -> Judgement:
    """Judges by the share of the memory, and by the number of messages to read again."""
    limits = context.limits
    indexes = [Index(**row) for row in queried["indexes"].rows]
    judged = [(index, severity) for index in indexes if (severity := _severity(index, limits))]
    judged.sort(key=lambda pair: (-pair[1].rank, -pair[0].bytes_at(limits.index_bytes_per_message), pair[0].broker))
    if judged:
        return Judgement(findings=tuple(_finding(index, severity, limits) for index, severity in judged))
    unlimited = [index.broker for index in indexes if index.limit_bytes is None]
    unknown = gap(queried) or (f"Brokers that do not tell their memory: {named(unlimited)}." if unlimited else None)
    if unknown:
        return Judgement(cannot_tell=unknown)
    total = sum(index.bytes_at(limits.index_bytes_per_message) for index in indexes)
    taken = bytes_in_words(total, rounded=True)
    return Judgement(quiet=f"The index of delayed messages takes {taken} on {counted(len(indexes), 'broker')}.")


def _severity(index: Index, policy: DelayedIndexMemoryPolicy) -> Severity | None:
    share = index.bytes_at(policy.index_bytes_per_message) * 100
    if index.limit_bytes is not None and share >= policy.critical_percent_of_memory * index.limit_bytes:
        return Severity.CRITICAL
    if index.limit_bytes is not None and share >= policy.warning_percent_of_memory * index.limit_bytes:
        return Severity.WARNING
    if index.in_memory and index.messages >= policy.warning_messages_in_memory:
        return Severity.WARNING
    return None


def _finding(index: Index, severity: Severity, policy: DelayedIndexMemoryPolicy) -> Finding:
    taken = index.bytes_at(policy.index_bytes_per_message)
    figures = {"delayed_messages": index.messages, "index_bytes": taken}
    words = f"The index of {counted(index.messages, 'delayed message')} takes {bytes_in_words(taken, rounded=True)}"
    if taken > index.told_bytes:
        words += f" (estimated at {policy.index_bytes_per_message} bytes a message)"
    if index.limit_bytes is None:
        words += "; how much memory the broker has is not known"
    else:
        share = taken * 100 // index.limit_bytes
        words += (
            f", {share} % of {bytes_in_words(index.limit_bytes, rounded=True)}, the smaller of its heap and direct"
            f" memory as far as told"
        )
        figures |= {"memory_limit_bytes": index.limit_bytes, "share_percent": share}
    return Finding(
        check_id=CHECK.check_id,
        severity=severity,
        subject=index.broker,
        evidence=f"{words}; {_tracker(index)}.",
        figures=figures,
    )


def _tracker(index: Index) -> str:
    if not index.in_memory:
        return "the bucket tracker holds only a part of it in memory"
    if index.tracker is None:
        return "which tracker it uses is not known, by default it is the in-memory one"
    return "the in-memory tracker reads the delayed backlog again whenever a topic is loaded"


CHECK = Check(
    check_id="delayed-index-memory",
    order=30,
    title="The index of delayed messages takes much of a broker's memory",
    advice=(
        "Use the bucket tracker (delayedDeliveryTrackerFactoryClassName, Pulsar 3.0 on); restart brokers one by one.",
        "Until then do not unload bundles of topics with a large delayed backlog: it is read again each time.",
        "Spread the topics with most delayed messages over several brokers.",
        "Give the broker more direct memory (up to Pulsar 4.0) or heap (later), where the index lives.",
    ),
    source="docs/checks/delayed-index-memory.md; docs/knowledge.md D",
    policy=DelayedIndexMemoryPolicy,
    shards={"delayed": BY_BROKER, "told": Query(TOLD), "memory": Query(MEMORY), **GAP_SHARDS},
    cluster={"indexes": Query(INDEXES), **GAP_CLUSTER},
    judge=judge,
)
