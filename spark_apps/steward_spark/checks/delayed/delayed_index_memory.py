"""Brokers whose index of delayed messages takes much of their memory, and is read anew whenever it is loaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from pulsar_steward.model.catalog.delayed import DELAYED_INDEX_MEMORY
from pulsar_steward.model.finding import Finding, Severity
from steward_spark.checks.check import MOST_FINDINGS, Check, Judgement
from steward_spark.checks.common.samples import of_processes
from steward_spark.checks.common.topics import of_users
from steward_spark.checks.common.words import size
from steward_spark.checks.common.worst import named
from steward_spark.checks.delayed._settings import BUCKET_TRACKER, trackers
from steward_spark.checks.delayed._waiting import INDEX_SERIES, delayed_messages, gap
from steward_spark.frames import few_once

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pulsar_steward.policy.checks.delayed import DelayedIndexMemoryPolicy
    from pulsar_steward.policy.schema import Policy
    from steward_spark.frames import Frames

_HEAP_SERIES = ("jvm_memory_bytes_max", "jvm_memory_max_bytes")
_DIRECT_SERIES = "jvm_memory_direct_bytes_max"


@dataclass(frozen=True)
class _Index:
    """The index of one broker."""

    broker: str
    messages: int
    told_bytes: int
    """As the broker says; 0 where it does not."""
    limit_bytes: int | None
    """The smaller of heap and direct memory; None where neither was told."""
    tracker: str | None

    def bytes_at(self, per_message: int) -> int:
        """What it takes at least."""
        return max(self.told_bytes, self.messages * per_message if self.in_memory else 0)

    @property
    def in_memory(self) -> bool:
        """Whether every entry is held in memory; so it is by default, and where the tracker is not known."""
        return self.tracker != BUCKET_TRACKER


@few_once
def delayed_by_broker(frames: Frames) -> DataFrame:
    """Delayed messages by the broker that holds their topics: `broker`, `messages`, `most` (of one subscription)."""
    counts = delayed_messages(frames, "broker").where("broker is not null").groupBy("broker")
    return counts.agg(F.sum("delayed_messages").alias("messages"), F.max("delayed_messages").alias("most"))


def memory_limits(metrics: DataFrame) -> dict[str, int]:
    """The smaller limit of heap and direct memory of each broker that tells any, in bytes.

    Up to Pulsar 4.0 the in-memory index is in direct memory, later on the heap: the smaller of the two is judged.
    """
    heap = F.col("series").isin(*_HEAP_SERIES) & (F.get_json_object("labels_json", "$.area") == "heap")
    direct = F.col("series") == _DIRECT_SERIES
    told = metrics.where((F.col("source_kind") == "broker") & (heap | direct) & (F.col("value") > 0))
    rows = told.groupBy("source").agg(F.min("value").cast("bigint").alias("bytes")).collect()
    return {row["source"]: row["bytes"] for row in rows}


def _indexes(frames: Frames) -> list[_Index]:
    """Of every broker that was read and has any."""
    messages = {row["broker"]: row["messages"] for row in delayed_by_broker(frames).collect()}
    series = frames.metrics.where((F.col("series") == INDEX_SERIES) & F.col("subscription").isNull())
    sums = of_users(series).groupBy("source").agg(F.sum("value").cast("bigint").alias("bytes"))
    told = {row["source"]: row["bytes"] for row in sums.collect()}
    limits, tracker_of = memory_limits(of_processes(frames)), trackers(frames)
    brokers = sorted({*messages, *(broker for broker, count in told.items() if count)})
    return [
        _Index(each, messages.get(each, 0), told.get(each, 0), limits.get(each), tracker_of.get(each))
        for each in brokers
    ]


def _severity(index: _Index, policy: DelayedIndexMemoryPolicy) -> Severity | None:
    share = index.bytes_at(policy.index_bytes_per_message) * 100
    if index.limit_bytes is not None and share >= policy.critical_percent_of_memory * index.limit_bytes:
        return Severity.CRITICAL
    if index.limit_bytes is not None and share >= policy.warning_percent_of_memory * index.limit_bytes:
        return Severity.WARNING
    if index.in_memory and index.messages >= policy.warning_messages_in_memory:
        return Severity.WARNING
    return None


def _judge(frames: Frames, policy: Policy) -> Judgement:
    limits = policy.delayed_index_memory
    indexes = _indexes(frames)
    judged = [(index, severity) for index in indexes if (severity := _severity(index, limits))]
    judged.sort(key=lambda pair: (-pair[1].rank, -pair[0].bytes_at(limits.index_bytes_per_message), pair[0].broker))
    if judged:
        listed = judged[:MOST_FINDINGS]
        findings = tuple(_finding(index, severity, limits) for index, severity in listed)
        return Judgement(findings=findings, more=len(judged) - len(listed))
    unlimited = [index.broker for index in indexes if index.limit_bytes is None]
    unknown = gap(frames) or (f"Brokers that do not tell their memory: {named(unlimited)}." if unlimited else None)
    if unknown:
        return Judgement(cannot_tell=unknown)
    total = sum(index.bytes_at(limits.index_bytes_per_message) for index in indexes)
    return Judgement(quiet=f"The index of delayed messages takes {size(total)} on {len(indexes):,} brokers.")


def _finding(index: _Index, severity: Severity, policy: DelayedIndexMemoryPolicy) -> Finding:
    taken = index.bytes_at(policy.index_bytes_per_message)
    figures = {"delayed_messages": index.messages, "index_bytes": taken}
    words = f"The index of {index.messages:,} delayed messages takes {size(taken)}"
    if taken > index.told_bytes:
        words += f" (estimated at {policy.index_bytes_per_message} bytes a message)"
    if index.limit_bytes is None:
        words += "; how much memory the broker has is not known"
    else:
        share = taken * 100 // index.limit_bytes
        words += f", {share} % of {size(index.limit_bytes)}, the smaller of its heap and direct memory as far as told"
        figures |= {"memory_limit_bytes": index.limit_bytes, "share_percent": share}
    return Finding(
        check_id=DELAYED_INDEX_MEMORY.check_id,
        severity=severity,
        subject=index.broker,
        evidence=f"{words}; {_tracker(index)}.",
        figures=figures,
    )


def _tracker(index: _Index) -> str:
    if not index.in_memory:
        return "the bucket tracker holds only a part of it in memory"
    if index.tracker is None:
        return "which tracker it uses is not known, by default it is the in-memory one"
    return "the in-memory tracker reads the delayed backlog again whenever a topic is loaded"


CHECK = Check(DELAYED_INDEX_MEMORY, _judge)
